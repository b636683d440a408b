//! A store inside the process: the reference model, and the store for tests.
//!
//! [`MemoryStore`] keeps everything in plain collections behind one mutex. It spawns nothing and waits for nothing but
//! its own changes, so tokio's paused time works with it. Its clock can be moved by hand and its calls can be made to
//! fail ([`Fault`]), before or after they took effect.

mod faults;
mod periodic;
mod recovery;
mod snapshot;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

pub use faults::{Fault, Verb};
pub use snapshot::{QueueSnapshot, Snapshot};

use crate::clock;
use crate::error::Error;
use crate::job::{JobName, PoolId};
use crate::store::{
    Backlog, Beat, BeatReply, Claim, Exchange, Exchanged, Held, Look, Looked, Observation, Promoted, Push,
    Pushed, QueueAudit, Recover, Recovered, Start, Store, StoreFuture, Tick, Timed, WaitFor, WaitFuture,
};
use faults::Faults;
use state::State;

/// A store inside the process. Clones share the same jobs.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    faults: Mutex<Faults>,
    clock: Mutex<ManualClock>,
    /// Counts changes, so that a waiter can tell whether it missed one.
    changes: watch::Sender<u64>,
}

/// Time that runs with tokio's clock from a given start, and can be moved ahead by hand.
#[derive(Debug)]
struct ManualClock {
    base: Timestamp,
    since: clock::Instant,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store whose clock starts at this machine's time.
    pub fn new() -> Self {
        Self::at(clock::wall_now())
    }

    /// An empty store whose clock starts at `start`. From there it runs with tokio's clock, paused or not.
    pub fn at(start: Timestamp) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                faults: Mutex::default(),
                clock: Mutex::new(ManualClock { base: start, since: clock::now() }),
                changes: watch::Sender::new(0),
            }),
        }
    }

    /// Moves the store's clock ahead. What becomes due by that is due at once.
    pub fn advance(&self, by: Duration) {
        {
            let mut clock = lock(&self.shared.clock);
            clock.base = clock::add(clock.base, by);
        }
        self.changed();
    }

    /// The store's clock.
    pub fn now(&self) -> Timestamp {
        let manual = lock(&self.shared.clock);
        clock::add(manual.base, clock::now().saturating_duration_since(manual.since))
    }

    /// Makes the next call of `verb` that has no fault waiting yet fail in the given way.
    pub fn inject(&self, verb: Verb, fault: Fault) {
        lock(&self.shared.faults).push(verb, fault);
    }

    /// How often a verb was called so far.
    pub fn calls(&self, verb: Verb) -> usize {
        lock(&self.shared.faults).calls(verb)
    }

    /// Starts or ends an outage, during which every call fails as if the store were out of reach.
    pub fn set_outage(&self, down: bool) {
        lock(&self.shared.faults).set_outage(down);
        self.changed();
    }

    /// Stops a queue from giving jobs, or lets it give them again.
    pub fn set_paused(&self, queue: &JobName, paused: bool) {
        self.change(|state| state.queue(queue).paused = paused);
    }

    /// Sets how many jobs of a queue may run at once over all pools; `None` removes the limit.
    pub fn set_max_concurrency(&self, queue: &JobName, limit: Option<u32>) {
        self.change(|state| state.queue(queue).max_concurrency = limit);
    }

    /// Sets the store's clock.
    #[cfg(feature = "conformance")]
    pub(crate) fn set_now(&self, now: Timestamp) {
        *lock(&self.shared.clock) = ManualClock { base: now, since: clock::now() };
    }

    /// Puts bytes into a place, past all checks.
    #[cfg(feature = "conformance")]
    pub(crate) fn plant(&self, place: crate::conformance::Place<'_>, job: &[u8]) {
        use crate::conformance::Place;
        self.change(|state| match place {
            Place::Queue(queue) => state.queue(queue).jobs.push_back(job.into()),
            Place::Scheduled(at) => state.scheduled.insert(at, job.into()),
            Place::Retry(at) => state.retry.insert(at, job.into()),
        });
    }

    /// Sets a unique key, past all checks.
    #[cfg(feature = "conformance")]
    pub(crate) fn set_unique(&self, key: &str, owner: &str) {
        let expires_at = self.now().as_second() + 86_400;
        let entry = state::UniqueEntry { owner: owner.to_owned(), expires_at };
        self.change(|state| drop(state.unique.insert(key.to_owned(), entry)));
    }

    /// Everything in the store.
    pub fn snapshot(&self) -> Snapshot {
        let now = self.now().as_second();
        Snapshot::of(&lock(&self.shared.state), now)
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut lock(&self.shared.state));
        self.changed();
        result
    }

    fn changed(&self) {
        self.shared.changes.send_modify(|count| *count += 1);
    }

    /// A verb: takes effect at once, unless a fault says otherwise.
    fn verb<'a, R: Send + 'a>(
        &'a self,
        verb: Verb,
        act: impl FnOnce(&mut State, i64) -> R + Send + 'a,
    ) -> StoreFuture<'a, R> {
        Box::pin(async move {
            let fault = lock(&self.shared.faults).take(verb);
            if let Some(error) = fault.and_then(|fault| fault.before(verb)) {
                return Err(error);
            }
            let now = self.now();
            let value = act(&mut lock(&self.shared.state), now.as_second());
            if verb.makes_work() {
                self.changed();
            }
            match fault.and_then(|fault| fault.after(verb)) {
                Some(error) => Err(error),
                None => Ok(Timed { now, value }),
            }
        })
    }

    fn check_outage(&self, verb: Verb) -> Result<(), Error> {
        match lock(&self.shared.faults).outage() {
            Some(fault) => Err(fault.before(verb).unwrap_or_else(|| faults::unavailable(verb))),
            None => Ok(()),
        }
    }
}

