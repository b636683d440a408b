//! The connection on which the server reports changed keys.
//!
//! It is a plain one, which does not reconnect by itself: a new connection tracks nothing, so everything has to be read
//! again first. While anybody waits, it is checked now and then that a report really comes: a proxy may swallow them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError, Value};
use shiftwork_core::Error;
use shiftwork_core::clock::{self, Instant};
use tokio::sync::{oneshot, watch};

use super::cache::{Cache, Question};
use super::{number, pipeline_of};
use crate::errors::ends_connection;
use crate::store::Inner;

/// How long to poll before reports are tried again where they do not come.
const RETRY: Duration = Duration::from_secs(60);
/// How often to check that reports come.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// How long a report of the check may take.
const CHECK_PATIENCE: Duration = Duration::from_secs(2);
/// A connection that ends sooner than this is not opened anew at once.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// How to find out that something has changed.
pub(super) enum Way {
    /// What is read on this connection is reported when it changes.
    Tracked(MultiplexedConnection),
    /// By looking, until then.
    PollUntil(Instant),
}

/// The connection, and what is known by it.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    shared: Arc<Shared>,
    open: Mutex<Open>,
    /// Held while connecting, so that all who wait share one connection.
    connecting: tokio::sync::Mutex<()>,
    waiters: AtomicUsize,
    /// The log has said that this store polls.
    said: AtomicBool,
}

#[derive(Default)]
struct Open {
    connection: Option<(u64, MultiplexedConnection)>,
    opened: Option<Instant>,
    poll_until: Option<Instant>,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.connection.is_some() { "open" } else { "closed" })
    }
}

/// What the driver's task, which takes reports in, shares with those who wait.
#[derive(Debug)]
struct Shared {
    known: Mutex<Known>,
    changes: watch::Sender<()>,
    /// Something was reported since work was found last.
    reported: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    cache: Cache,
    /// Counts connections: what an old one still says does not count.
    generation: u64,
    is_open: bool,
    check: Option<(String, oneshot::Sender<()>)>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { known: Mutex::default(), changes: watch::Sender::new(()), reported: AtomicBool::new(false) }
    }
}

impl Shared {
    /// Takes in what the server says unasked.
    fn pushed(&self, generation: u64, push: &PushInfo) {
        let mut known = lock(&self.known);
        if known.generation != generation {
            return;
        }
        match push.kind {
            PushKind::Invalidate => {
                let now = clock::now();
                // No keys: all of them, in FLUSHALL.
                let Some(Value::Array(keys)) = push.data.first() else {
                    known.cache.all_changed(now);
                    return self.tell(known);
                };
                let mut awaited = false;
                for key in keys {
                    let Value::BulkString(key) = key else { continue };
                    let Ok(key) = std::str::from_utf8(key) else { continue };
                    awaited |= known.cache.changed(key, now, fastrand::f64());
                    if known.check.as_ref().is_some_and(|(checked, _)| checked == key)
                        && let Some((_, heard)) = known.check.take()
                    {
                        // Whoever checks may have lost patience.
                        let _ = heard.send(());
                    }
                }
                if awaited {
                    self.tell(known);
                }
            }
            PushKind::Disconnection => {
                known.is_open = false;
                self.tell(known);
            }
            _ => {}
        }
    }

    fn tell(&self, known: MutexGuard<'_, Known>) {
        drop(known);
        self.reported.store(true, Ordering::Relaxed);
        self.changes.send_replace(());
    }
}

