//! The store as far as recovery is concerned, the processes around it, and what pools do.

pub(crate) const POOLS: usize = 2;
pub(crate) const LIMIT: i8 = 1;

pub(crate) type Job = u8;

/// The store, as far as recovery is concerned, and the processes around it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// Waiting jobs, the next one first.
    pub(crate) queue: Vec<Job>,
    pub(crate) finished: Vec<Job>,
    pub(crate) lists: [Vec<Job>; POOLS],
    pub(crate) lock: i8,
    pub(crate) info: [Option<i8>; POOLS],
    pub(crate) registered: [bool; POOLS],
    pub(crate) beats: [Option<Beat>; POOLS],
    /// Our own set of pools that have beaten, which no reaper of Go touches.
    pub(crate) known_beats: [bool; POOLS],
    pub(crate) pools: [Pool; POOLS],
    pub(crate) reaper: Reaper,
    pub(crate) go_reaper: GoReaper,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Beat {
    pub(crate) value: u8,
    /// As old as a dead pool's.
    pub(crate) old: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pool {
    pub(crate) alive: bool,
    pub(crate) go: bool,
    /// Jobs that its handlers run, whatever the store says.
    pub(crate) runs: Vec<Job>,
    /// Beats that it has left: keeps the world small.
    pub(crate) beats_left: u8,
    /// Whether it got through with a beat lately, as far as it knows: what others did to its record it can't know.
    pub(crate) fresh: bool,
    /// A Rust pool that was told that it had been removed: it is over under this id.
    pub(crate) told: bool,
}

/// A reaper of ours: what it has seen. It may stop at any time, which is the same as never going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reaper {
    None,
    Idle,
    Judged { pool: usize, witness: Witness },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Witness {
    Heartbeat(u8),
    NoHeartbeat,
    Unregistered,
}

/// A reaper of Go, which works in many steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum GoReaper {
    None,
    Idle,
    Requeue(usize),
    Forget(usize),
    Clean(usize),
    Remove(usize),
    RequeueUnknown(usize),
    CleanUnknown(usize),
}

impl World {
    pub(crate) fn new(go_pools: bool, reaper: Reaper, go_reaper: GoReaper) -> Self {
        let pool = Pool { alive: true, go: go_pools, runs: vec![], beats_left: 2, fresh: false, told: false };
        Self {
            queue: vec![1, 2],
            finished: vec![],
            lists: [vec![], vec![]],
            lock: 0,
            info: [None; POOLS],
            registered: [false; POOLS],
            beats: [None; POOLS],
            known_beats: [false; POOLS],
            pools: [pool.clone(), pool],
            reaper,
            go_reaper,
        }
    }

    pub(crate) fn held(&self) -> i8 {
        self.lists.iter().map(|list| list.len() as i8).sum()
    }

    pub(crate) fn counted(&self) -> i8 {
        self.info.iter().flatten().sum()
    }

    /// Everything that may happen next.
    pub(crate) fn next(&self) -> Vec<(String, World)> {
        let mut next = Vec::new();
        for pool in 0..POOLS {
            self.pool_steps(pool, &mut next);
        }
        self.reaper_steps(&mut next);
        self.go_reaper_steps(&mut next);
        next
    }

    pub(crate) fn step(
        &self,
        next: &mut Vec<(String, World)>,
        what: String,
        change: impl FnOnce(&mut World),
    ) {
        let mut world = self.clone();
        change(&mut world);
        if world != *self {
            next.push((what, world));
        }
    }

    pub(crate) fn pool_steps(&self, pool: usize, next: &mut Vec<(String, World)>) {
        if self.pools[pool].fresh || self.beats[pool].is_some_and(|beat| !beat.old) {
            self.step(next, format!("pool {pool} has been silent for the dead time"), |world| {
                world.beats[pool] = world.beats[pool].map(|beat| Beat { old: true, ..beat });
                world.pools[pool].fresh = false;
            });
        }
        let process = &self.pools[pool];
        if !process.alive {
            return;
        }
        self.step(next, format!("pool {pool} is killed"), |world| {
            world.pools[pool].alive = false;
            world.pools[pool].runs.clear();
        });
        if process.beats_left > 0 {
            if process.go {
                self.step(next, format!("Go pool {pool}: SADD"), |world| world.registered[pool] = true);
                self.step(next, format!("Go pool {pool}: HMSET"), |world| world.beat(pool));
            } else if !process.told {
                self.step(next, format!("pool {pool} beats"), |world| {
                    // One script: registers with the first beat, and is told later if it was removed.
                    let first =
                        !world.known_beats[pool] && world.beats[pool].is_none() && !world.registered[pool];
                    if first && world.pools[pool].beats_left == 2 {
                        world.registered[pool] = true;
                    }
                    if world.registered[pool] {
                        world.beat(pool);
                        world.known_beats[pool] = true;
                    } else {
                        world.pools[pool].told = true;
                    }
                });
            }
        }
        // A Rust pool claims nothing before it is registered, nor when it could not beat for half the dead time.
        let may_claim = process.go || (!process.told && process.fresh);
        if may_claim && process.runs.is_empty() && self.lock < LIMIT && !self.queue.is_empty() {
            self.step(next, format!("pool {pool} claims"), |world| {
                let job = world.queue.remove(0);
                world.lists[pool].push(job);
                world.lock += 1;
                *world.info[pool].get_or_insert(0) += 1;
                world.pools[pool].runs.push(job);
            });
        }
        for job in process.runs.clone() {
            self.step(next, format!("pool {pool} finishes {job}"), |world| {
                world.pools[pool].runs.retain(|running| *running != job);
                // Guarded by LREM: who does not hold it writes nothing.
                if let Some(position) = world.lists[pool].iter().position(|held| *held == job) {
                    world.lists[pool].remove(position);
                    world.lock -= 1;
                    *world.info[pool].get_or_insert(0) -= 1;
                    world.finished.push(job);
                    world.finished.sort_unstable();
                }
            });
        }
    }

    pub(crate) fn beat(&mut self, pool: usize) {
        // Times only go up, whatever became of the record.
        let value = 3 - self.pools[pool].beats_left;
        self.beats[pool] = Some(Beat { value, old: false });
        self.pools[pool].beats_left -= 1;
        self.pools[pool].fresh = true;
    }
}