impl Store for MemoryStore {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn push<'a>(&'a self, jobs: &'a [Push]) -> StoreFuture<'a, Vec<Pushed>> {
        self.verb(Verb::Push, |state, now| jobs.iter().map(|job| state.push(job, now)).collect())
    }

    fn exchange<'a>(&'a self, request: &'a Exchange) -> StoreFuture<'a, Exchanged> {
        self.verb(Verb::Exchange, |state, _| state.exchange(request))
    }

    fn start<'a>(&'a self, started: &'a [Start]) -> StoreFuture<'a, ()> {
        self.verb(Verb::Start, |state, _| started.iter().for_each(|start| state.start(start)))
    }

    fn release<'a>(&'a self, pool: &'a PoolId, claims: &'a [Claim]) -> StoreFuture<'a, usize> {
        self.verb(Verb::Release, |state, _| state.release(pool, claims))
    }

    fn promote(&self, limit: usize) -> StoreFuture<'_, Promoted> {
        self.verb(Verb::Promote, move |state, now| state.promote(limit, now))
    }

    fn beat<'a>(&'a self, beat: &'a Beat) -> StoreFuture<'a, BeatReply> {
        self.verb(Verb::Beat, |state, now| state.beat(beat, now))
    }

    fn leave<'a>(&'a self, pool: &'a PoolId, _queues: &'a [JobName]) -> StoreFuture<'a, ()> {
        self.verb(Verb::Leave, |state, _| _ = state.pools.remove(pool))
    }

    fn own_claims<'a>(&'a self, pool: &'a PoolId, queues: &'a [JobName]) -> StoreFuture<'a, Vec<Claim>> {
        self.verb(Verb::OwnClaims, |state, _| state.own_claims(pool, queues))
    }

    fn backlog<'a>(&'a self, queues: &'a [JobName]) -> StoreFuture<'a, Backlog> {
        self.verb(Verb::Backlog, |state, _| state.backlog(queues))
    }

    fn tick<'a>(&'a self, ticks: &'a [Tick]) -> StoreFuture<'a, Vec<bool>> {
        self.verb(Verb::Tick, |state, now| ticks.iter().map(|tick| state.tick(tick, now)).collect())
    }

    fn last_ticks<'a>(&'a self, schedules: &'a [String]) -> StoreFuture<'a, Vec<Option<i64>>> {
        self.verb(Verb::LastTicks, |state, _| state.last_ticks(schedules))
    }

    fn watch<'a>(&'a self, done: &'a [String], asked: &'a [String]) -> StoreFuture<'a, Vec<bool>> {
        self.verb(Verb::Watch, |state, now| state.watch(done, asked, now))
    }

    fn observe<'a>(&'a self, observations: &'a [Observation]) -> StoreFuture<'a, ()> {
        self.verb(Verb::Observe, |state, _| observations.iter().for_each(|seen| state.observe(seen)))
    }

    fn look<'a>(&'a self, look: &'a Look) -> StoreFuture<'a, Looked> {
        let now = self.now();
        self.verb(Verb::Look, move |state, _| state.look(look, now))
    }

    fn held<'a>(
        &'a self,
        pool: &'a PoolId,
        queues: &'a [JobName],
        limit: usize,
    ) -> StoreFuture<'a, Vec<Held>> {
        self.verb(Verb::Held, move |state, _| state.held(pool, queues, limit))
    }

    fn recover<'a>(&'a self, recover: &'a Recover) -> StoreFuture<'a, Recovered> {
        self.verb(Verb::Recover, |state, now| state.recover(recover, now))
    }

    fn audit<'a>(&'a self, _queues: &'a [JobName]) -> StoreFuture<'a, Vec<QueueAudit>> {
        self.verb(Verb::Audit, |state, _| state.audit())
    }

    fn note_unknown<'a>(&'a self, pools: &'a [PoolId]) -> StoreFuture<'a, Vec<i64>> {
        self.verb(Verb::NoteUnknown, |state, now| state.note_unknown(pools, now))
    }

    fn reaper_lock<'a>(&'a self, token: &'a str, hold: Option<Duration>) -> StoreFuture<'a, bool> {
        self.verb(Verb::ReaperLock, move |state, now| state.reaper_lock(token, hold, now))
    }

    /// Nothing to repair: what runs is counted, not kept count of.
    fn repair<'a>(&'a self, _audit: &'a QueueAudit) -> StoreFuture<'a, bool> {
        self.verb(Verb::Repair, |_, _| false)
    }

    fn wait(&self, wait: WaitFor) -> WaitFuture<'_> {
        Box::pin(async move {
            let mut changes = self.shared.changes.subscribe();
            loop {
                changes.borrow_and_update();
                self.check_outage(Verb::Wait)?;
                let awaited = {
                    let state = lock(&self.shared.state);
                    match &wait {
                        WaitFor::Work { queues } => state.has_work(queues),
                        WaitFor::EarlierDue { than } => {
                            state.next_due().is_some_and(|due| than.is_none_or(|than| due < than))
                        }
                    }
                };
                if awaited {
                    return Ok(());
                }
                // The sender lives as long as `self`, so this can't fail.
                let _ = changes.changed().await;
            }
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds one of these locks and leaves half a change behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
