//! The watchdog: notices ticks of periodic jobs that no worker has started.
//!
//! Whichever pool starts a tick leaves a mark in the store, beside the job and never before it. A tick that has no mark when its
//! time-out is over was skipped: all workers were busy, the queue was paused, nobody knew the job. Nothing is kept per tick: what
//! has to be asked follows from the schedule and from where the last round stopped.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Pause, Service};
use crate::error::Error;
use crate::job::JobName;
use crate::pool::{Periodic, Shared};

/// Time between two rounds. A skip is known so much later than its time-out, at most.
const PERIOD: Duration = Duration::from_secs(5);
/// Ticks of one schedule that are asked for in one round; more have to wait for the next.
const MAX_ASKED: usize = 500;
/// Ticks that this pool has started and not told the store yet. With the store away for long, the oldest are forgotten.
const MAX_PICKED_UP: usize = 10_000;

/// What became of the ticks of one periodic job since this pool started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeriodicStats {
    /// The job's name.
    pub name: JobName,
    /// The schedule.
    pub spec: String,
    /// Ticks whose time-out is over.
    pub planned: u64,
    /// Those of them that some worker has started.
    pub picked_up: u64,
    /// Those that none has.
    pub skipped: u64,
}

/// A tick that no worker has started in time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedTick {
    /// The job's name.
    pub name: JobName,
    /// The schedule.
    pub spec: String,
    /// When it was due, in seconds since the epoch.
    pub at: i64,
}

/// A function that is told of skipped ticks.
pub(crate) type SkipHook = Arc<dyn Fn(&SkippedTick) + Send + Sync>;

/// What the watchdog has seen, and what it has yet to tell.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    picked_up: Mutex<Vec<String>>,
    stats: Mutex<HashMap<String, PeriodicStats>>,
}

impl Ticks {
    /// A worker of this pool starts this job. Never waits.
    pub(crate) fn started(&self, id: &str) {
        let mut picked_up = self.picked_up.lock().unwrap_or_else(PoisonError::into_inner);
        if picked_up.len() < MAX_PICKED_UP {
            picked_up.push(id.to_owned());
        }
    }

    /// In the order of names and specs.
    pub(crate) fn stats(&self) -> Vec<PeriodicStats> {
        let stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stats: Vec<_> = stats.values().cloned().collect();
        stats.sort_by(|one, other| (&one.name, &one.spec).cmp(&(&other.name, &other.spec)));
        stats
    }
}

pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    /// The first tick of each schedule that has not been judged yet; none if there is none in years.
    next: HashMap<String, Option<i64>>,
}

impl Watchdog {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, next: HashMap::new() }
    }

    fn judge(&self, periodic: &Periodic, at: i64, picked_up: bool) {
        {
            let mut stats = self.shared.ticks.stats.lock().unwrap_or_else(PoisonError::into_inner);
            let stats = stats.entry(periodic.key.clone()).or_insert_with(|| PeriodicStats {
                name: periodic.name.clone(),
                spec: periodic.schedule.spec().to_owned(),
                planned: 0,
                picked_up: 0,
                skipped: 0,
            });
            stats.planned += 1;
            if picked_up {
                stats.picked_up += 1;
            } else {
                stats.skipped += 1;
            }
        }
        if picked_up {
            return;
        }
        tracing::warn!(
            target: "shiftwork", job = periodic.name.as_str(), spec = periodic.schedule.spec(), at,
            "no worker has started this tick of a periodic job in time"
        );
        let spec = periodic.schedule.spec().to_owned();
        let skipped = SkippedTick { name: periodic.name.clone(), spec, at };
        if let Some(hook) = &self.shared.skip_hook
            && std::panic::catch_unwind(AssertUnwindSafe(|| hook(&skipped))).is_err()
        {
            tracing::error!(target: "shiftwork", "the hook of the watchdog panicked");
        }
    }
}

impl Service for Watchdog {
    const NAME: &'static str = "watchdog";

    async fn round(&mut self) -> Result<Pause, Error> {
        let pause = Pause { at_most: PERIOD, unless: None, wake: None };
        let Some(now) = self.shared.clock().now() else { return Ok(pause) };
        let now = now.as_second();
        let mut asked = Vec::new();
        let periodics = self.shared.periodics.clone();
        for periodic in &*periodics {
            // What was due before this pool started is not its business.
            let first = || first_tick_after(periodic, now);
            let next = *self.next.entry(periodic.key.clone()).or_insert_with(first);
            let latest = now.saturating_sub(periodic.pickup_timeout);
            // Lazily: as long as the next tick is not to be judged, nothing is computed.
            if let Some(next) = next.filter(|next| *next <= latest) {
                let ticks = periodic.schedule.ticks(next - 1, latest.saturating_add(1));
                asked.extend(ticks.take(MAX_ASKED).map(|at| (periodic, at, periodic.id(at))));
            }
        }
        let done = {
            let mut picked_up = self.shared.ticks.picked_up.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *picked_up)
        };
        if done.is_empty() && asked.is_empty() {
            return Ok(pause);
        }
        let ids: Vec<String> = asked.iter().map(|(_, _, id)| id.clone()).collect();
        let reply = match self.shared.store().watch(&done, &ids).await {
            Ok(reply) => reply.value,
            Err(error) => {
                done.iter().for_each(|id| self.shared.ticks.started(id));
                return Err(error);
            }
        };
        for ((periodic, at, _), picked_up) in asked.into_iter().zip(reply) {
            self.judge(periodic, at, picked_up);
            self.next.insert(periodic.key.clone(), first_tick_after(periodic, at));
        }
        Ok(pause)
    }
}

fn first_tick_after(periodic: &Periodic, second: i64) -> Option<i64> {
    periodic.schedule.ticks(second, i64::MAX).next()
}
