//! The enqueuer: a handle to a store that puts jobs into it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{self, StoreClock};
use crate::error::Error;
use crate::job::{ArgsError, JobName, NewJob, RawJob, args_from_json, args_to_json, random_id, unique_key};
use crate::pool::Job;
use crate::store::{JobBytes, Push, Pushed, Store, Timed, UniqueLock};

/// The largest job that is accepted unless [`Client::with_max_payload`] says otherwise.
pub const DEFAULT_MAX_PAYLOAD: usize = 1024 * 1024;
/// How long a unique key lives beyond the time for which its job is put off.
const UNIQUE_TTL: Duration = Duration::from_secs(24 * 3600);
/// Jobs in one call to the store.
const PUSH_CHUNK: usize = 5000;

/// A handle to a store: enqueues jobs, and is what a [`WorkerPool`](crate::WorkerPool) is made from. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Store>,
    clock: Arc<StoreClock>,
    max_payload: usize,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.store.describe()).finish()
    }
}

impl<S: Store> From<S> for Client {
    fn from(store: S) -> Self {
        Self::new(Arc::new(store))
    }
}

impl Client {
    /// A handle to a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, clock: Arc::new(StoreClock::new()), max_payload: DEFAULT_MAX_PAYLOAD }
    }

    /// Sets the size in bytes above which a job is refused. Large jobs slow everybody down; send a reference to the data
    /// instead.
    pub fn with_max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn clock(&self) -> &StoreClock {
        &self.clock
    }

    /// The store's time, estimated from its last reply; asks it if there was none yet.
    pub async fn now(&self) -> Result<Timestamp, Error> {
        if let Some(now) = self.clock.now() {
            return Ok(now);
        }
        let sent = clock::now();
        let reply = self.store.time().await?;
        self.clock.observe(sent, reply.now);
        Ok(reply.now)
    }

    /// Enqueues one job: a value of a [`Job`] type, or an [`Enqueue`] that says more.
    ///
    /// # Errors
    ///
    /// [`Error::is_invalid_input`] if the job can't be sent as it is; otherwise what the store says. Nothing was stored,
    /// unless the store was out of reach ([`Error::is_unavailable`]) and the call got lost on the way back.
    pub async fn enqueue(&self, job: impl Into<Enqueue>) -> Result<Receipt, Error> {
        let mut receipts = self.enqueue_prepared(vec![job.into()]).await?;
        receipts.pop().ok_or_else(|| Error::unavailable("the store gave no reply for the job", "empty reply"))
    }

    /// Enqueues many jobs, in order, with few round trips. They are all checked before the first one is sent.
    ///
    /// # Errors
    ///
    /// As [`Client::enqueue`]. If the store fails half-way, the jobs before that point are stored, and the error says how
    /// many.
    pub async fn enqueue_many<I>(&self, jobs: I) -> Result<Vec<Receipt>, Error>
    where
        I: IntoIterator,
        I::Item: Into<Enqueue>,
    {
        self.enqueue_prepared(jobs.into_iter().map(Into::into).collect()).await
    }

    async fn enqueue_prepared(&self, jobs: Vec<Enqueue>) -> Result<Vec<Receipt>, Error> {
        let now = self.now().await?;
        let mut receipts = Vec::with_capacity(jobs.len());
        let mut pushes = Vec::with_capacity(jobs.len());
        let mut last_queue = None;
        for job in jobs {
            let queue = job.queue(last_queue.take())?;
            last_queue = Some(queue.clone());
            let (push, id) = job.prepare(queue, now, self.max_payload)?;
            receipts.push(Receipt { id, job: push.job.clone(), pushed: Pushed::Enqueued });
            pushes.push(push);
        }
        let mut outcomes = receipts.iter_mut();
        for (index, chunk) in pushes.chunks(PUSH_CHUNK).enumerate() {
            let sent = clock::now();
            let Timed { now, value } =
                self.store.push(chunk).await.map_err(|error| match index * PUSH_CHUNK {
                    0 => error,
                    before => error
                        .context(format!("after the first {before} of {} jobs were stored", pushes.len())),
                })?;
            self.clock.observe(sent, now);
            for (receipt, pushed) in outcomes.by_ref().zip(value) {
                receipt.pushed = pushed;
            }
        }
        Ok(receipts)
    }
}

/// A job and when and how to enqueue it.
///
/// ```
/// # use std::time::Duration;
/// # use shiftwork_core::{Enqueue, Job};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Welcome { user: u64 }
/// # impl Job for Welcome { const NAME: &str = "welcome"; }
/// let job = Enqueue::job(Welcome { user: 7 }).after(Duration::from_secs(300)).unique();
/// ```
#[derive(Debug, Clone)]
pub struct Enqueue {
    name: Cow<'static, str>,
    /// Checked when it is enqueued, so that building one never fails.
    args: Result<Option<Vec<u8>>, ArgsError>,
    when: When,
    unique: bool,
    trace: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy)]
