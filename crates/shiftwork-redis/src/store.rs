//! [`RedisStore`]: each verb of the trait, and where its work is done.

use std::sync::Arc;
use std::time::Duration;

use shiftwork_core::Error;
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{
    Backlog, Beat, BeatReply, Claim, Exchange, Exchanged, Held, Look, Looked, Observation, Promoted, Push,
    Pushed, QueueAudit, Recover, Recovered, Start, Store, StoreFuture, Tick, WaitFor, WaitFuture,
};

use crate::connect::RedisStoreBuilder;
use crate::connection::Connection;
use crate::keys::Keys;
use crate::reply::ClockOffset;
use crate::{audit, claims, due, exchange, periodic, pools, push, recovery, wake};

/// Jobs on Redis or Valkey, in the layout of the Go library gocraft/work. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) connection: Connection,
    pub(crate) keys: Keys,
    pub(crate) known: push::KnownJobs,
    pub(crate) offset: ClockOffset,
    pub(crate) wake: wake::Wake,
    namespace: String,
}

impl RedisStore {
    /// Connects to the namespace `work` at `redis://`, `rediss://` or `unix://`; see [`RedisStore::builder`] for more.
    ///
    /// # Errors
    ///
    /// As [`RedisStoreBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder(url).connect().await
    }

    /// Options for a connection.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url)
    }

    pub(crate) fn new(connection: Connection, namespace: &str) -> Self {
        Self {
            inner: Arc::new(Inner {
                connection,
                keys: Keys::new(namespace),
                known: push::KnownJobs::default(),
                offset: ClockOffset::default(),
                wake: wake::Wake::default(),
                namespace: namespace.to_owned(),
            }),
        }
    }

    /// Moves the clock of this store object against the server's: tests step through days with it.
    #[doc(hidden)]
    pub fn set_clock_offset(&self, offset: Duration) {
        self.inner.offset.set(offset);
    }

    /// The same server and namespace over another connection, which is opened on the runtime that uses it first.
    fn separate(&self) -> Self {
        let target = self.inner.connection.target().clone();
        let separate = Self::new(Connection::new(target), &self.inner.namespace);
        separate.inner.offset.set(self.inner.offset.get());
        separate
    }
}

impl Store for RedisStore {
    fn describe(&self) -> String {
        format!("{} (namespace {:?})", self.inner.connection.target().place, self.inner.namespace)
    }

    fn push<'a>(&'a self, jobs: &'a [Push]) -> StoreFuture<'a, Vec<Pushed>> {
        Box::pin(push::push(&self.inner, jobs))
    }

    fn exchange<'a>(&'a self, request: &'a Exchange) -> StoreFuture<'a, Exchanged> {
        Box::pin(exchange::exchange(&self.inner, request))
    }

    fn start<'a>(&'a self, started: &'a [Start]) -> StoreFuture<'a, ()> {
        Box::pin(claims::start(&self.inner, started))
    }

    fn release<'a>(&'a self, pool: &'a PoolId, claims: &'a [Claim]) -> StoreFuture<'a, usize> {
        Box::pin(claims::release(&self.inner, pool, claims))
    }

    fn promote(&self, limit: usize) -> StoreFuture<'_, Promoted> {
        Box::pin(due::promote(&self.inner, limit))
    }

    fn beat<'a>(&'a self, beat: &'a Beat) -> StoreFuture<'a, BeatReply> {
        Box::pin(pools::beat(&self.inner, beat))
    }

    fn leave<'a>(&'a self, pool: &'a PoolId, queues: &'a [JobName]) -> StoreFuture<'a, ()> {
        Box::pin(pools::leave(&self.inner, pool, queues))
    }

    fn own_claims<'a>(&'a self, pool: &'a PoolId, queues: &'a [JobName]) -> StoreFuture<'a, Vec<Claim>> {
        Box::pin(claims::own_claims(&self.inner, pool, queues))
    }

    fn backlog<'a>(&'a self, queues: &'a [JobName]) -> StoreFuture<'a, Backlog> {
        Box::pin(claims::backlog(&self.inner, queues))
    }

    fn tick<'a>(&'a self, ticks: &'a [Tick]) -> StoreFuture<'a, Vec<bool>> {
        Box::pin(periodic::tick(&self.inner, ticks))
    }

    fn last_ticks<'a>(&'a self, schedules: &'a [String]) -> StoreFuture<'a, Vec<Option<i64>>> {
        Box::pin(periodic::last_ticks(&self.inner, schedules))
    }

    fn watch<'a>(&'a self, done: &'a [String], asked: &'a [String]) -> StoreFuture<'a, Vec<bool>> {
        Box::pin(periodic::watch(&self.inner, done, asked))
    }

    fn observe<'a>(&'a self, observations: &'a [Observation]) -> StoreFuture<'a, ()> {
        Box::pin(pools::observe(&self.inner, observations))
    }

    fn look<'a>(&'a self, look: &'a Look) -> StoreFuture<'a, Looked> {
        Box::pin(recovery::look(&self.inner, look))
    }

    fn held<'a>(
        &'a self,
        pool: &'a PoolId,
        queues: &'a [JobName],
        limit: usize,
    ) -> StoreFuture<'a, Vec<Held>> {
        Box::pin(recovery::held(&self.inner, pool, queues, limit))
    }

    fn recover<'a>(&'a self, recover: &'a Recover) -> StoreFuture<'a, Recovered> {
        Box::pin(recovery::recover(&self.inner, recover))
    }

    fn audit<'a>(&'a self, queues: &'a [JobName]) -> StoreFuture<'a, Vec<QueueAudit>> {
        Box::pin(audit::audit(&self.inner, queues))
    }

    fn note_unknown<'a>(&'a self, pools: &'a [PoolId]) -> StoreFuture<'a, Vec<i64>> {
        Box::pin(audit::note_unknown(&self.inner, pools))
    }

    fn reaper_lock<'a>(&'a self, token: &'a str, hold: Option<Duration>) -> StoreFuture<'a, bool> {
        Box::pin(audit::reaper_lock(&self.inner, token, hold))
    }

    fn repair<'a>(&'a self, audit: &'a QueueAudit) -> StoreFuture<'a, bool> {
        Box::pin(audit::repair(&self.inner, audit))
    }

    fn wait(&self, wait: WaitFor) -> WaitFuture<'_> {
        Box::pin(wake::wait(&self.inner, wait))
    }

    fn dedicated(&self) -> Option<StoreFuture<'_, Arc<dyn Store>>> {
        let separate = self.separate();
        Some(Box::pin(async move {
            let time = separate.time().await?;
            let store: Arc<dyn Store> = Arc::new(separate);
            Ok(time.with(store))
        }))
    }
}
