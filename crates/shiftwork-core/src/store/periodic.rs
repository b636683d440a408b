//! Ticks of periodic jobs.

use std::time::Duration;

use crate::job::JobName;
use crate::store::JobBytes;

/// How the ids of all periodic jobs begin, in Go and here.
pub(crate) const PERIODIC: &str = "periodic:";

/// The id of the job of a tick, as the Go library makes it.
pub(crate) fn tick_id(schedule: &str, at: i64) -> String {
    format!("{PERIODIC}{schedule}:{at}")
}

/// One tick of a periodic job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// The schedule that it belongs to: name and spec, as in the job's id.
    pub schedule: String,
    /// When it is due, in seconds since the epoch.
    pub at: i64,
    /// Its queue, which is registered as known.
    pub queue: JobName,
    /// The job. Its id is `periodic:<schedule>:<at>`.
    pub job: JobBytes,
    /// Whether it may be put in though its time is over. Else such a tick is not put in.
    pub late: bool,
    /// How long it is remembered, beyond its time, that this tick was put in.
    pub remember: Duration,
}

impl Tick {
    /// The id of the job, under which the tick is remembered.
    pub fn id(&self) -> String {
        tick_id(&self.schedule, self.at)
    }
}