/// Somebody who waits.
pub(super) struct Waiter<'a>(&'a AtomicUsize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tracked {
    /// Counts the caller among those who wait.
    pub(super) fn waiter(&self) -> Waiter<'_> {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        Waiter(&self.waiters)
    }

    /// Changes from now on.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    pub(super) fn with_cache<T>(&self, f: impl FnOnce(&mut Cache) -> T) -> T {
        f(&mut lock(&self.shared.known).cache)
    }

    /// Whether a report about one of them promises work.
    pub(super) fn is_promising(&self, questions: &[Question]) -> bool {
        self.with_cache(|cache| questions.iter().any(|question| cache.is_promising(&question.key)))
    }

    /// Work was found; `keys` says whose reports led there.
    pub(super) fn found(&self, keys: impl FnOnce() -> Vec<String>) {
        // On the hot path: nothing but a look while no reports come.
        if self.shared.reported.swap(false, Ordering::Relaxed) {
            let keys = keys();
            self.with_cache(|cache| keys.iter().for_each(|key| cache.bore_fruit(key)));
        }
    }

    /// Asks the server.
    pub(super) async fn ask(
        &self,
        connection: &MultiplexedConnection,
        questions: &[Question],
    ) -> Result<(), RedisError> {
        let reading = self.with_cache(|cache| cache.reading(questions));
        let replies: Result<Vec<Result<Value, RedisError>>, _> =
            pipeline_of(questions).ignore_errors().query_async(&mut connection.clone()).await;
        let failure = match &replies {
            Ok(replies) => {
                replies.iter().find_map(|reply| reply.as_ref().err().filter(|error| ends_connection(error)))
            }
            Err(error) => Some(error),
        };
        if let Some(error) = failure {
            let error = error.clone();
            self.close();
            return Err(error);
        }
        let values: Vec<_> = replies?.iter().map(number).collect();
        self.with_cache(|cache| cache.read(reading, questions, &values));
        Ok(())
    }

    /// The connection, opened if need be.
    pub(super) async fn way(&self, inner: &Arc<Inner>) -> Result<Way, Error> {
        if let Some(way) = self.current_way() {
            return Ok(way);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(way) = self.current_way() {
            return Ok(way);
        }
        let opened = lock(&self.open).opened;
        if let Some(until) = opened.map(|opened| opened + SHORT_LIFE).filter(|until| *until > clock::now()) {
            lock(&self.open).poll_until = Some(until);
            return Ok(Way::PollUntil(until));
        }
        match self.connect(inner).await {
            Ok(connection) => Ok(Way::Tracked(connection)),
            Err(error) if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() => {
                Err(inner.connection.error(&error))
            }
            Err(error) => Ok(self.give_up(inner, &error.to_string())),
        }
    }

    fn current_way(&self) -> Option<Way> {
        let open = lock(&self.open);
        if let Some(until) = open.poll_until.filter(|until| *until > clock::now()) {
            return Some(Way::PollUntil(until));
        }
        let (generation, connection) = open.connection.as_ref()?;
        let known = lock(&self.shared.known);
        (known.is_open && known.generation == *generation).then(|| Way::Tracked(connection.clone()))
    }

    async fn connect(&self, inner: &Arc<Inner>) -> Result<MultiplexedConnection, RedisError> {
        let generation = {
            let mut known = lock(&self.shared.known);
            known.generation += 1;
            known.cache.clear();
            known.is_open = true;
            known.generation
        };
        let target = inner.connection.target();
        let shared = self.shared.clone();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(target.connect_timeout))
            .set_response_timeout(Some(target.response_timeout))
            .set_push_sender(move |push: PushInfo| {
                shared.pushed(generation, &push);
                Ok::<_, ()>(())
            });
        let mut connection =
            target.resp3_client.get_multiplexed_async_connection_with_config(&config).await?;
        // Without NOLOOP: with it a server that runs out of room for keys forgets one without a word, if that happens while this
        // client reads another one. Nothing is written on this connection anyway.
        let mut tracking = redis::cmd("CLIENT");
        let () = tracking.arg("TRACKING").arg("ON").query_async(&mut connection).await?;
        {
            let mut open = lock(&self.open);
            open.connection = Some((generation, connection.clone()));
            open.opened = Some(clock::now());
        }
        tokio::spawn(guard(Arc::downgrade(inner), generation));
        Ok(connection)
    }

    fn close(&self) {
        lock(&self.open).connection = None;
        lock(&self.shared.known).is_open = false;
        self.shared.changes.send_replace(());
    }

    /// Reports do not come: poll for a while.
    fn give_up(&self, inner: &Inner, reason: &str) -> Way {
        if !self.said.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target: "shiftwork", place = inner.connection.target().place, reason,
                "this server does not wake idle pools (CLIENT TRACKING over RESP3), so they look for work by \
                 themselves, at least once a second; the guide's chapter on Redis says what is needed"
            );
        }
        let until = clock::now() + RETRY;
        lock(&self.open).poll_until = Some(until);
        self.close();
        Way::PollUntil(until)
    }
}

/// Checks now and then that reports come on the connection, and closes it when nobody waits any more.
async fn guard(inner: Weak<Inner>, generation: u64) {
    loop {
        let Some(inner_now) = inner.upgrade() else { return };
        let tracked = &inner_now.wake.tracked;
        let is_current = lock(&tracked.open).connection.as_ref().is_some_and(|(open, _)| *open == generation);
        if !is_current {
            return;
        }
        if tracked.waiters.load(Ordering::Relaxed) == 0 {
            return tracked.close();
        }
        match check(&inner_now).await {
            Check::Heard => {
                if tracked.said.swap(false, Ordering::Relaxed) {
                    tracing::info!(
                        target: "shiftwork", place = inner_now.connection.target().place,
                        "the server wakes idle pools again"
                    );
                }
            }
            Check::NotHeard => {
                tracked.give_up(&inner_now, "the report of a changed key did not arrive");
                return;
            }
            Check::Unknown => {}
        }
        drop(inner_now);
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

enum Check {
    Heard,
    NotHeard,
    /// The server took no command, or the connection was lost: that says nothing about reports.
    Unknown,
}

/// Reads a key on the tracked connection, changes it on the other one, and listens.
async fn check(inner: &Inner) -> Check {
    let tracked = &inner.wake.tracked;
    let Some((_, mut connection)) = lock(&tracked.open).connection.clone() else { return Check::Unknown };
    let key = inner.keys.wake_check(fastrand::u64(..));
    let (heard, hearing) = oneshot::channel();
    lock(&tracked.shared.known).check = Some((key.clone(), heard));
    let read: Result<Value, _> = redis::cmd("GET").arg(&key).query_async(&mut connection).await;
    if let Err(error) = read {
        if ends_connection(&error) {
            tracked.close();
        }
        return Check::Unknown;
    }
    let mut change = redis::cmd("SET");
    change.arg(&key).arg(1).arg("PX").arg(CHECK_PATIENCE.as_millis() as u64);
    let changed: Result<Value, _> = inner.connection.try_query(&change).await;
    if changed.is_err() {
        return Check::Unknown;
    }
    match tokio::time::timeout(CHECK_PATIENCE, hearing).await {
        Ok(Ok(())) => Check::Heard,
        _ if !lock(&tracked.shared.known).is_open => Check::Unknown,
        _ => Check::NotHeard,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
