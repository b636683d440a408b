//! What the dispatcher makes of replies, and of their absence.

use std::time::Duration;

use super::super::completer::Group;
use super::super::reconcile::orphans;
use super::{Dispatcher, REFUSAL_PAUSE};
use crate::clock::{self, Instant};
use crate::error::Error;
use crate::job::{JobName, PoolId};
use crate::store::{Claim, Exchange, Exchanged, Timed};

impl Dispatcher {
    pub(super) fn reconcile(
        &mut self,
        pool: &PoolId,
        sent: Instant,
        result: Result<Timed<Vec<Claim>>, Error>,
    ) {
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

    /// With each beat the store counts this pool's claims. If it has more than can be accounted for, twice in a row,
    /// some of them are orphans.
    pub(super) fn compare_counts(&mut self) {
        let held = *self.held.borrow_and_update();
        let most = self.slots.busy() + self.promised + self.completer.len() + self.finishing;
        let surplus = held > most && self.releasing == 0;
        self.surplus_beats = if surplus { self.surplus_beats + 1 } else { 0 };
        if self.surplus_beats >= 2 {
            self.surplus_beats = 0;
            self.doubt.raise();
        }
    }

    pub(super) fn exchanged(
        &mut self,
        request: Exchange,
        group: Group,
        sent: Instant,
        result: Result<Timed<Exchanged>, Error>,
    ) {
        self.in_flight -= 1;
        self.finishing -= request.finishes.len();
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

    pub(super) fn report_lost(&mut self, group: &Group, lost: &[usize]) {
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

    pub(super) fn report_refused(&mut self, refused: Vec<(JobName, String)>) {
        for (queue, reason) in &refused {
            if !self.refused_queues.contains(queue) {
                tracing::error!(target: "shiftwork", queue = &**queue, reason, "no jobs can be claimed from this queue");
            }
        }
        self.refused_queues = refused.into_iter().map(|(queue, _)| queue).collect();
    }
}
