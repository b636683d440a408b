//! The state of a [`MemoryStore`](super::MemoryStore) and its transitions, written to be read: this is the model that
//! the other stores are compared with.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use crate::job::{JobName, PoolId};
use crate::store::{
    Available, Backlog, Beat, BeatReply, Claim, ClaimRequest, Destination, Exchange, Exchanged, JobBytes,
    MAX_CLAIMS, NO_OWNER, ObservedJob, Promoted, Promotion, Push, Pushed, Start, UniqueLock, allot,
    claimable, promotion,
};

/// Everything in one namespace.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) known: BTreeSet<JobName>,
    pub(super) queues: BTreeMap<JobName, Queue>,
    pub(super) scheduled: DueSet,
    pub(super) retry: DueSet,
    pub(super) dead: DueSet,
    pub(super) unique: BTreeMap<String, UniqueEntry>,
    pub(super) pools: BTreeMap<PoolId, Pool>,
    pub(super) workers: BTreeMap<String, ObservedJob>,
    /// Which workers died with a job, by its id.
    pub(super) crashes: BTreeMap<String, Vec<String>>,
    /// Since when pools that hold something are not registered.
    pub(super) unknown: BTreeMap<PoolId, i64>,
    pub(super) looks: Looks,
    /// Ticks that were put in, and until when that is remembered.
    pub(super) ticks: BTreeMap<String, i64>,
    /// The latest tick of each schedule.
    pub(super) last_ticks: BTreeMap<String, i64>,
    /// Ticks that were picked up, and until when that is remembered.
    pub(super) picked_up: BTreeMap<String, i64>,
    /// Who holds the reaper's lock, and until when.
    pub(super) reaper_lock: Option<(String, i64)>,
}

/// A registered pool.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub(super) heartbeat_at: i64,
    pub(super) queues: Vec<JobName>,
    pub(super) host: String,
    pub(super) workers: Vec<String>,
}

/// When somebody looked for silent pools.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Looks {
    pub(super) last: Option<Timestamp>,
    pub(super) audited: Option<Timestamp>,
    /// Nobody counts as silent before this second.
    pub(super) quiet_until: i64,
}

/// One queue and the claims made from it.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    /// Waiting jobs, the next one first.
    pub(super) jobs: VecDeque<JobBytes>,
    pub(super) paused: bool,
    /// `None` and 0 are no limit; a pool that has one fills in only `None`.
    pub(super) max_concurrency: Option<u32>,
    /// Jobs in progress by pool, the oldest claim first.
    pub(super) claims: BTreeMap<PoolId, Vec<JobBytes>>,
}

impl Queue {
    pub(super) fn running(&self) -> usize {
        self.claims.values().map(Vec::len).sum()
    }

    /// How many jobs could be claimed now.
    fn available(&self) -> usize {
        claimable(self.jobs.len(), self.running(), self.paused, self.max_concurrency)
    }

    pub(super) fn remove_claim(&mut self, pool: &PoolId, job: &JobBytes) -> bool {
        let Some(claims) = self.claims.get_mut(pool) else { return false };
        // Of two equal claims the older one goes: on Redis that is the one found first from the end where jobs end.
        let Some(position) = claims.iter().position(|claimed| claimed == job) else { return false };
        claims.remove(position);
        if claims.is_empty() {
            self.claims.remove(pool);
        }
        true
    }
}

/// Jobs ordered by a second, then by their bytes. Equal bytes are one member, as in a Redis sorted set.
#[derive(Debug, Clone, Default)]
pub(super) struct DueSet {
    by_score: BTreeSet<(i64, JobBytes)>,
    scores: BTreeMap<JobBytes, i64>,
}

impl DueSet {
    pub(super) fn insert(&mut self, score: i64, job: JobBytes) {
        if let Some(old) = self.scores.insert(job.clone(), score) {
            self.by_score.remove(&(old, job.clone()));
        }
        self.by_score.insert((score, job));
    }

    fn len(&self) -> usize {
        self.by_score.len()
    }

    pub(super) fn first(&self) -> Option<&(i64, JobBytes)> {
        self.by_score.first()
    }

    fn pop_due(&mut self, now: i64) -> Option<JobBytes> {
        self.by_score.first().filter(|(score, _)| *score <= now)?;
        let (_, job) = self.by_score.pop_first()?;
        self.scores.remove(&job);
        Some(job)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(i64, JobBytes)> {
        self.by_score.iter()
    }
}

/// Who holds a unique key, and until which second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UniqueEntry {
    pub(super) owner: String,
    pub(super) expires_at: i64,
}

impl State {
    pub(super) fn push(&mut self, push: &Push, now: i64) -> Pushed {
        self.known.insert(push.queue.clone());
        if let Some(unique) = &push.unique
            && !self.lock_unique(unique, now)
        {
            return Pushed::Duplicate;
        }
        match push.run_at {
            Some(at) => self.scheduled.insert(at, push.job.clone()),
            None => self.queue(&push.queue).jobs.push_back(push.job.clone()),
        }
        Pushed::Enqueued
    }

    fn lock_unique(&mut self, unique: &UniqueLock, now: i64) -> bool {
        if self.unique.get(&unique.key).is_some_and(|held| held.expires_at > now) {
            return false;
        }
        let expires_at = now.saturating_add_unsigned(unique.ttl.as_secs());
        self.unique.insert(unique.key.clone(), UniqueEntry { owner: unique.owner.clone(), expires_at });
        true
    }

