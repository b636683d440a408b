//! The dispatcher: one task per pool that claims jobs into free slots and hands their ends back, in one round trip.
//!
//! It is an actor. Everything that happens reaches it as an [`Event`]: a job ended, an exchange was answered, the store
//! may have work. Between events it decides whether to send another exchange. Store calls run in tasks of their own, so no call
//! is ever dropped half-way; at most [`MAX_IN_FLIGHT`] exchanges are under way, which keeps the store busy while
//! replies travel, and makes groups of what happens meanwhile.
//!
//! Here are its state and its loop; [`sending`], [`replies`], [`claims`] and [`resting`] are what it does.

mod claims;
mod replies;
mod resting;
mod sending;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::completer::{Completer, Group};
use super::intake::Ready;
use super::link::Link;
use super::policy::Fate;
use super::reconcile::Doubt;
use super::shared::Shared;
use super::slots::Slots;
use super::tally::Tally;
use crate::clock::Instant;
use crate::error::Error;
use crate::job::{JobName, PoolId, WorkerId};
use crate::store::{Claim, Exchange, Exchanged, QueueShare, Timed};

/// Exchanges under way at once.
const MAX_IN_FLIGHT: usize = 2;
/// Finishes that are worth two exchanges.
const WORTH_HALVING: usize = 8;
/// An idle pool looks this often even if nothing wakes it: a wake-up may get lost with a connection.
const SAFETY_POLL: Duration = Duration::from_secs(10);
/// How often to look whether the heartbeat gets through again.
const AT_RISK_POLL: Duration = Duration::from_millis(500);
/// How long to claim nothing when the only queues with work can't be claimed from.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);
/// How long a job waits whose id already runs in this pool.
const SAME_ID_DELAY: i64 = 5;
/// How often to let handlers run on before a group is sent: a group of jobs that end together is worth more than the
/// microseconds this takes.
const MAX_GATHERING_YIELDS: usize = 32;

/// How far a pool has stopped. Each phase includes the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Claims and runs.
    Working,
    /// Claims until nothing is left, then goes quiet.
    Draining,
    /// Claims no more; what runs goes on.
    Quiet,
    /// The tokens of running jobs have fired.
    Cancelled,
    /// Running jobs are dropped and their claims given back.
    Released,
}

/// What reaches the dispatcher.
pub(super) enum Event {
    Ended {
        slot: usize,
        fate: Fate,
    },
    Exchanged {
        request: Exchange,
        group: Group,
        sent: Instant,
        result: Result<Timed<Exchanged>, Error>,
    },
    /// Unique keys are freed; these, claimed by this pool, may run.
    Started {
        pool: PoolId,
        ready: Vec<Ready>,
    },
    /// Somebody wants to know whether the dispatcher reacts.
    Ping(oneshot::Sender<()>),
    /// The store may have work.
    Woken(Result<(), Error>),
    /// Claims were given back.
    Released,
    /// The store's view of this pool's claims.
    OwnClaims {
        pool: PoolId,
        sent: Instant,
        result: Result<Timed<Vec<Claim>>, Error>,
    },
}

pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    /// Under which id the pool is registered.
    pool: PoolId,
    membership: watch::Receiver<PoolId>,
    phase: watch::Receiver<Phase>,
    /// The store's count of this pool's claims, with each beat.
    held: watch::Receiver<usize>,
    events: mpsc::UnboundedSender<Event>,
    inbox: mpsc::UnboundedReceiver<Event>,
    slots: Slots,
    completer: Completer,
    tally: Tally,
    link: Link,
    queues: Arc<[JobName]>,
    shares: Vec<QueueShare>,
    /// Claims whose unique keys are being freed before they run.
    starting: Vec<Claim>,
    doubt: Doubt,
    /// Slots promised to claims that are under way, or whose unique keys are being freed.
    promised: usize,
    in_flight: usize,
    /// Finishes that travel with them.
    finishing: usize,
    releasing: usize,
    /// Beats in a row with which the store counted more claims than there can be.
    surplus_beats: u32,
    /// The last claim found less than it asked for: wait to be woken.
    idle_since: Option<Instant>,
    waiting: bool,
    /// Claims were refused; none until then.
    no_claims_until: Option<Instant>,
    refused_queues: BTreeSet<JobName>,
}

impl Dispatcher {
    pub(super) fn new(
        shared: Arc<Shared>,
        workers: &[WorkerId],
        membership: watch::Receiver<PoolId>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let (events, inbox) = mpsc::unbounded_channel();
        let pool = membership.borrow().clone();
        Self {
            pool,
            membership,
            phase,
            held: shared.held.subscribe(),
            events,
            inbox,
            slots: Slots::new(workers),
            completer: Completer::default(),
            tally: Tally::default(),
            link: Link::new("dispatcher", &shared.outage),
            queues: shared.registry.queues(),
            shares: shared.registry.shares(),
            shared,
            starting: Vec::new(),
            doubt: Doubt::default(),
            promised: 0,
            in_flight: 0,
            finishing: 0,
            releasing: 0,
            surplus_beats: 0,
            idle_since: None,
            waiting: false,
            no_claims_until: None,
            refused_queues: BTreeSet::new(),
        }
    }

    /// Where a probe asks whether it reacts.
    pub(super) fn inbox(&self) -> mpsc::UnboundedSender<Event> {
        self.events.clone()
    }

    /// Runs until the pool has gone quiet and nothing is left to finish.
    pub(super) async fn run(mut self) -> Tally {
        let mut events = Vec::new();
        loop {
            self.expire_timers();
            self.send_exchanges();
            self.wait_for_work();
            if self.is_finished() {
                return self.tally;
            }
            let timer = self.next_timer();
            let shared = self.shared.clone();
            tokio::select! {
                biased;
                // Not when the other end is gone: a pool whose handle was dropped runs on.
                Ok(()) = self.phase.changed() => self.phase_changed(),
                Ok(()) = self.membership.changed() => self.membership_changed(),
                Ok(()) = self.held.changed() => self.compare_counts(),
                _ = self.inbox.recv_many(&mut events, 1024) => self.gather(&mut events).await,
                () = shared.promoted.notified() => self.idle_since = None,
                () = sleep_until(timer) => {}
            }
        }
    }

    /// Handles events, lets the jobs they started run, and goes on as long as that brings more.
    async fn gather(&mut self, events: &mut Vec<Event>) {
        self.handle_all(events);
        let mut fruitless = 0;
        for _ in 0..MAX_GATHERING_YIELDS {
            if self.slots.busy() == 0 || fruitless == 2 {
                break;
            }
            tokio::task::yield_now().await;
            while let Ok(event) = self.inbox.try_recv() {
                events.push(event);
            }
            fruitless = if events.is_empty() { fruitless + 1 } else { 0 };
            self.handle_all(events);
        }
    }

    fn handle_all(&mut self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            match event {
                Event::Ended { slot, fate } => self.ended(slot, fate),
                Event::Exchanged { request, group, sent, result } => {
                    self.exchanged(request, group, sent, result)
                }
                Event::Started { pool, ready } => self.started(&pool, ready),
                Event::Ping(reply) => drop(reply.send(())),
                Event::Woken(result) => self.woken(result),
                Event::Released => self.releasing -= 1,
                Event::OwnClaims { pool, sent, result } => self.reconcile(&pool, sent, result),
            }
        }
    }
}

/// Completes when the pool has gone quiet; never, if its handle was dropped before.
async fn quiet(phase: &mut watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase >= Phase::Quiet).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
