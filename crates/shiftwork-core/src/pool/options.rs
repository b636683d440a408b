//! What a job type may say about how its jobs are run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::job::JobName;

/// The highest priority of a job type.
pub const MAX_PRIORITY: u32 = 100_000;
/// The longest a job can be put off: ten years. A custom backoff beyond it is held there.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// From the number of failures so far (1 after the first) to the time until the next attempt.
pub(crate) type Backoff = Arc<dyn Fn(u32) -> Duration + Send + Sync>;

/// How the jobs of one type are run.
#[derive(Clone)]
pub struct JobOptions {
    pub(crate) priority: u32,
    pub(crate) max_fails: u32,
    pub(crate) skip_dead: bool,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) backoff: Backoff,
}

impl Default for JobOptions {
    fn default() -> Self {
        Self {
            priority: 1,
            max_fails: 4,
            skip_dead: false,
            max_concurrency: None,
            timeout: None,
            backoff: Arc::new(default_backoff),
        }
    }
}

impl fmt::Debug for JobOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobOptions")
            .field("priority", &self.priority)
            .field("max_fails", &self.max_fails)
            .field("skip_dead", &self.skip_dead)
            .field("max_concurrency", &self.max_concurrency)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl JobOptions {
    /// The defaults: priority 1, four attempts, no limit, no timeout, the Go library's backoff.
    pub fn new() -> Self {
        Self::default()
    }

    /// The share of this type's jobs when several types have jobs waiting: from 1 (the default) to [`MAX_PRIORITY`].
    /// A type of priority 10 gets ten times the turns of a type of priority 1; none is ever starved.
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// How many attempts a job gets in all (default 4). After the last failure it goes to the dead set.
    pub fn max_fails(mut self, attempts: u32) -> Self {
        self.max_fails = attempts;
        self
    }

    /// Drops a job after its last failed attempt instead of keeping it in the dead set.
    pub fn skip_dead(mut self) -> Self {
        self.skip_dead = true;
        self
    }

    /// How many jobs of this type may run at once over all pools of the namespace, in every language. 0 is no limit.
    ///
    /// Written when a pool starts, so the last one to start wins. Without a call of this, whatever is set stays.
    pub fn max_concurrency(mut self, limit: u32) -> Self {
        self.max_concurrency = Some(limit);
        self
    }

    /// How long one attempt may take. Then the job's cancellation token fires, and the attempt has failed. A blocking
    /// handler can't be stopped from outside: it keeps its thread until it returns, so it should look at
    /// [`Context::is_cancelled`](crate::Context::is_cancelled).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The time until the next attempt, from the number of failures so far (1 after the first). Rounded up to whole
    /// seconds, at most ten years. The default is that of the Go library: `fails⁴ + 15 + rand(0..30)·(fails + 1)`
    /// seconds, which is 16 to 74 seconds after the first failure.
    pub fn backoff(mut self, backoff: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        self.backoff = Arc::new(backoff);
        self
    }

    pub(crate) fn check(&self, name: &JobName) -> Result<(), Error> {
        if !(1..=MAX_PRIORITY).contains(&self.priority) {
            return Err(Error::config(format!(
                "job type {name:?} has priority {}; write 1 to {MAX_PRIORITY}",
                self.priority
            )));
        }
        if self.max_fails == 0 {
            return Err(Error::config(format!(
                "job type {name:?} has max_fails 0; write 1 for a single attempt"
            )));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::config(format!(
                "job type {name:?} has a timeout of zero; leave it out for none"
            )));
        }
        Ok(())
    }
}

/// The Go library's backoff.
pub(crate) fn default_backoff(fails: u32) -> Duration {
    let fails = u64::from(fails);
    let seconds =
        fails.saturating_pow(4).saturating_add(15).saturating_add(fastrand::u64(0..30) * (fails + 1));
    Duration::from_secs(seconds).min(MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_backoff_is_that_of_the_go_library() {
        for (fails, least, most) in [(1, 16, 74), (2, 31, 118), (3, 96, 212)] {
            let mut seen = (u64::MAX, 0);
            for _ in 0..2000 {
                let seconds = default_backoff(fails).as_secs();
                seen = (seen.0.min(seconds), seen.1.max(seconds));
            }
            assert_eq!(seen, (least, most), "after {fails} failures");
        }
    }

    #[test]
    fn a69_backoff_of_many_failures_neither_overflows_nor_grows_without_bound() {
        assert_eq!(default_backoff(u32::MAX), MAX_DELAY);
    }

    #[test]
    fn options_out_of_range_are_refused_with_the_range() {
        let name = JobName::new("resize").unwrap();
        let refused = |options: JobOptions| options.check(&name).unwrap_err().to_string();
        assert_eq!(
            refused(JobOptions::new().priority(0)),
            "job type \"resize\" has priority 0; write 1 to 100000"
        );
        assert!(refused(JobOptions::new().priority(100_001)).contains("100001"));
        assert!(refused(JobOptions::new().max_fails(0)).contains("max_fails 0"));
        assert!(JobOptions::new().priority(MAX_PRIORITY).check(&name).is_ok());
    }
}
