//! What goes into the verbs of a [`Store`](super::Store) and what comes back.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::job::{JobName, PoolId};

/// The most jobs that one call claims, in every store: Redis's Lua can't unpack lists of some thousands.
pub const MAX_CLAIMS: usize = 1000;
/// The value under unique keys that the Go library sets: it names no owner.
pub const NO_OWNER: &str = "1";

/// A job's exact bytes, as they lie in the store.
pub type JobBytes = Arc<[u8]>;

/// A reply and the store's time when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed<T> {
    /// The store's clock.
    pub now: Timestamp,
    /// The reply.
    pub value: T,
}

impl<T> Timed<T> {
    /// Another reply at the same time.
    pub fn with<U>(self, value: U) -> Timed<U> {
        Timed { now: self.now, value }
    }
}

/// One job to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// The queue it belongs to.
    pub queue: JobName,
    /// Its bytes.
    pub job: JobBytes,
    /// When to run it: `None` now, else the second since the epoch at which it is due.
    pub run_at: Option<i64>,
    /// The key that keeps a second such job out.
    pub unique: Option<UniqueLock>,
}

/// The key of a unique job, taken when the job is pushed and freed when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueLock {
    /// The key, without the namespace (see [`crate::job::unique_key`]).
    pub key: String,
    /// The id of the job that takes it.
    pub owner: String,
    /// How long the key lives if nobody frees it. Whole seconds count.
    pub ttl: Duration,
}

/// What became of a [`Push`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The job is stored.
    Enqueued,
    /// A job with the same unique key is already waiting; this one was not stored.
    Duplicate,
}

/// Finish these claims and claim more: one atomic step of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The pool that finishes and claims.
    pub pool: PoolId,
    /// Claims to finish, in order.
    pub finishes: Vec<Finish>,
    /// Jobs wanted.
    pub claim: ClaimRequest,
}

/// Which jobs a pool would take, and how many.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClaimRequest {
    /// How many at most; 0 claims nothing. At most 1,000 are given at a time.
    pub limit: usize,
    /// The queues to take from, each at most once.
    pub queues: Vec<QueueShare>,
    /// A fresh random number in `[0, 1)`: where the shares of this batch begin to be drawn. It makes shares that are
    /// smaller than one job come out right over many batches.
    pub draw: f64,
}

/// A queue and its part of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueShare {
    /// The queue.
    pub queue: JobName,
    /// Its weight against the other queues that have jobs, at least 1.
    pub weight: u32,
}

/// A job in progress, held by a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The queue it was taken from: lock bookkeeping follows this, never the name inside the job.
    pub queue: JobName,
    /// Its bytes, as they lay in the queue.
    pub job: JobBytes,
}

/// The end of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The claim that ends.
    pub claim: Claim,
    /// Where the job goes.
    pub to: Destination,
}

/// Where a finished claim's job goes. Times are whole seconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere: it is done, or dropped.
    Gone,
    /// To the retry set.
    Retry {
        /// When it is due again.
        at: i64,
        /// Its new bytes.
        job: JobBytes,
    },
    /// To the scheduled set.
    Scheduled {
        /// When it is due.
        at: i64,
        /// Its new bytes.
        job: JobBytes,
    },
    /// To the dead set.
    Dead {
        /// When it died.
        at: i64,
        /// Its new bytes.
        job: JobBytes,
    },
}

/// The reply to an [`Exchange`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchanged {
    /// Positions in [`Exchange::finishes`] whose claim this pool did not hold, in ascending order.
    pub lost: Vec<usize>,
    /// The new claims; within a queue in the order in which they are to run.
    pub claims: Vec<Claim>,
    /// Queues that could not be read (a key of the wrong type, say) and why; the others were served.
    pub refused: Vec<(JobName, String)>,
}

/// A unique job that starts for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The keys it may have been pushed under, without the namespace.
    pub keys: Vec<String>,
    /// The job's id.
    pub owner: String,
}

/// What [`Store::promote`](super::Store::promote) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Promoted {
    /// Jobs that moved to their queues.
    pub moved: usize,
    /// Malformed members that went to the dead set.
    pub buried: usize,
    /// The second at which the earliest of the remaining jobs is due; not later than now if the limit cut the work short.
    pub next_due: Option<i64>,
}

/// A pool's heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The pool.
    pub pool: PoolId,
    /// Whether this is the first beat under this id, which registers the pool.
    pub register: bool,
    /// When the pool started, in seconds since the epoch by the store's clock.
    pub started_at: i64,
    /// Job types that the pool works on, each with its limit.
    pub queues: Vec<QueueLimit>,
    /// How many jobs the pool runs at once.
    pub concurrency: usize,
    /// The ids of its workers, one a slot.
    pub worker_ids: Vec<String>,
    /// The machine's name.
    pub host: String,
    /// The process id.
    pub pid: u32,
    /// Whether the pool has stopped claiming and only finishes what it runs.
    pub quiet: bool,
    /// The reply asks for a look for silent pools if the last one was so long ago.
    pub look_after: Duration,
}

/// A job type and how many of it may run at once over all pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueLimit {
    /// The job type's queue.
    pub queue: JobName,
    /// `Some(n)` is written when the pool registers, and later only if it is missing; `None` leaves whatever is set.
    pub max_concurrency: Option<u32>,
}

/// The reply to a [`Beat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeatReply {
    /// Whether the pool is registered under its id. `false` only if it did not ask to register and has been
    /// removed: its claims belong to others now.
    pub registered: bool,
    /// How many claims the pool has, by the store's count.
    pub held: usize,
    /// Whether nobody has looked for silent pools for [`Beat::look_after`]: it is this pool's turn.
    pub look: bool,
}

/// How many jobs wait.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Queues that have jobs, in the order of the question, with how many.
    pub queued: Vec<(JobName, usize)>,
    /// Jobs in the scheduled set.
    pub scheduled: usize,
    /// Jobs in the retry set.
    pub retry: usize,
}

/// What to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitFor {
    /// A claim over these queues may succeed: one has jobs, is not paused and has room below its limit.
    Work {
        /// The queues.
        queues: Arc<[JobName]>,
    },
    /// The scheduled or the retry set has a job that is due earlier than the given second (any job, if `None`).
    EarlierDue {
        /// What the caller already knows to be the next due second.
        than: Option<i64>,
    },
}
