//! What a reaper of the Go library does, command by command.

use super::world::{GoReaper, POOLS, World};

impl World {
    pub(crate) fn go_reaper_steps(&self, next: &mut Vec<(String, World)>) {
        let go = |step: GoReaper| move |world: &mut World| world.go_reaper = step;
        match self.go_reaper {
            GoReaper::None => {}
            GoReaper::Idle => {
                for pool in 0..POOLS {
                    if self.registered[pool] && self.beats[pool].is_some_and(|beat| beat.old) {
                        self.step(
                            next,
                            format!("Go reaper: pool {pool} is dead"),
                            go(GoReaper::Requeue(pool)),
                        );
                    }
                    if self.registered[pool] && self.beats[pool].is_none() {
                        // A3: only its locks are cleaned.
                        self.step(
                            next,
                            format!("Go reaper: pool {pool} has no heartbeat"),
                            go(GoReaper::Clean(pool)),
                        );
                    }
                    if !self.registered[pool] && self.info[pool].is_some() {
                        let unknown = go(GoReaper::RequeueUnknown(pool));
                        self.step(next, format!("Go reaper: pool {pool} is unknown"), unknown);
                    }
                }
            }
            GoReaper::Requeue(pool) => self.go_requeue(next, pool, GoReaper::Forget(pool)),
            GoReaper::RequeueUnknown(pool) => self.go_requeue(next, pool, GoReaper::CleanUnknown(pool)),
            GoReaper::Forget(pool) => {
                self.step(next, format!("Go reaper: DEL heartbeat of {pool}"), |world| {
                    world.beats[pool] = None;
                    world.go_reaper = GoReaper::Clean(pool);
                })
            }
            GoReaper::Clean(pool) => self.go_clean(next, pool, GoReaper::Remove(pool)),
            GoReaper::CleanUnknown(pool) => self.go_clean(next, pool, GoReaper::Idle),
            GoReaper::Remove(pool) => self.step(next, format!("Go reaper: SREM {pool}"), |world| {
                world.registered[pool] = false;
                world.go_reaper = GoReaper::Idle;
            }),
        }
    }

    /// One job a call, until there is none.
    pub(crate) fn go_requeue(&self, next: &mut Vec<(String, World)>, pool: usize, then: GoReaper) {
        self.step(next, format!("Go reaper: requeue of {pool}"), |world| {
            if world.lists[pool].is_empty() {
                world.go_reaper = then;
                return;
            }
            let job = world.lists[pool].remove(0);
            world.queue.push(job);
            world.lock -= 1;
            *world.info[pool].get_or_insert(0) -= 1;
        });
    }

    pub(crate) fn go_clean(&self, next: &mut Vec<(String, World)>, pool: usize, then: GoReaper) {
        self.step(next, format!("Go reaper: clean locks of {pool}"), |world| {
            if let Some(count) = world.info[pool].take() {
                world.lock = (world.lock - count).max(0);
            }
            world.go_reaper = then;
        });
    }
}
