//! Decides what becomes of a job, apart from doing it: from how it ended to where it goes.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::options::{JobOptions, MAX_DELAY};
use super::outcome::Outcome;
use crate::clock;
use crate::job::RawJob;
use crate::store::Destination;

/// How an attempt ended, as the executor saw it.
#[derive(Debug)]
pub(crate) enum End {
    /// The handler returned a value.
    Returned(Outcome),
    /// The handler returned an error, panicked or ran out of time; the text says which.
    Failed(String),
}

/// What becomes of the job.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) to: Destination,
    pub(crate) kind: FateKind,
}

/// The same in one word, for logs and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FateKind {
    Done,
    Retried,
    Snoozed,
    Dropped,
    Dead,
}

/// What becomes of `job` after an attempt that ended at `now`.
pub(crate) fn fate(job: &RawJob, end: &End, options: &JobOptions, now: Timestamp) -> Fate {
    match end {
        End::Returned(Outcome::Done) => Fate { to: Destination::Gone, kind: FateKind::Done },
        End::Returned(Outcome::Discard(_)) => Fate { to: Destination::Gone, kind: FateKind::Dropped },
        End::Returned(Outcome::Snooze(delay)) => {
            let at = due_at(now, *delay);
            // As it is: a snooze leaves no trace in the job, so it can be repeated without end.
            Fate { to: Destination::Scheduled { at, job: job.clone().into_bytes() }, kind: FateKind::Snoozed }
        }
        End::Returned(Outcome::RetryAfter { delay, reason }) => {
            failed(job, reason, Some(*delay), options, now)
        }
        End::Returned(Outcome::Die(reason)) => dead(job, reason, now),
        End::Failed(reason) => failed(job, reason, None, options, now),
    }
}

/// The dead set, with the reason as one more failure.
pub(crate) fn dead(job: &RawJob, reason: &str, now: Timestamp) -> Fate {
    let at = now.as_second();
    Fate { to: Destination::Dead { at, job: with_failure(job, reason, at) }, kind: FateKind::Dead }
}

fn failed(job: &RawJob, reason: &str, delay: Option<Duration>, options: &JobOptions, now: Timestamp) -> Fate {
    let fails = fails_after(job);
    // Retries come first, whatever skip_dead says: it is about what happens after them.
    if fails < i64::from(options.max_fails) {
        let fails = u32::try_from(fails).unwrap_or(u32::MAX);
        let delay = delay.unwrap_or_else(|| (options.backoff)(fails));
        let job = with_failure(job, reason, now.as_second());
        Fate { to: Destination::Retry { at: due_at(now, delay), job }, kind: FateKind::Retried }
    } else if options.skip_dead {
        Fate { to: Destination::Gone, kind: FateKind::Dropped }
    } else {
        dead(job, reason, now)
    }
}

fn fails_after(job: &RawJob) -> i64 {
    // A negative count can only come from outside; it must not give a job more attempts than the type allows.
    job.fails().max(0).saturating_add(1)
}

/// The job as it goes on after a failure: the bytes that were claimed, with three fields changed. Whatever the handler
/// did with its arguments stays with the handler.
fn with_failure(job: &RawJob, reason: &str, now: i64) -> Arc<[u8]> {
    job.patch().fails(fails_after(job)).error(reason).failed_at(now).build().into_bytes()
}

fn due_at(now: Timestamp, delay: Duration) -> i64 {
    clock::ceil_seconds(clock::add(now, delay.min(MAX_DELAY)))
}
