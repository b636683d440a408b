//! When the dispatcher has nothing to do: waiting to be woken, timers, and coming to an end.

use super::{AT_RISK_POLL, Dispatcher, Event, Phase, SAFETY_POLL, quiet};
use crate::clock::{self, Instant};
use crate::error::Error;
use crate::store::WaitFor;

impl Dispatcher {
    pub(super) fn wait_for_work(&mut self) {
        let phase = *self.phase.borrow();
        if self.idle_since.is_none() || self.waiting || self.slots.free() == 0 || phase != Phase::Working {
            return;
        }
        self.waiting = true;
        let (store, events, queues) = (self.shared.store().clone(), self.events.clone(), self.queues.clone());
        let mut phase = self.phase.clone();
        tokio::spawn(async move {
            let result = tokio::select! {
                result = store.wait(WaitFor::Work { queues }) => result,
                // Nobody listens any more. Nothing is lost by dropping this call: it only looks.
                () = quiet(&mut phase) => Ok(()),
            };
            let _ = events.send(Event::Woken(result));
        });
    }

    pub(super) fn woken(&mut self, result: Result<(), Error>) {
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
    pub(super) fn next_timer(&self) -> Option<Instant> {
        let now = clock::now();
        let safety = self.idle_since.map(|since| since + SAFETY_POLL);
        // Nobody tells when the risk is over.
        let at_risk = self.shared.at_risk().then(|| now + AT_RISK_POLL);
        let timers = [self.link.retry_at(), safety, self.no_claims_until, self.doubt.next(), at_risk];
        timers.into_iter().flatten().filter(|at| *at > now).min()
    }

    pub(super) fn expire_timers(&mut self) {
        let now = clock::now();
        if self.idle_since.is_some_and(|since| since + SAFETY_POLL <= now) {
            self.idle_since = None;
        }
        if self.no_claims_until.is_some_and(|until| until <= now) {
            self.no_claims_until = None;
        }
    }

    pub(super) fn phase_changed(&mut self) {
        let phase = *self.phase.borrow_and_update();
        if phase == Phase::Draining {
            // One more look: something may have come since the last.
            self.idle_since = None;
        }
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
    pub(super) fn membership_changed(&mut self) {
        let pool = self.membership.borrow_and_update().clone();
        if pool == self.pool {
            return;
        }
        self.pool = pool;
        self.tally.lost += self.completer.clear();
        self.doubt.clear();
        self.slots.iter().for_each(|running| running.token.cancel());
        self.surplus_beats = 0;
        self.idle_since = None;
    }

    pub(super) fn is_finished(&mut self) -> bool {
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