    pub(super) fn exchange(&mut self, request: &Exchange) -> Exchanged {
        let mut lost = Vec::new();
        for (index, finish) in request.finishes.iter().enumerate() {
            let Claim { queue, job } = &finish.claim;
            if !self.queue(queue).remove_claim(&request.pool, job) {
                lost.push(index);
                continue;
            }
            match &finish.to {
                Destination::Gone => {}
                Destination::Retry { at, job } => self.retry.insert(*at, job.clone()),
                Destination::Scheduled { at, job } => self.scheduled.insert(*at, job.clone()),
                Destination::Dead { at, job } => self.dead.insert(*at, job.clone()),
            }
        }
        Exchanged { lost, claims: self.claim(&request.pool, &request.claim), refused: Vec::new() }
    }

    fn claim(&mut self, pool: &PoolId, request: &ClaimRequest) -> Vec<Claim> {
        let available: Vec<_> = request
            .queues
            .iter()
            .map(|share| Available {
                weight: share.weight,
                jobs: self.queues.get(&share.queue).map_or(0, Queue::available),
            })
            .collect();
        let shares = allot(&available, request.limit.min(MAX_CLAIMS), request.draw);
        let mut claims = Vec::new();
        for (share, count) in request.queues.iter().zip(shares) {
            for _ in 0..count {
                let queue = self.queue(&share.queue);
                let Some(job) = queue.jobs.pop_front() else { break };
                queue.claims.entry(pool.clone()).or_default().push(job.clone());
                claims.push(Claim { queue: share.queue.clone(), job });
            }
        }
        claims
    }

    pub(super) fn start(&mut self, start: &Start) {
        for key in &start.keys {
            if self.unique.get(key).is_some_and(|held| held.owner == start.owner || held.owner == NO_OWNER) {
                self.unique.remove(key);
            }
        }
    }

    pub(super) fn release(&mut self, pool: &PoolId, claims: &[Claim]) -> usize {
        let mut released = 0;
        for Claim { queue, job } in claims.iter().rev() {
            let queue = self.queue(queue);
            if queue.remove_claim(pool, job) {
                queue.jobs.push_front(job.clone());
                released += 1;
            }
        }
        released
    }

    pub(super) fn promote(&mut self, limit: usize, now: i64) -> Promoted {
        let mut promoted = Promoted::default();
        while promoted.moved + promoted.buried < limit {
            let Some(member) = self.pop_earliest_due(now) else { break };
            match promotion(&member, now) {
                Promotion::Queue { queue, job } => {
                    self.known.insert(queue.clone());
                    self.queue(&queue).jobs.push_back(job);
                    promoted.moved += 1;
                }
                Promotion::Dead { job } => {
                    self.dead.insert(now, job);
                    promoted.buried += 1;
                }
            }
        }
        promoted.next_due = self.next_due();
        promoted
    }

    /// Scheduled before retried, as long as there are any: a Go requeuer drains each set on its own.
    fn pop_earliest_due(&mut self, now: i64) -> Option<JobBytes> {
        self.scheduled.pop_due(now).or_else(|| self.retry.pop_due(now))
    }

    pub(super) fn next_due(&self) -> Option<i64> {
        [self.scheduled.first(), self.retry.first()].into_iter().flatten().map(|(at, _)| *at).min()
    }

    pub(super) fn beat(&mut self, beat: &Beat, now: i64) -> BeatReply {
        if !beat.register && !self.pools.contains_key(&beat.pool) {
            return BeatReply { registered: false, held: 0, look: false };
        }
        for limit in &beat.queues {
            self.known.insert(limit.queue.clone());
            let queue = self.queue(&limit.queue);
            if beat.register || queue.max_concurrency.is_none() {
                queue.max_concurrency = limit.max_concurrency.or(queue.max_concurrency);
            }
        }
        let queues = beat.queues.iter().map(|limit| limit.queue.clone()).collect();
        let (host, workers) = (beat.host.clone(), beat.worker_ids.clone());
        self.pools.insert(beat.pool.clone(), Pool { heartbeat_at: now, queues, host, workers });
        let claims = self.queues.values().filter_map(|queue| queue.claims.get(&beat.pool));
        BeatReply {
            registered: true,
            held: claims.map(Vec::len).sum(),
            look: self.looks.is_due(beat.look_after, now),
        }
    }

    pub(super) fn own_claims(&self, pool: &PoolId, queues: &[JobName]) -> Vec<Claim> {
        let mut own = Vec::new();
        for name in queues {
            let claims = self.queues.get(name).and_then(|queue| queue.claims.get(pool));
            own.extend(
                claims.into_iter().flatten().map(|job| Claim { queue: name.clone(), job: job.clone() }),
            );
        }
        own
    }

    pub(super) fn backlog(&self, queues: &[JobName]) -> Backlog {
        let length = |name: &JobName| self.queues.get(name).map_or(0, |queue| queue.jobs.len());
        Backlog {
            queued: queues
                .iter()
                .map(|name| (name.clone(), length(name)))
                .filter(|(_, jobs)| *jobs > 0)
                .collect(),
            scheduled: self.scheduled.len(),
            retry: self.retry.len(),
        }
    }

    /// Whether a claim over these queues would give anything.
    pub(super) fn has_work(&self, queues: &[JobName]) -> bool {
        queues.iter().any(|name| self.queues.get(name).is_some_and(|queue| queue.available() > 0))
    }

    pub(super) fn queue(&mut self, name: &JobName) -> &mut Queue {
        if !self.queues.contains_key(name) {
            self.queues.insert(name.clone(), Queue::default());
        }
        self.queues.get_mut(name).expect("inserted just above")
    }
}
