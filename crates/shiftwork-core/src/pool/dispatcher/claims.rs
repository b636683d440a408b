//! From a claim to a job that runs, to its end; and giving claims back.

use tokio_util::sync::CancellationToken;

use super::super::context::Context;
use super::super::executor::Attempt;
use super::super::intake::{Intake, Ready, take_in};
use super::super::link::Link;
use super::super::policy::Fate;
use super::super::slots::Running;
use super::{Dispatcher, Event, Phase, SAME_ID_DELAY, quiet};
use crate::clock;
use crate::job::PoolId;
use crate::store::{Claim, Destination, Finish, PERIODIC, Start};

impl Dispatcher {
    pub(super) fn take_in_all(&mut self, claims: Vec<Claim>) {
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
                Intake::Expired(finish) => {
                    self.tally.expired += 1;
                    self.completer.add(finish);
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
    pub(super) fn free_unique_keys(&mut self, ready: Vec<Ready>, starts: Vec<Start>) {
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

    pub(super) fn started(&mut self, pool: &PoolId, ready: Vec<Ready>) {
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

    pub(super) fn start(&mut self, ready: Ready, now: i64) {
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
        if ready.job.id().starts_with(PERIODIC) {
            self.shared.ticks.started(ready.job.id());
        }
        let started = clock::now();
        let check_in = self.shared.board.fill(slot, &ready.job, started, now);
        let ctx =
            Context::new(ready.job, ready.job_type, worker, token.clone(), check_in, self.shared.clone());
        let attempt = Attempt { ctx, started };
        let events = self.events.clone();
        let task = tokio::spawn(async move {
            let fate = attempt.run().await;
            let _ = events.send(Event::Ended { slot, fate });
        });
        let pool = self.pool.clone();
        self.slots.fill(Running { claim: ready.claim, pool, token, task: task.abort_handle(), id });
    }

    pub(super) fn ended(&mut self, slot: usize, fate: Fate) {
        // An aborted job may have ended just before; its claim is being released.
        let Some(running) = self.slots.take(slot) else { return };
        self.shared.board.clear(slot);
        if running.pool != self.pool {
            self.tally.lost += 1;
            return;
        }
        self.tally.count(fate.kind);
        self.completer.add(Finish { claim: running.claim, to: fate.to });
    }

    pub(super) fn release(&mut self, claims: Vec<Claim>) {
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
}
