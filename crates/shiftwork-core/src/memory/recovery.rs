//! The reaper's verbs on the state of a [`MemoryStore`](super::MemoryStore).

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::state::{Looks, State};
use crate::clock::whole_seconds;
use crate::job::{JobName, PoolId};
use crate::store::{
    Claim, Held, Look, Looked, Observation, PoolAudit, QueueAudit, Recover, Recovered, SilentPool, Witness,
};

impl Looks {
    /// Whether the last look is so long ago; a clock that was set back counts as long.
    pub(super) fn is_due(&self, after: Duration, now: i64) -> bool {
        self.last.is_none_or(|last| !(0..whole_seconds(after)).contains(&(now - last.as_second())))
    }
}

/// Whether `last` lies within `time` before `now`.
fn is_within(last: Option<Timestamp>, time: Duration, now: Timestamp) -> bool {
    last.is_some_and(|last| {
        let age = now.duration_since(last);
        !age.is_negative() && age.unsigned_abs() < time
    })
}

impl State {
    pub(super) fn observe(&mut self, observation: &Observation) {
        match &observation.job {
            Some(job) => self.workers.insert(observation.worker.clone(), job.clone()),
            None => self.workers.remove(&observation.worker),
        };
    }

    pub(super) fn look(&mut self, look: &Look, now: Timestamp) -> Looked {
        let pools = self.pools.len();
        if is_within(self.looks.last, look.every, now) {
            return Looked { pools, ..Looked::default() };
        }
        let second = now.as_second();
        let gap = self
            .looks
            .last
            .is_none_or(|last| !(0..=whole_seconds(look.gap)).contains(&(second - last.as_second())));
        if gap {
            self.looks.quiet_until = second + whole_seconds(look.silent_for);
        }
        self.looks.last = Some(now);
        let audit = !is_within(self.looks.audited, look.audit_every, now);
        if audit {
            self.looks.audited = Some(now);
        }
        let mut silent = Vec::new();
        if second >= self.looks.quiet_until {
            for (id, pool) in &self.pools {
                if pool.heartbeat_at + whole_seconds(look.silent_for) <= second {
                    silent.push(SilentPool {
                        pool: id.clone(),
                        witness: Witness::Heartbeat(pool.heartbeat_at.to_string()),
                        queues: pool.queues.clone(),
                        host: pool.host.clone(),
                        workers: pool.workers.clone(),
                        since: pool.heartbeat_at,
                    });
                }
            }
        }
        let known = if silent.is_empty() { Vec::new() } else { self.known.iter().cloned().collect() };
        Looked { looked: true, pools, silent, known, audit }
    }

    pub(super) fn held(&self, pool: &PoolId, queues: &[JobName], limit: usize) -> Vec<Held> {
        let mut held = Vec::new();
        for name in queues {
            let claims = self.queues.get(name).and_then(|queue| queue.claims.get(pool));
            let claims = claims.map(Vec::as_slice).unwrap_or_default();
            for job in &claims[claims.len().saturating_sub(limit)..] {
                let id = crate::job::RawJob::parse(job.clone()).ok().map(|job| job.id().to_owned());
                let crashes = id.and_then(|id| self.crashes.get(&id).cloned()).unwrap_or_default();
                held.push(Held { claim: Claim { queue: name.clone(), job: job.clone() }, crashes });
            }
        }
        held
    }

    pub(super) fn recover(&mut self, recover: &Recover, now: i64) -> Recovered {
        let seen = match (&recover.witness, self.pools.get(&recover.pool)) {
            (Witness::Heartbeat(seen), Some(pool)) => *seen == pool.heartbeat_at.to_string(),
            (Witness::Unregistered, None) => true,
            _ => false,
        };
        if !seen {
            return Recovered::default();
        }
        let mut recovered = Recovered { fenced: true, ..Recovered::default() };
        for recovery in recover.recoveries.iter().rev() {
            let Claim { queue, job } = &recovery.claim;
            let queue = self.queue(queue);
            if !queue.remove_claim(&recover.pool, job) {
                continue;
            }
            match &recovery.bury {
                None => {
                    queue.jobs.push_front(job.clone());
                    recovered.returned += 1;
                }
                Some(buried) => {
                    self.dead.insert(now, buried.clone());
                    recovered.buried += 1;
                }
            }
            if let Some(id) = &recovery.id {
                self.crashes.entry(id.clone()).or_default().push(recovery.record.clone());
            }
        }
        let holds =
            |name| self.queues.get(name).is_some_and(|queue| queue.claims.contains_key(&recover.pool));
        recovered.removed = !recover.queues.iter().any(holds);
        if recovered.removed {
            self.pools.remove(&recover.pool);
            self.unknown.remove(&recover.pool);
        }
        recovered
    }

    pub(super) fn audit(&self) -> Vec<QueueAudit> {
        let audit = |(name, queue): (&JobName, &super::state::Queue)| QueueAudit {
            queue: name.clone(),
            lock: i64::try_from(queue.running()).ok(),
            pools: queue
                .claims
                .iter()
                .map(|(pool, claims)| PoolAudit {
                    pool: pool.clone(),
                    registered: self.pools.contains_key(pool),
                    counted: i64::try_from(claims.len()).ok(),
                    held: claims.len(),
                })
                .collect(),
        };
        self.queues.iter().map(audit).collect()
    }

    pub(super) fn note_unknown(&mut self, pools: &[PoolId], now: i64) -> Vec<i64> {
        let named: BTreeSet<&PoolId> = pools.iter().collect();
        self.unknown.retain(|pool, _| named.contains(pool));
        pools.iter().map(|pool| *self.unknown.entry(pool.clone()).or_insert(now)).collect()
    }

    pub(super) fn reaper_lock(&mut self, token: &str, hold: Option<Duration>, now: i64) -> bool {
        self.reaper_lock.take_if(|(holder, until)| *until <= now || holder == token);
        match (hold, &self.reaper_lock) {
            (Some(hold), None) => {
                self.reaper_lock = Some((token.to_owned(), now.saturating_add(whole_seconds(hold))));
                true
            }
            _ => false,
        }
    }
}
