//! What the dispatcher asks of the store: exchanges, and now and then its own claims.

use super::super::completer::Group;
use super::{Dispatcher, Event, MAX_IN_FLIGHT, Phase, WORTH_HALVING};
use crate::clock;
use crate::store::{ClaimRequest, Exchange, MAX_CLAIMS};

impl Dispatcher {
    pub(super) fn send_exchanges(&mut self) {
        while self.in_flight < MAX_IN_FLIGHT {
            if self.link.retry_at().is_some_and(|at| self.in_flight > 0 || at > clock::now()) {
                return;
            }
            if self.doubt.is_due(self.is_ending()) {
                return self.ask_for_own_claims();
            }
            // Half of it, if there is much and nothing is under way: the store works on one half while the jobs of the
            // other run.
            let waiting = self.completer.len();
            let halves = self.in_flight == 0 && waiting >= WORTH_HALVING;
            let group = self.completer.next_group(if halves { waiting.div_ceil(2) } else { waiting });
            let wanted = if group.alone { 0 } else { self.claims_wanted(!group.finishes.is_empty()) };
            let limit = if halves { wanted.div_ceil(2) } else { wanted };
            if limit == 0 && group.finishes.is_empty() {
                return;
            }
            self.send(group, limit);
        }
    }

    /// How many jobs to ask for. A pool that has found nothing asks again only when it has been woken, or when it has
    /// something to say anyway.
    pub(super) fn claims_wanted(&self, sends_anyway: bool) -> usize {
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

    pub(super) fn send(&mut self, group: Group, limit: usize) {
        let claim = if limit == 0 {
            ClaimRequest::default()
        } else {
            ClaimRequest { limit, queues: self.shares.clone(), draw: fastrand::f64() }
        };
        let finishes = group.finishes.iter().map(|pending| pending.finish.clone()).collect();
        let request = Exchange { pool: self.pool.clone(), finishes, claim };
        self.promised += limit;
        self.in_flight += 1;
        self.finishing += request.finishes.len();
        let (store, events) = (self.shared.store().clone(), self.events.clone());
        tokio::spawn(async move {
            let sent = clock::now();
            let result = store.exchange(&request).await;
            let _ = events.send(Event::Exchanged { request, group, sent, result });
        });
    }

    /// Whether the pool runs to its end, so that what is unclear has to be cleared up now.
    pub(super) fn is_ending(&self) -> bool {
        *self.phase.borrow() != Phase::Working
    }

    /// Once nothing else is under way that may claim or give back.
    pub(super) fn ask_for_own_claims(&mut self) {
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
}
