//! What our reaper does: it judges, recovers in fenced steps, and repairs.

use super::world::{POOLS, Reaper, Witness, World};

impl World {
    pub(crate) fn reaper_steps(&self, next: &mut Vec<(String, World)>) {
        match self.reaper {
            Reaper::None => {}
            Reaper::Idle => {
                for pool in 0..POOLS {
                    if let Some(witness) = self.judge(pool) {
                        self.step(next, format!("reaper judges pool {pool}: {witness:?}"), |world| {
                            world.reaper = Reaper::Judged { pool, witness };
                        });
                    }
                }
                self.step(next, "reaper repairs the count".to_owned(), World::repair);
            }
            Reaper::Judged { pool, witness } => {
                self.step(next, format!("reaper recovers one job of pool {pool}"), |world| {
                    let over = world.recover(pool, witness);
                    if over {
                        world.reaper = Reaper::Idle;
                    }
                });
                self.step(next, "reaper stops half-way, another begins".to_owned(), |world| {
                    world.reaper = Reaper::Idle;
                });
            }
        }
    }

    /// What a look and an audit see of a pool, if it is to be reaped.
    pub(crate) fn judge(&self, pool: usize) -> Option<Witness> {
        let beat_is_old = self.beats[pool].is_none_or(|beat| beat.old);
        match (self.registered[pool], self.beats[pool]) {
            (true, Some(beat)) if beat.old => Some(Witness::Heartbeat(beat.value)),
            // Only after it has been so for the dead time: a pool of Go that starts is between two commands.
            (true, None) if !self.pools[pool].alive => Some(Witness::NoHeartbeat),
            // A pool that has beaten lately may not have been told yet, and may still claim.
            (false, _) if self.known_beats[pool] && self.pools[pool].fresh => None,
            (false, _) if beat_is_old && self.known_beats[pool] => Some(Witness::Unregistered),
            // In two audits, fifteen seconds apart: a living pool has registered by then.
            (false, _)
                if beat_is_old
                    && !self.pools[pool].alive
                    && self.info[pool].is_some_and(|count| count > 0) =>
            {
                Some(Witness::Unregistered)
            }
            _ => None,
        }
    }

    /// The script `recover`, with a bound of one job. Whether it is over with this pool.
    pub(crate) fn recover(&mut self, pool: usize, witness: Witness) -> bool {
        let beat = self.beats[pool];
        let as_seen = match witness {
            Witness::Heartbeat(seen) => self.registered[pool] && beat.is_some_and(|beat| beat.value == seen),
            Witness::NoHeartbeat => self.registered[pool] && beat.is_none(),
            Witness::Unregistered => {
                let has_beaten_lately = self.known_beats[pool] && self.pools[pool].fresh;
                !self.registered[pool] && !has_beaten_lately && beat.is_none_or(|beat| beat.old)
            }
        };
        if !as_seen {
            return true;
        }
        if let Some(job) = self.lists[pool].pop() {
            self.queue.insert(0, job);
        }
        let held = self.lists[pool].len() as i8;
        self.info[pool] = (held > 0).then_some(held);
        self.lock = self.info.iter().flatten().map(|count| (*count).max(0)).sum();
        if held > 0 {
            return false;
        }
        (self.registered[pool], self.beats[pool], self.known_beats[pool]) = (false, None, false);
        true
    }

    /// The script `repair`, for the pools that the bookkeeping names.
    pub(crate) fn repair(&mut self) {
        for pool in 0..POOLS {
            let held = self.lists[pool].len() as i8;
            if self.info[pool].is_some_and(|count| count != held) {
                self.info[pool] = Some(held);
            }
        }
        self.lock = self.info.iter().flatten().map(|count| (*count).max(0)).sum();
    }
}
