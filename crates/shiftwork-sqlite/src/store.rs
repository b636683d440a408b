//! [`SqliteStore`]: each verb of the trait, and where its work is done.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{
    Backlog, Beat, BeatReply, Claim, Exchange, Exchanged, Held, Look, Looked, Observation, Promoted, Push,
    Pushed, QueueAudit, Recover, Recovered, Start, Store, StoreFuture, Tick, Timed, WaitFor, WaitFuture,
};
use shiftwork_core::{Error, clock};

use crate::changes::Changed;
use crate::database::Database;
use crate::errors::SqlResult;
use crate::transaction::Transaction;
use crate::{Durability, due, periodic, recovery, verbs};

/// Jobs pushed in one transaction. A larger push is cut into several: others get their turn in between.
const PUSH_SLICE: usize = 5_000;

/// Jobs in an embedded SQLite file. Cheap to clone; all clones, and all that open the same file in this process, share one
/// writer.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    database: Arc<Database>,
    namespace: i64,
    namespace_name: String,
    /// Milliseconds that the clock of this store object is ahead: 0 but in tests.
    ahead: AtomicU64,
}

/// Options for a [`SqliteStore`].
#[derive(Debug, Clone)]
pub struct SqliteStoreBuilder {
    path: Option<PathBuf>,
    namespace: String,
    durability: Durability,
}

impl SqliteStoreBuilder {
    /// The namespace within the file [default: `work`]. One file holds any number of them.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Which commits wait for the disk [default: [`Durability::Enqueued`]].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Opens the file; makes it if there is none, and brings it to this program's format.
    ///
    /// # Errors
    ///
    /// [`Error::is_config`] if there can be no such file: no directory, no permission, a network file system, a file of
    /// another program or of a newer Shiftwork.
    pub async fn open(self) -> Result<SqliteStore, Error> {
        let Self { path, namespace, durability } = self;
        let (opened, receiver) = tokio::sync::oneshot::channel();
        // A thread of its own: opening may wait for the disk and for other processes.
        std::thread::spawn(move || {
            let database = match &path {
                Some(path) => Database::open(path, durability),
                None => Database::in_memory(),
            };
            let _ = opened.send(database);
        });
        let database = receiver.await.unwrap_or_else(|_| Err(crate::errors::thread_ended()))?;
        let name = namespace.clone();
        let id =
            database.write(Duration::ZERO, true, move |transaction| namespace_id(transaction, &name)).await?;
        let ahead = AtomicU64::new(0);
        Ok(SqliteStore {
            inner: Arc::new(Inner { database, namespace: id.value, namespace_name: namespace, ahead }),
        })
    }
}

