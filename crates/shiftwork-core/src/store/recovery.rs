//! What a reaper and its store say to each other, and what workers show of themselves.
//!
//! The policy (when a pool is dead, what becomes of its jobs) lives in core's reaper; a store remembers what was seen, and
//! moves exact bytes.

use std::time::Duration;

use crate::job::{JobName, PoolId};
use crate::store::{Claim, JobBytes};

/// What a worker does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The worker's id.
    pub worker: String,
    /// The job that it runs; `None` if it runs none any more.
    pub job: Option<ObservedJob>,
}

/// A job as a worker shows it while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedJob {
    /// The job type.
    pub name: String,
    /// The job's id.
    pub id: String,
    /// When it started, in seconds since the epoch.
    pub started_at: i64,
    /// Its args as JSON; empty if it has none.
    pub args: JobBytes,
    /// What it said last, and when.
    pub checkin: Option<(String, i64)>,
}

/// How to look for silent pools.
///
/// A pool is silent when its heartbeat has not changed for [`Look::silent_for`] and is that old by the store's clock, too.
/// After a gap in which nobody looked (the store was away, all pools were, the clock was set), everybody gets as long
/// again to show that he lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Does nothing if somebody has looked within this time.
    pub every: Duration,
    /// How long a pool has to be silent. Whole seconds count.
    pub silent_for: Duration,
    /// The longest time between two looks that is no gap. Whole seconds count.
    pub gap: Duration,
    /// The audit of all queues is due when the last one is this old.
    pub audit_every: Duration,
}

/// The reply to a [`Look`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// Whether this call looked, and nobody else just before.
    pub looked: bool,
    /// Pools that are registered.
    pub pools: usize,
    /// Those that are silent.
    pub silent: Vec<SilentPool>,
    /// Names of all jobs that were ever pushed or worked on, if there are silent pools.
    pub known: Vec<JobName>,
    /// Whether it is this caller's turn to audit the queues.
    pub audit: bool,
}

/// A pool that may be dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentPool {
    /// The pool.
    pub pool: PoolId,
    /// What was seen of it.
    pub witness: Witness,
    /// Job types that it worked on, as far as it has said.
    pub queues: Vec<JobName>,
    /// The machine that it ran on, if it has said.
    pub host: String,
    /// The ids of its workers, as far as it has said.
    pub workers: Vec<String>,
    /// Since when it has been silent, in seconds since the epoch.
    pub since: i64,
}

/// What was seen of a pool when it was judged. Any sign of life since then makes it another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Witness {
    /// It is registered, and this was its heartbeat, as text.
    Heartbeat(String),
    /// It is registered, but has no heartbeat at all.
    NoHeartbeat,
    /// It is not registered and has no heartbeat.
    Unregistered,
}

/// A claim of a pool that may be dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The claim.
    pub claim: Claim,
    /// Workers that died with this job before, as [`Recovery::record`] told of them, the first one first.
    pub crashes: Vec<String>,
}

/// Takes claims from a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recover {
    /// The pool.
    pub pool: PoolId,
    /// What was seen of it. If it is not so any more, nothing is done.
    pub witness: Witness,
    /// All queues in which it may hold claims.
    pub queues: Vec<JobName>,
    /// What to do with the claims that were found, within each queue the oldest first. At most 1,000.
    pub recoveries: Vec<Recovery>,
}

/// What becomes of a claim of a dead pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The claim.
    pub claim: Claim,
    /// The job's id, if it has a usable one: the crash is recorded under it.
    pub id: Option<String>,
    /// What to remember of this crash.
    pub record: String,
    /// `None`: the job goes back to the head of its queue. Else it goes to the dead set, now, with these bytes.
    pub bury: Option<JobBytes>,
}

/// The reply to a [`Recover`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Whether the pool was as it had been seen. If not, nothing was done.
    pub fenced: bool,
    /// Jobs that went back to their queues.
    pub returned: usize,
    /// Jobs that went to the dead set.
    pub buried: usize,
    /// Whether the pool had no claim left, and is removed.
    pub removed: bool,
}

/// A queue's bookkeeping and the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueAudit {
    /// The queue.
    pub queue: JobName,
    /// How many jobs the bookkeeping says are in progress in all: 0 if it says nothing, `None` if it can't be read.
    pub lock: Option<i64>,
    /// All pools that hold something in this queue, or of which the bookkeeping says so.
    pub pools: Vec<PoolAudit>,
}

/// A pool's part of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolAudit {
    /// The pool.
    pub pool: PoolId,
    /// Whether it is registered, or has a heartbeat.
    pub registered: bool,
    /// How many jobs the bookkeeping says it has in progress; `None` if that can't be read.
    pub counted: Option<i64>,
    /// How many it really has.
    pub held: usize,
}

impl QueueAudit {
    /// Whether it still names pools that are gone and had nothing in progress. That is no fault, only untidy.
    pub fn has_residue(&self) -> bool {
        self.pools.iter().any(|pool| !pool.registered && pool.held == 0)
    }

    /// Whether the bookkeeping says what is.
    pub fn is_sound(&self) -> bool {
        let held: usize = self.pools.iter().map(|pool| pool.held).sum();
        let same = |counted: Option<i64>, held: usize| counted == i64::try_from(held).ok();
        same(self.lock, held) && self.pools.iter().all(|pool| same(pool.counted, pool.held))
    }
}
