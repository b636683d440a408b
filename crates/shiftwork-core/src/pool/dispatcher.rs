//! The dispatcher: one task per pool that claims jobs into free slots and hands their ends back, in one round trip.
//!
//! It is an actor. Everything that happens reaches it as an [`Event`]: a job ended, an exchange was answered, the store
//! may have work. Between events it decides whether to send another exchange. Store calls run in tasks of their own, so no call
//! is ever dropped half-way; at most [`MAX_IN_FLIGHT`] exchanges are under way, which keeps the store busy while
//! replies travel, and makes groups of what happens meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::completer::{Completer, Group};
use super::executor::Attempt;
use super::intake::{Intake, Ready, take_in};
use super::link::Link;
use super::policy::Fate;
use super::reconcile::{Doubt, orphans};
use super::shared::Shared;
use super::slots::{Running, Slots};
use super::tally::Tally;
use crate::clock::{self, Instant};
use crate::error::Error;
use crate::job::{JobName, PoolId, WorkerId};
use crate::store::{
    Claim, ClaimRequest, Destination, Exchange, Exchanged, Finish, QueueShare, Start, Timed, WaitFor,
};

/// Exchanges under way at once.
const MAX_IN_FLIGHT: usize = 2;
/// The most claims in one exchange.
const MAX_CLAIMS: usize = 1000;
/// An idle pool looks this often even if nothing wakes it: a wake-up may get lost with a connection.
const SAFETY_POLL: Duration = Duration::from_secs(5);
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
    releasing: usize,
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
            releasing: 0,
            idle_since: None,
            waiting: false,
            no_claims_until: None,
            refused_queues: BTreeSet::new(),
        }
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
            tokio::select! {
                biased;
                // Not when the other end is gone: a pool whose handle was dropped runs on.
                Ok(()) = self.phase.changed() => self.phase_changed(),
                Ok(()) = self.membership.changed() => self.membership_changed(),
                _ = self.inbox.recv_many(&mut events, 1024) => self.gather(&mut events).await,
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
                Event::Woken(result) => self.woken(result),
                Event::Released => self.releasing -= 1,
                Event::OwnClaims { pool, sent, result } => self.reconcile(&pool, sent, result),
            }
        }
    }

    // ---- sending ----

    fn send_exchanges(&mut self) {
        while self.in_flight < MAX_IN_FLIGHT {
            if self.link.retry_at().is_some_and(|at| self.in_flight > 0 || at > clock::now()) {
                return;
            }
            if self.doubt.is_due(self.is_ending()) {
                return self.ask_for_own_claims();
            }
            let group = self.completer.next_group();
            let limit = if group.alone { 0 } else { self.claims_wanted(!group.finishes.is_empty()) };
            if limit == 0 && group.finishes.is_empty() {
                return;
            }
            self.send(group, limit);
        }
    }

    /// How many jobs to ask for. A pool that has found nothing asks again only when it has been woken, or when it has
    /// something to say anyway.
    fn claims_wanted(&self, sends_anyway: bool) -> usize {
        let at_rest = self.idle_since.is_some() && !sends_anyway;
        if *self.phase.borrow() >= Phase::Quiet
            || at_rest
            || self.shared.at_risk()
            || self.no_claims_until.is_some_and(|until| until > clock::now())
        {
            return 0;
        }
        self.slots.free().saturating_sub(self.promised).min(MAX_CLAIMS)
    }

    fn send(&mut self, group: Group, limit: usize) {
        let claim = if limit == 0 {
            ClaimRequest::default()
        } else {
            ClaimRequest { limit, queues: self.shares.clone(), draw: fastrand::f64() }
        };
        let finishes = group.finishes.iter().map(|pending| pending.finish.clone()).collect();
        let request = Exchange { pool: self.pool.clone(), finishes, claim };
        self.promised += limit;
        self.in_flight += 1;
        let (store, events) = (self.shared.store().clone(), self.events.clone());
        tokio::spawn(async move {
            let sent = clock::now();
            let result = store.exchange(&request).await;
            let _ = events.send(Event::Exchanged { request, group, sent, result });
        });
    }

    /// Whether the pool runs to its end, so that what is unclear has to be cleared up now.
    fn is_ending(&self) -> bool {
        *self.phase.borrow() != Phase::Working
    }

    /// Once nothing else is under way that may claim or give back.
    fn ask_for_own_claims(&mut self) {
        if self.doubt.is_asking() || self.in_flight > 0 || self.releasing > 0 {
            return;
        }
        self.doubt.asked();
        let (store, events) = (self.shared.store().clone(), self.events.clone());
        let (pool, queues) = (self.pool.clone(), self.queues.clone());
        tokio::spawn(async move {
            let sent = clock::now();
            let result = store.own_claims(&pool, &queues).await;
            let _ = events.send(Event::OwnClaims { pool, sent, result });
        });
    }

    // ---- replies ----

    fn reconcile(&mut self, pool: &PoolId, sent: Instant, result: Result<Timed<Vec<Claim>>, Error>) {
        self.doubt.answered(result.is_ok(), self.is_ending());
        match result {
            Ok(reply) => {
                self.shared.clock().observe(sent, reply.now);
                self.link.answered();
                if *pool != self.pool {
                    return;
                }
                let here =
                    self.slots.iter().filter(|running| running.pool == *pool).map(|running| &running.claim);
                let known = here.chain(&self.starting).chain(self.completer.claims());
                let orphans = orphans(reply.value, known);
                if !orphans.is_empty() {
                    tracing::warn!(
                        target: "shiftwork", count = orphans.len(),
                        "claims whose reply was lost go back to their queues"
                    );
                    self.release(orphans);
                    self.idle_since = None;
                }
            }
            Err(error) => {
                self.link.failed(&error);
            }
        }
    }

    fn exchanged(
        &mut self,
        request: Exchange,
        group: Group,
        sent: Instant,
        result: Result<Timed<Exchanged>, Error>,
    ) {
        self.in_flight -= 1;
        self.promised -= request.claim.limit;
        let ours = request.pool == self.pool;
        match result {
            Ok(reply) => {
                self.shared.clock().observe(sent, reply.now);
                self.link.answered();
                self.report_lost(&group, &reply.value.lost);
                self.report_refused(reply.value.refused);
                if request.claim.limit > 0 && reply.value.claims.is_empty() && !self.refused_queues.is_empty()
                {
                    // Waiting would end at once: there is work, only nobody can have it.
                    self.no_claims_until = Some(clock::now() + REFUSAL_PAUSE);
                }
                if request.claim.limit > 0 {
                    let short = reply.value.claims.len() < request.claim.limit;
                    self.idle_since = short.then(clock::now);
                }
                if ours {
                    self.take_in_all(reply.value.claims);
                }
            }
            Err(error) if error.is_rejected() => {
                let retry_at = self.link.failed(&error);
                if request.claim.limit > 0 {
                    // Claims and finishes apart, so that whichever is not to blame goes on.
                    self.no_claims_until = Some(retry_at + Duration::from_secs(1));
                }
                if ours {
                    let given_up = self.completer.refused(group, &error);
                    self.tally.given_up += given_up;
                    if given_up > 0 {
                        self.doubt.raise_later();
                    }
                }
            }
            Err(error) => {
                self.link.failed(&error);
                if ours {
                    self.completer.unanswered(group);
                    if request.claim.limit > 0 {
                        self.doubt.raise();
                    }
                }
            }
        }
    }

    fn report_lost(&mut self, group: &Group, lost: &[usize]) {
        for pending in lost.iter().filter_map(|&index| group.finishes.get(index)) {
            // After a lost reply the first call may well have done it.
            if !pending.uncertain {
                self.tally.lost += 1;
                tracing::warn!(
                    target: "shiftwork", queue = &*pending.finish.claim.queue,
                    "a job ended here, but its claim had been taken away: it runs or ran elsewhere too"
                );
            }
        }
    }

    fn report_refused(&mut self, refused: Vec<(JobName, String)>) {
        for (queue, reason) in &refused {
            if !self.refused_queues.contains(queue) {
                tracing::error!(target: "shiftwork", queue = &**queue, reason, "no jobs can be claimed from this queue");
            }
        }
        self.refused_queues = refused.into_iter().map(|(queue, _)| queue).collect();
    }

    // ---- claims ----

    fn take_in_all(&mut self, claims: Vec<Claim>) {
        if claims.is_empty() {
            return;
        }
        if *self.phase.borrow() >= Phase::Quiet {
            self.release(claims);
            return;
        }
        let now = self.shared.clock().now().unwrap_or_else(clock::wall_now);
        let (mut unique, mut starts) = (Vec::new(), Vec::new());
        for claim in claims {
            match take_in(claim, &self.shared.registry, now) {
                Intake::Run(ready) => self.start(ready, now.as_second()),
                Intake::RunAfter(ready, start) => {
                    unique.push(ready);
                    starts.push(start);
                }
                Intake::Finish(finish) => {
                    self.tally.refused += 1;
                    self.completer.add(finish);
                }
            }
        }
        if !unique.is_empty() {
            self.free_unique_keys(unique, starts);
        }
    }

    /// Frees the keys of unique jobs, however long it takes, before they run: a key left behind would keep the next such
    /// job out for a day.
    fn free_unique_keys(&mut self, ready: Vec<Ready>, starts: Vec<Start>) {
        self.promised += ready.len();
        self.starting.extend(ready.iter().map(|ready| ready.claim.clone()));
        let (store, events, mut phase) =
            (self.shared.store().clone(), self.events.clone(), self.phase.clone());
        let (outage, pool) = (self.shared.outage.clone(), self.pool.clone());
        tokio::spawn(async move {
            let mut link = Link::new("unique keys", &outage);
            while let Err(error) = store.start(&starts).await {
                let retry_at = link.failed(&error);
                tokio::select! {
                    () = tokio::time::sleep_until(retry_at) => {}
                    // Then the claims are released, keys and all.
                    () = quiet(&mut phase) => break,
                }
            }
            let _ = events.send(Event::Started { pool, ready });
        });
    }

    fn started(&mut self, pool: &PoolId, ready: Vec<Ready>) {
        self.promised -= ready.len();
        self.starting.retain(|claim| !ready.iter().any(|ready| ready.claim == *claim));
        if *pool != self.pool {
            // A reaper has given them to others meanwhile.
            self.tally.lost += ready.len();
            return;
        }
        if *self.phase.borrow() >= Phase::Quiet {
            self.release(ready.into_iter().map(|ready| ready.claim).collect());
            return;
        }
        let now = self.shared.clock().now().unwrap_or_else(clock::wall_now).as_second();
        for ready in ready {
            self.start(ready, now);
        }
    }

    fn start(&mut self, ready: Ready, now: i64) {
        let id = self.slots.id_of(ready.job.id());
        let Some((slot, worker)) = self.slots.peek() else {
            // More than was asked for: a store's fault, but no job is lost by it.
            self.release(vec![ready.claim]);
            return;
        };
        if self.slots.runs(id) {
            // The same job a second time (a reaper gave it back while it still ran here). Two claims with equal bytes
            // can't be told apart when one is finished, so this one waits for the other to end.
            let job = ready.claim.job.clone();
            let to = Destination::Scheduled { at: now + SAME_ID_DELAY, job };
            self.completer.add(Finish { claim: ready.claim, to });
            return;
        }
        let token = CancellationToken::new();
        let attempt = Attempt {
            job: ready.job,
            job_type: ready.job_type,
            worker,
            token: token.clone(),
            shared: self.shared.clone(),
        };
        let events = self.events.clone();
        let task = tokio::spawn(async move {
            let fate = attempt.run().await;
            let _ = events.send(Event::Ended { slot, fate });
        });
        let pool = self.pool.clone();
        self.slots.fill(Running { claim: ready.claim, pool, token, task: task.abort_handle(), id });
    }

    fn ended(&mut self, slot: usize, fate: Fate) {
        // An aborted job may have ended just before; its claim is being released.
        let Some(running) = self.slots.take(slot) else { return };
        if running.pool != self.pool {
            self.tally.lost += 1;
            return;
        }
        self.tally.count(fate.kind);
        self.completer.add(Finish { claim: running.claim, to: fate.to });
    }

    fn release(&mut self, claims: Vec<Claim>) {
        if claims.is_empty() {
            return;
        }
        self.releasing += 1;
        self.tally.released += claims.len();
        let (store, events, pool) = (self.shared.store().clone(), self.events.clone(), self.pool.clone());
        let outage = self.shared.outage.clone();
        tokio::spawn(async move {
            let mut link = Link::new("release", &outage);
            while let Err(error) = store.release(&pool, &claims).await {
                tokio::time::sleep_until(link.failed(&error)).await;
            }
            let _ = events.send(Event::Released);
        });
    }

    // ---- waiting ----

    fn wait_for_work(&mut self) {
        let phase = *self.phase.borrow();
        if self.idle_since.is_none() || self.waiting || self.slots.free() == 0 || phase != Phase::Working {
            return;
        }
        self.waiting = true;
        let (store, events, queues) = (self.shared.store().clone(), self.events.clone(), self.queues.clone());
        let mut phase = self.phase.clone();
        tokio::spawn(async move {
            let result = tokio::select! {
                result = store.wait(WaitFor::Work { queues }) => result.map(|_| ()),
                // Nobody listens any more. Nothing is lost by dropping this call: it only looks.
                () = quiet(&mut phase) => Ok(()),
            };
            let _ = events.send(Event::Woken(result));
        });
    }

    fn woken(&mut self, result: Result<(), Error>) {
        self.waiting = false;
        match result {
            Ok(()) => self.idle_since = None,
            Err(error) => {
                // The next look is an exchange, once the link allows it.
                self.link.failed(&error);
                self.idle_since = None;
            }
        }
    }

    /// The next moment at which something has to be decided again. What is due already and still waits, waits for an event.
    fn next_timer(&self) -> Option<Instant> {
        let now = clock::now();
        let safety = self.idle_since.map(|since| since + SAFETY_POLL);
        // Nobody tells when the risk is over.
        let at_risk = self.shared.at_risk().then(|| now + AT_RISK_POLL);
        let timers = [self.link.retry_at(), safety, self.no_claims_until, self.doubt.next(), at_risk];
        timers.into_iter().flatten().filter(|at| *at > now).min()
    }

    fn expire_timers(&mut self) {
        let now = clock::now();
        if self.idle_since.is_some_and(|since| since + SAFETY_POLL <= now) {
            self.idle_since = None;
        }
        if self.no_claims_until.is_some_and(|until| until <= now) {
            self.no_claims_until = None;
        }
    }

    // ---- stopping ----

    fn phase_changed(&mut self) {
        let phase = *self.phase.borrow_and_update();
        if phase >= Phase::Cancelled {
            self.slots.iter().for_each(|running| running.token.cancel());
        }
        if phase >= Phase::Released {
            let left = self.slots.take_all();
            left.iter().for_each(|running| running.task.abort());
            let ours = left.into_iter().filter(|running| running.pool == self.pool);
            let claims = ours.map(|running| running.claim).collect();
            self.release(claims);
        }
    }

    /// A reaper took this pool for dead, and it has come back under a new id: what it ran belongs to others.
    fn membership_changed(&mut self) {
        let pool = self.membership.borrow_and_update().clone();
        if pool == self.pool {
            return;
        }
        self.pool = pool;
        self.tally.lost += self.completer.clear();
        self.doubt.clear();
        self.slots.iter().for_each(|running| running.token.cancel());
        self.idle_since = None;
    }

    fn is_finished(&mut self) -> bool {
        let at_rest = self.slots.busy() == 0
            && self.promised == 0
            && self.in_flight == 0
            && self.releasing == 0
            && self.completer.is_empty()
            && self.doubt.is_settled();
        match *self.phase.borrow() {
            Phase::Working => false,
            Phase::Draining => at_rest && self.idle_since.is_some(),
            _ => at_rest,
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
