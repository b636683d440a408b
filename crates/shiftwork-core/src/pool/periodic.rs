//! Periodic jobs as a user describes them, and their ticks.

use std::time::Duration;

use crate::clock;
use crate::cron::Schedule;
use crate::error::Error;
use crate::job::{JobName, NewJob, args_from_json};
use crate::store::{Tick, tick_id};

/// How long it is remembered beyond its time that a tick was put in: longer than any pool's clock can be behind.
const REMEMBER: Duration = Duration::from_secs(3600);
/// A tick that nobody has started by then counts as skipped, as in the Go library.
const PICKUP_TIMEOUT: Duration = Duration::from_secs(60);

/// What becomes of ticks whose time passed while no pool could put them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// They are skipped, as in the Go library.
    #[default]
    Skip,
    /// The last one is run, once.
    Last,
    /// All are run, the latest ones if there are more than this.
    All {
        /// At most so many.
        at_most: usize,
    },
}

/// Options for a periodic job; see [`WorkerPool::periodic_with`](crate::WorkerPool::periodic_with).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct PeriodicOptions {
    args: Option<String>,
    catch_up: CatchUp,
    pickup_timeout: Duration,
}

impl Default for PeriodicOptions {
    fn default() -> Self {
        Self { args: None, catch_up: CatchUp::Skip, pickup_timeout: PICKUP_TIMEOUT }
    }
}

impl PeriodicOptions {
    /// No args, missed ticks are skipped, a minute to be picked up.
    pub fn new() -> Self {
        Self::default()
    }

    /// The args of each job, as JSON text (default: none, as in the Go library, whose periodic jobs can have no args).
    pub fn args(mut self, json: impl Into<String>) -> Self {
        self.args = Some(json.into());
        self
    }

    /// What becomes of missed ticks (default: [`CatchUp::Skip`]).
    pub fn catch_up(mut self, policy: CatchUp) -> Self {
        self.catch_up = policy;
        self
    }

    /// After how long a tick that no worker has started counts as skipped (default: a minute).
    pub fn pickup_timeout(mut self, timeout: Duration) -> Self {
        self.pickup_timeout = timeout;
        self
    }
}

/// A periodic job that a pool looks after.
#[derive(Debug)]
pub(crate) struct Periodic {
    pub(crate) name: JobName,
    pub(crate) schedule: Schedule,
    /// Name and spec, as in the ids of its jobs.
    pub(crate) key: String,
    args: Option<Vec<u8>>,
    pub(crate) catch_up: CatchUp,
    pub(crate) pickup_timeout: i64,
}

impl Periodic {
    pub(crate) fn new(name: &str, schedule: Schedule, options: PeriodicOptions) -> Result<Self, Error> {
        let name = JobName::new(name).map_err(|error| Error::config(error.to_string()))?;
        let args = options
            .args
            .map(|args| args_from_json(args.as_bytes()))
            .transpose()
            .map_err(|error| {
                Error::config(format!("the args of the periodic job {:?}: {error}", name.as_str()))
            })?
            .flatten();
        Ok(Self {
            key: format!("{}:{}", name.as_str(), schedule.spec()),
            name,
            schedule,
            args,
            catch_up: options.catch_up,
            pickup_timeout: clock::whole_seconds(options.pickup_timeout),
        })
    }

    /// The tick at this second, with the very bytes that a pool of Go would put in.
    pub(crate) fn tick(&self, at: i64) -> Tick {
        // A tick is pointless once the next one is there. Which one that is, Go has to agree: the bytes are one member of a set.
        let expires_at = self.schedule.next_after(at).unwrap_or(0);
        self.tick_until(at, expires_at, false)
    }

    /// A tick whose time is over. It is to be run however late.
    pub(crate) fn late_tick(&self, at: i64) -> Tick {
        self.tick_until(at, 0, true)
    }

    fn tick_until(&self, at: i64, expires_at: i64, late: bool) -> Tick {
        let id = self.id(at);
        let job = NewJob {
            name: &self.name,
            id: &id,
            enqueued_at: at,
            args: self.args.as_deref(),
            expires_at,
            ..NewJob::default()
        };
        Tick {
            schedule: self.key.clone(),
            at,
            queue: self.name.clone(),
            job: job.encode().into(),
            late,
            remember: REMEMBER,
        }
    }

    /// The id of the job of this tick.
    pub(crate) fn id(&self, at: i64) -> String {
        tick_id(&self.key, at)
    }

    /// Ticks after `after` and not after `until` that have to be made up for, by the policy for missed ones.
    pub(crate) fn missed(&self, after: i64, until: i64) -> Vec<i64> {
        let wanted = match self.catch_up {
            CatchUp::Skip => return Vec::new(),
            CatchUp::Last => 1,
            CatchUp::All { at_most } => at_most,
        };
        // Only the latest are wanted, so they are looked for in ever larger windows, and never over years second by second.
        let mut window: i64 = 60;
        loop {
            let from = after.max(until.saturating_sub(window));
            let ticks: Vec<i64> = self.schedule.ticks(from, until.saturating_add(1)).collect();
            if ticks.len() >= wanted || from == after {
                return ticks[ticks.len().saturating_sub(wanted)..].to_vec();
            }
            window = window.saturating_mul(8);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::Value;

    use super::*;

    fn periodic(name: &str, spec: &str, zone: &str, options: PeriodicOptions) -> Periodic {
        let zone = TimeZone::get(zone).unwrap();
        Periodic::new(name, Schedule::parse(spec, &zone).unwrap(), options).unwrap()
    }

    #[test]
    fn ticks_have_the_bytes_that_go_puts_in() {
        let golden: Value = serde_json::from_str(include_str!("../../tests/golden/periodic.json")).unwrap();
        let mut compared = 0;
        for case in golden["cases"].as_array().unwrap() {
            let text = |field: &str| case[field].as_str().unwrap();
            // Go lets a job have no name; we don't.
            if text("spec").contains("@every") || text("name").is_empty() {
                continue;
            }
            let periodic = periodic(text("name"), text("spec"), text("tz"), PeriodicOptions::new());
            let now = case["now"].as_i64().unwrap();
            let ours: Vec<_> = periodic.schedule.ticks(now, now + 240).map(|at| periodic.tick(at)).collect();
            let theirs = case["scheduled"].as_array().unwrap();
            assert_eq!(ours.len(), theirs.len(), "{case}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert_eq!(ours.at.to_string(), theirs["score"].as_str().unwrap());
                assert_eq!(ours.job.as_ref(), theirs["bytes"]["str"].as_str().unwrap().as_bytes());
                compared += 1;
            }
        }
        assert!(compared > 20, "{compared}");
    }

    #[test]
    fn missed_ticks_are_made_up_for_by_policy() {
        let missed = |policy, after, until| {
            periodic("a", "0 * * * * *", "UTC", PeriodicOptions::new().catch_up(policy)).missed(after, until)
        };
        assert_eq!(missed(CatchUp::Skip, 0, 600), [] as [i64; 0]);
        assert_eq!(missed(CatchUp::Last, 0, 600), [600]);
        assert_eq!(missed(CatchUp::Last, 0, 59), [] as [i64; 0]);
        assert_eq!(missed(CatchUp::Last, 0, 1_000_000_019), [999_999_960]);
        assert_eq!(missed(CatchUp::All { at_most: 3 }, 0, 600), [480, 540, 600]);
        assert_eq!(missed(CatchUp::All { at_most: 100 }, 420, 600), [480, 540, 600]);
    }
}
