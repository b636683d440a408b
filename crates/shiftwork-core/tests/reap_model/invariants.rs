//! What has to hold.

use super::world::{Beat, LIMIT, POOLS, World};

impl World {
    /// Invariant 1.
    pub(crate) fn counts_agree(&self) -> Result<(), String> {
        let (lock, info, held) = (self.lock, self.counted(), self.held());
        if lock == info && info == held {
            Ok(())
        } else {
            Err(format!("lock {lock}, lock_info {info}, held {held}"))
        }
    }

    /// Invariant 2.
    pub(crate) fn each_job_is_in_one_place(&self) -> Result<(), String> {
        for job in [1, 2] {
            let lists = self.lists.iter().flatten();
            let places =
                self.queue.iter().chain(&self.finished).chain(lists).filter(|place| **place == job).count();
            if places != 1 {
                return Err(format!("job {job} is in {places} places"));
            }
        }
        Ok(())
    }

    pub(crate) fn limit_holds(&self) -> Result<(), String> {
        if self.held() <= LIMIT { Ok(()) } else { Err(format!("{} run at once", self.held())) }
    }

    /// When all pools are dead and our reaper has done what it can, no job is stuck and every book is at zero.
    pub(crate) fn ends_well(&self) -> Result<(), String> {
        let mut world = self.clone();
        for pool in 0..POOLS {
            world.pools[pool].alive = false;
            world.pools[pool].runs.clear();
            world.pools[pool].fresh = false;
            world.beats[pool] = world.beats[pool].map(|beat| Beat { old: true, ..beat });
        }
        for _ in 0..8 {
            for pool in 0..POOLS {
                if let Some(witness) = world.judge(pool) {
                    world.recover(pool, witness);
                }
            }
            world.repair();
        }
        let stuck = world.lists.iter().flatten().count();
        if stuck > 0 || world.lock != 0 || world.registered.contains(&true) {
            return Err(format!("in the end {stuck} jobs are stuck: {world:?}"));
        }
        world.each_job_is_in_one_place()
    }
}