fn namespace_id(transaction: &Transaction<'_>, name: &str) -> SqlResult<i64> {
    transaction.execute("INSERT INTO namespace (name) VALUES (?1) ON CONFLICT DO NOTHING", [name])?;
    let id = transaction.first("SELECT id FROM namespace WHERE name = ?1", [name], |row| row.get(0))?;
    id.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

impl SqliteStore {
    /// Opens the namespace `work` in the file at `path`, and makes the file if there is none; see
    /// [`SqliteStore::builder`] for more.
    ///
    /// # Errors
    ///
    /// As [`SqliteStoreBuilder::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder(path).open().await
    }

    /// A store in memory, gone with its last clone.
    ///
    /// # Errors
    ///
    /// [`Error::is_config`] if no thread can be made.
    pub async fn in_memory() -> Result<Self, Error> {
        Self::memory_builder().open().await
    }

    /// Options for a file.
    pub fn builder(path: impl AsRef<Path>) -> SqliteStoreBuilder {
        SqliteStoreBuilder { path: Some(path.as_ref().to_owned()), ..Self::memory_builder() }
    }

    /// Options for a store in memory.
    pub fn memory_builder() -> SqliteStoreBuilder {
        SqliteStoreBuilder { path: None, namespace: "work".to_owned(), durability: Durability::default() }
    }

    /// Moves the clock of this store object ahead of the machine's: tests step through days with it.
    #[doc(hidden)]
    pub fn set_clock_offset(&self, ahead: Duration) {
        let millis = u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX);
        self.inner.ahead.store(millis, Ordering::Relaxed);
    }

    /// Runs `action` with the connection that writes and the id of the namespace: tests look and meddle with it.
    #[doc(hidden)]
    pub async fn with_connection<T: Send + 'static>(
        &self,
        mut action: impl FnMut(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let meddle = move |transaction: &Transaction<'_>, namespace| {
            transaction.note(Changed::ANYTHING);
            // Whatever is known of the queues may be wrong after this.
            transaction.rows().clear();
            action(transaction.connection(), namespace)
        };
        Ok(self.write(false, meddle).await?.value)
    }

    fn ahead(&self) -> Duration {
        Duration::from_millis(self.inner.ahead.load(Ordering::Relaxed))
    }

    async fn write<T: Send + 'static>(
        &self,
        durable: bool,
        mut action: impl FnMut(&Transaction<'_>, i64) -> SqlResult<T> + Send + 'static,
    ) -> Result<Timed<T>, Error> {
        let namespace = self.inner.namespace;
        self.inner
            .database
            .write(self.ahead(), durable, move |transaction| action(transaction, namespace))
            .await
    }

    async fn read<T: Send + 'static>(
        &self,
        mut action: impl FnMut(&Transaction<'_>, i64) -> SqlResult<T> + Send + 'static,
    ) -> Result<Timed<T>, Error> {
        let namespace = self.inner.namespace;
        self.inner.database.read(self.ahead(), move |transaction| action(transaction, namespace)).await
    }

    async fn push_slices(&self, jobs: &[Push]) -> Result<Timed<Vec<Pushed>>, Error> {
        let mut pushed = Timed { now: clock::add(clock::wall_now(), self.ahead()), value: Vec::new() };
        // All at once: they are written in this order, and the thread need not wait for the next.
        let slices: Result<Vec<_>, Error> = jobs
            .chunks(PUSH_SLICE)
            .map(|slice| {
                let (slice, namespace) = (slice.to_vec(), self.inner.namespace);
                let push = move |transaction: &Transaction<'_>| verbs::push(transaction, namespace, &slice);
                self.inner.database.begin_write(self.ahead(), true, push)
            })
            .collect();
        for slice in slices? {
            let reply = slice.get().await?;
            pushed.now = reply.now;
            pushed.value.extend(reply.value);
        }
        Ok(pushed)
    }

    async fn wait_for(&self, wait: WaitFor) -> Result<(), Error> {
        let kind = match &wait {
            WaitFor::Work { .. } => Changed::WORK,
            WaitFor::EarlierDue { .. } => Changed::DUE,
        };
        let mut waiter = self.inner.database.changes.wait_for(kind);
        loop {
            waiter.begin();
            let wait = wait.clone();
            let look = self
                .read(move |transaction, namespace| match &wait {
                    WaitFor::Work { queues } => verbs::has_work(transaction, namespace, queues),
                    WaitFor::EarlierDue { than } => {
                        let next = due::next_due(transaction, namespace)?;
                        Ok(next.is_some_and(|due| than.is_none_or(|than| due < than)))
                    }
                })
                .await?;
            if look.value {
                return Ok(());
            }
            waiter.changed().await;
        }
    }
}

impl Store for SqliteStore {
    fn describe(&self) -> String {
        format!("{} (namespace {:?})", self.inner.database.describe(), self.inner.namespace_name)
    }

    fn push<'a>(&'a self, jobs: &'a [Push]) -> StoreFuture<'a, Vec<Pushed>> {
        Box::pin(self.push_slices(jobs))
    }

    fn exchange<'a>(&'a self, request: &'a Exchange) -> StoreFuture<'a, Exchanged> {
        let request = request.clone();
        Box::pin(
            self.write(false, move |transaction, namespace| {
                verbs::exchange(transaction, namespace, &request)
            }),
        )
    }

    fn start<'a>(&'a self, started: &'a [Start]) -> StoreFuture<'a, ()> {
        let started = started.to_vec();
        Box::pin(
            self.write(false, move |transaction, namespace| verbs::start(transaction, namespace, &started)),
        )
    }

