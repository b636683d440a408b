//! What a handler knows about the job it runs.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::board::CheckIn;
use super::shared::Shared;
use crate::client::Client;
use crate::clock;
use crate::job::RawJob;
use crate::pool::registry::JobType;

/// Bytes of a line that are shown.
const MAX_CHECKIN: usize = 1024;

/// Values by type.
pub(crate) type TypeMap = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// The job that runs and what belongs to it. Fresh for every attempt; clones share it.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    job: RawJob,
    job_type: Arc<JobType>,
    worker: Arc<str>,
    token: CancellationToken,
    check_in: CheckIn,
    attached: Mutex<TypeMap>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.name())
            .field("id", &self.id())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(crate) fn new(
        job: RawJob,
        job_type: Arc<JobType>,
        worker: Arc<str>,
        token: CancellationToken,
        check_in: CheckIn,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                job,
                job_type,
                worker,
                token,
                check_in,
                attached: Mutex::default(),
                shared,
            }),
        }
    }

    /// The job as it lies in the store.
    pub fn job(&self) -> &RawJob {
        &self.inner.job
    }

    /// The job type's name.
    pub fn name(&self) -> &str {
        &self.inner.job_type.name
    }

    /// The job's id.
    pub fn id(&self) -> &str {
        self.inner.job.id()
    }

    /// The id of the worker, one slot of the pool, that runs the job.
    pub fn worker_id(&self) -> &str {
        &self.inner.worker
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        u32::try_from(self.inner.job.fails().max(0)).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// How many attempts the job gets in all.
    pub fn max_attempts(&self) -> u32 {
        self.inner.job_type.options.max_fails
    }

    /// Whether a failure of this attempt ends the job.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= self.max_attempts()
    }

    /// A handle to enqueue more jobs.
    pub fn client(&self) -> &Client {
        &self.inner.shared.client
    }

    /// A value of type `T`: the one that middleware attached to this job, or else the pool's
    /// ([`WorkerPool::state`](crate::WorkerPool::state)).
    ///
    /// # Panics
    ///
    /// If there is none. The job then fails with a message that says what to add; [`Context::try_state`] asks first.
    pub fn state<T: Send + Sync + 'static>(&self) -> Arc<T> {
        self.try_state().unwrap_or_else(|| {
            panic!(
                "no state of type `{0}`: add it with `.state(…)` to the WorkerPool, or attach it in a middleware \
                 with `ctx.attach(…)`",
                type_name::<T>()
            )
        })
    }

    /// As [`Context::state`]; `None` if there is none.
    pub fn try_state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let attached = self.attached().get(&TypeId::of::<T>()).cloned();
        let value = attached.or_else(|| self.inner.shared.state.get(&TypeId::of::<T>()).cloned())?;
        value.downcast().ok()
    }

    /// Attaches a value to this attempt of this job, for the handler and the middleware further in. It replaces
    /// one of the same type, and hides the pool's.
    pub fn attach<T: Send + Sync + 'static>(&self, value: T) {
        self.attached().insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// Shows a line with the job on screens: what it does, how far it is. Costs nothing worth mentioning and never waits; what
    /// was said last within a second is written. The line ends with the attempt.
    pub fn checkin(&self, text: impl Into<String>) {
        let now = self.inner.shared.clock().now().unwrap_or_else(clock::wall_now);
        let mut text = text.into();
        let end = (0..=MAX_CHECKIN.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        self.inner.check_in.say(text, now.as_second());
    }

    /// [`Context::checkin`] with how much of the work is done, as `done/total`.
    pub fn progress(&self, done: u64, total: u64) {
        self.checkin(format!("{done}/{total}"));
    }

    /// Completes when the job should stop: its time is up, or the pool is shutting down and out of patience, or it
    /// has lost the job to another pool. An async handler that does not react is dropped soon after.
    pub async fn cancelled(&self) {
        self.inner.token.cancelled().await;
    }

    /// Whether the job should stop; for blocking handlers, which have to look now and then.
    pub fn is_cancelled(&self) -> bool {
        self.inner.token.is_cancelled()
    }

    /// The token behind [`Context::cancelled`], for code that takes one.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.inner.token.clone()
    }

    /// Whether the pool can't reach its store, so that other pools may come to take this job over. Nothing is lost yet:
    /// if the store comes back in time the job goes on as if nothing had been. A handler that is about to do something
    /// that must not happen twice may want to wait.
    pub fn at_risk(&self) -> bool {
        self.inner.shared.at_risk()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    pub(crate) fn job_type(&self) -> &JobType {
        &self.inner.job_type
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.inner.token
    }

    pub(crate) fn blocking_threads(&self) -> tokio::runtime::Handle {
        self.inner.shared.blocking.handle()
    }

    fn attached(&self) -> std::sync::MutexGuard<'_, TypeMap> {
        self.inner.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
