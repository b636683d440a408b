//! The periodic enqueuer: puts the ticks of this pool's schedules into the scheduled set ahead of time.
//!
//! Every pool looks after its own schedules, whatever others do. A marker in the store, set in the same step, sees to it that
//! each tick is put in once, and never again after it ran. So any number of pools may compute the same ticks, and none is
//! missed while one of them lives.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Pause, Service};
use crate::clock;
use crate::error::Error;
use crate::pool::Shared;
use crate::store::Tick;

/// How far ahead ticks are put in, in seconds, as in the Go library: so long may all pools be gone and none is missed.
const HORIZON: i64 = 240;
/// Time between two rounds: some of them may fail before a tick is missed.
const PERIOD: Duration = Duration::from_secs(60);

pub(crate) struct PeriodicEnqueuer {
    shared: Arc<Shared>,
    /// Up to which second the ticks of each schedule are put in.
    covered: HashMap<String, i64>,
}

impl PeriodicEnqueuer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, covered: HashMap::new() }
    }

    /// Where schedules that this pool has not looked after yet were left, by whichever pool.
    async fn find_beginnings(&mut self, now: i64) -> Result<(), Error> {
        let keys: Vec<String> = self.shared.periodics.iter().map(|periodic| periodic.key.clone()).collect();
        let last = self.shared.store().last_ticks(&keys).await?.value;
        for (key, last) in keys.into_iter().zip(last) {
            self.covered.insert(key, last.unwrap_or(now));
        }
        Ok(())
    }
}

impl Service for PeriodicEnqueuer {
    const NAME: &'static str = "periodic enqueuer";

    async fn round(&mut self) -> Result<Pause, Error> {
        let sent = clock::now();
        let reply = self.shared.store().time().await?;
        self.shared.clock().observe(sent, reply.now);
        let now = reply.now.as_second();
        if self.covered.is_empty() {
            self.find_beginnings(now).await?;
        }
        let until = now.saturating_add(HORIZON);
        let mut ticks: Vec<Tick> = Vec::new();
        for periodic in &*self.shared.periodics {
            let covered = self.covered.get(&periodic.key).copied().unwrap_or(now);
            // What has passed while nobody could put it in.
            ticks.extend(periodic.missed(covered, now).into_iter().map(|at| periodic.late_tick(at)));
            // From now on and not from where this pool left off: the clock may have been set back, and a tick that is in already
            // costs nothing.
            let from = if covered <= until { covered.max(now) } else { now };
            ticks.extend(periodic.schedule.ticks(from, until).map(|at| periodic.tick(at)));
        }
        if !ticks.is_empty() {
            self.shared.store().tick(&ticks).await?;
        }
        for periodic in &*self.shared.periodics {
            self.covered.insert(periodic.key.clone(), until - 1);
        }
        let at_most = PERIOD.mul_f64(0.8 + 0.4 * fastrand::f64());
        Ok(Pause { at_most, unless: None, wake: None })
    }
}