    fn release<'a>(&'a self, pool: &'a PoolId, claims: &'a [Claim]) -> StoreFuture<'a, usize> {
        let (pool, claims) = (pool.clone(), claims.to_vec());
        Box::pin(self.write(false, move |transaction, namespace| {
            verbs::release(transaction, namespace, &pool, &claims)
        }))
    }

    fn promote(&self, limit: usize) -> StoreFuture<'_, Promoted> {
        Box::pin(self.write(false, move |transaction, namespace| due::promote(transaction, namespace, limit)))
    }

    fn beat<'a>(&'a self, beat: &'a Beat) -> StoreFuture<'a, BeatReply> {
        let beat = beat.clone();
        Box::pin(self.write(false, move |transaction, namespace| verbs::beat(transaction, namespace, &beat)))
    }

    fn leave<'a>(&'a self, pool: &'a PoolId, _queues: &'a [JobName]) -> StoreFuture<'a, ()> {
        let pool = pool.clone();
        Box::pin(self.write(false, move |transaction, namespace| verbs::leave(transaction, namespace, &pool)))
    }

    fn own_claims<'a>(&'a self, pool: &'a PoolId, queues: &'a [JobName]) -> StoreFuture<'a, Vec<Claim>> {
        let (pool, queues) = (pool.clone(), queues.to_vec());
        Box::pin(
            self.read(move |transaction, namespace| {
                verbs::own_claims(transaction, namespace, &pool, &queues)
            }),
        )
    }

    fn backlog<'a>(&'a self, queues: &'a [JobName]) -> StoreFuture<'a, Backlog> {
        let queues = queues.to_vec();
        Box::pin(self.read(move |transaction, namespace| verbs::backlog(transaction, namespace, &queues)))
    }

    fn tick<'a>(&'a self, ticks: &'a [Tick]) -> StoreFuture<'a, Vec<bool>> {
        let ticks = ticks.to_vec();
        Box::pin(
            self.write(true, move |transaction, namespace| periodic::tick(transaction, namespace, &ticks)),
        )
    }

    fn last_ticks<'a>(&'a self, schedules: &'a [String]) -> StoreFuture<'a, Vec<Option<i64>>> {
        let schedules = schedules.to_vec();
        Box::pin(
            self.read(move |transaction, namespace| periodic::last_ticks(transaction, namespace, &schedules)),
        )
    }

    fn watch<'a>(&'a self, done: &'a [String], asked: &'a [String]) -> StoreFuture<'a, Vec<bool>> {
        let (done, asked) = (done.to_vec(), asked.to_vec());
        Box::pin(self.write(false, move |transaction, namespace| {
            periodic::watch(transaction, namespace, &done, &asked)
        }))
    }

    fn observe<'a>(&'a self, observations: &'a [Observation]) -> StoreFuture<'a, ()> {
        let observations = observations.to_vec();
        Box::pin(self.write(false, move |transaction, namespace| {
            recovery::observe(transaction, namespace, &observations)
        }))
    }

    fn look<'a>(&'a self, look: &'a Look) -> StoreFuture<'a, Looked> {
        let look = *look;
        Box::pin(
            self.write(false, move |transaction, namespace| recovery::look(transaction, namespace, &look)),
        )
    }

    fn held<'a>(
        &'a self,
        pool: &'a PoolId,
        queues: &'a [JobName],
        limit: usize,
    ) -> StoreFuture<'a, Vec<Held>> {
        let (pool, queues) = (pool.clone(), queues.to_vec());
        Box::pin(self.read(move |transaction, namespace| {
            recovery::held(transaction, namespace, &pool, &queues, limit)
        }))
    }

    fn recover<'a>(&'a self, recover: &'a Recover) -> StoreFuture<'a, Recovered> {
        let recover = recover.clone();
        Box::pin(
            self.write(false, move |transaction, namespace| {
                recovery::recover(transaction, namespace, &recover)
            }),
        )
    }

    fn audit<'a>(&'a self, _queues: &'a [JobName]) -> StoreFuture<'a, Vec<QueueAudit>> {
        Box::pin(self.read(recovery::audit))
    }

    fn note_unknown<'a>(&'a self, pools: &'a [PoolId]) -> StoreFuture<'a, Vec<i64>> {
        let pools = pools.to_vec();
        Box::pin(self.write(false, move |transaction, namespace| {
            recovery::note_unknown(transaction, namespace, &pools)
        }))
    }

    fn reaper_lock<'a>(&'a self, token: &'a str, hold: Option<Duration>) -> StoreFuture<'a, bool> {
        let token = token.to_owned();
        Box::pin(self.write(false, move |transaction, namespace| {
            recovery::reaper_lock(transaction, namespace, &token, hold)
        }))
    }

    fn repair<'a>(&'a self, audit: &'a QueueAudit) -> StoreFuture<'a, bool> {
        let audit = audit.clone();
        Box::pin(
            self.write(false, move |transaction, namespace| recovery::repair(transaction, namespace, &audit)),
        )
    }

    fn wait(&self, wait: WaitFor) -> WaitFuture<'_> {
        Box::pin(self.wait_for(wait))
    }

    /// The same threads, which no runtime of the caller can block; the heartbeat then gets a runtime of its own.
    fn dedicated(&self) -> Option<StoreFuture<'_, Arc<dyn Store>>> {
        let store: Arc<dyn Store> = Arc::new(self.clone());
        Some(Box::pin(async move { Ok(self.time().await?.with(store)) }))
    }
}