enum When {
    Now,
    After(Duration),
    At(Timestamp),
}

impl<J: Job> From<J> for Enqueue {
    fn from(args: J) -> Self {
        Self::job(args)
    }
}

impl Enqueue {
    /// A job of a typed kind.
    #[allow(clippy::needless_pass_by_value)] // Reads better where it is called, and the args are done with.
    pub fn job<J: Job>(args: J) -> Self {
        Self::new(J::NAME, args_to_json(&args))
    }

    /// A job by name, with any args that serialise to a JSON object or null.
    pub fn named(name: impl Into<String>, args: &(impl serde::Serialize + ?Sized)) -> Self {
        Self::new(name.into(), args_to_json(args))
    }

    /// A job by name, with args that are JSON text already: an object or null.
    pub fn json(name: impl Into<String>, args: impl AsRef<[u8]>) -> Self {
        Self::new(name.into(), args_from_json(args.as_ref()))
    }

    fn new(name: impl Into<Cow<'static, str>>, args: Result<Option<Vec<u8>>, ArgsError>) -> Self {
        Self { name: name.into(), args, when: When::Now, unique: false, trace: Vec::new() }
    }

    /// Runs it after this delay, by the store's clock; never early, and at most a second late by rounding.
    pub fn after(mut self, delay: Duration) -> Self {
        self.when = When::After(delay);
        self
    }

    /// Runs it at this time, rounded up to the second. A time that has passed is now.
    pub fn at(mut self, time: Timestamp) -> Self {
        self.when = When::At(time);
        self
    }

    /// Enqueues it only if no job of the same name and args is waiting: one that is enqueued or scheduled with `unique` and
    /// has not started yet. The key is freed when the job starts, or 24 hours after it was to start.
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Sends W3C trace context along: pairs such as `("traceparent", "00-…")`.
    pub fn trace(mut self, trace: impl IntoIterator<Item = (String, String)>) -> Self {
        self.trace = trace.into_iter().collect();
        self.trace.sort();
        self
    }

    /// The queue of the job. Many jobs in a row are of one type, so the last one's name is checked already.
    fn queue(&self, last: Option<JobName>) -> Result<JobName, Error> {
        match last {
            Some(last) if last.as_str() == self.name => Ok(last),
            _ => JobName::new(&self.name).map_err(|error| Error::invalid_input(error.to_string())),
        }
    }

    fn prepare(self, queue: JobName, now: Timestamp, max_payload: usize) -> Result<(Push, String), Error> {
        let args = self.args?;
        let run_at = match self.when {
            When::Now => None,
            When::After(delay) => Some(clock::ceil_seconds(clock::add(now, delay))),
            When::At(time) => Some(clock::ceil_seconds(time)),
        };
        let id = random_id();
        let bytes = NewJob {
            name: &queue,
            id: &id,
            enqueued_at: now.as_second(),
            args: args.as_deref(),
            unique: self.unique,
            expires_at: 0,
            trace: &self.trace,
        }
        .encode();
        if bytes.len() > max_payload {
            return Err(Error::invalid_input(format!(
                "a job {queue:?} has {} bytes, and the limit is {max_payload}; store the data elsewhere and send a \
                 reference, or raise the limit",
                bytes.len()
            )));
        }
        let unique = self.unique.then(|| {
            let wait = run_at.map_or(0, |at| at.saturating_sub(now.as_second()).max(0));
            UniqueLock {
                key: unique_key(&queue, args.as_deref()),
                owner: id.clone(),
                ttl: UNIQUE_TTL.saturating_add(Duration::from_secs(wait.unsigned_abs())),
            }
        });
        Ok((Push { queue, job: bytes.into(), run_at, unique }, id))
    }
}

/// What became of a job that was enqueued.
#[derive(Debug, Clone)]
pub struct Receipt {
    id: String,
    job: JobBytes,
    pushed: Pushed,
}

impl Receipt {
    /// The id that the job got. A duplicate's id is not in the store.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the job was stored.
    pub fn is_enqueued(&self) -> bool {
        self.pushed == Pushed::Enqueued
    }

    /// Whether an equal unique job was waiting already, so that this one was not stored.
    pub fn is_duplicate(&self) -> bool {
        self.pushed == Pushed::Duplicate
    }

    /// The job as it was sent.
    pub fn job(&self) -> RawJob {
        RawJob::parse(self.job.clone()).expect("it was encoded by this library")
    }
}
