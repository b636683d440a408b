//! Everything that is in a namespace at one moment, in a form that tests can compare.

use std::collections::{BTreeMap, BTreeSet};

use super::state::{DueSet, Queue, State};
use crate::job::{JobName, PoolId};
use crate::store::{JobBytes, ObservedJob};

/// Everything in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Queues that have jobs, claims, a pause or a limit.
    pub queues: BTreeMap<JobName, QueueSnapshot>,
    /// The scheduled set by due second, then bytes.
    pub scheduled: Vec<(i64, JobBytes)>,
    /// The retry set by due second, then bytes.
    pub retry: Vec<(i64, JobBytes)>,
    /// The dead set by second of death, then bytes.
    pub dead: Vec<(i64, JobBytes)>,
    /// Unique keys that are held, and by which job.
    pub unique: BTreeMap<String, String>,
    /// Registered pools.
    pub pools: BTreeSet<PoolId>,
    /// What workers show that they run, by worker.
    pub workers: BTreeMap<String, ObservedJob>,
    /// Which workers died with a job, by the job's id, the first one first.
    pub crashes: BTreeMap<String, Vec<String>>,
    /// Known job names.
    pub known: BTreeSet<JobName>,
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueSnapshot {
    /// Waiting jobs, the next one first.
    pub jobs: Vec<JobBytes>,
    /// Whether it is paused.
    pub paused: bool,
    /// How many jobs may run at once over all pools; `None` if nobody has said.
    pub max_concurrency: Option<u32>,
    /// Jobs in progress by pool, the oldest claim first.
    pub claims: BTreeMap<PoolId, Vec<JobBytes>>,
}

impl Snapshot {
    pub(super) fn of(state: &State, now: i64) -> Self {
        let due = |set: &DueSet| set.iter().cloned().collect();
        Self {
            queues: state
                .queues
                .iter()
                .map(|(name, queue)| (name.clone(), QueueSnapshot::of(queue)))
                .filter(|(_, queue)| *queue != QueueSnapshot::default())
                .collect(),
            scheduled: due(&state.scheduled),
            retry: due(&state.retry),
            dead: due(&state.dead),
            unique: state
                .unique
                .iter()
                .filter(|(_, held)| held.expires_at > now)
                .map(|(key, held)| (key.clone(), held.owner.clone()))
                .collect(),
            pools: state.pools.keys().cloned().collect(),
            workers: state.workers.clone(),
            crashes: state.crashes.clone(),
            known: state.known.clone(),
        }
    }

    /// The queue of that name; an empty one if there is nothing to say of it.
    pub fn queue(&self, name: &str) -> QueueSnapshot {
        self.queues.get(name).cloned().unwrap_or_default()
    }

    /// How many jobs are anywhere: queued, scheduled, in retry, in progress or dead.
    pub fn jobs(&self) -> usize {
        let queued: usize = self.queues.values().map(|queue| queue.jobs.len() + queue.running()).sum();
        queued + self.scheduled.len() + self.retry.len() + self.dead.len()
    }
}

impl QueueSnapshot {
    fn of(queue: &Queue) -> Self {
        Self {
            jobs: queue.jobs.iter().cloned().collect(),
            paused: queue.paused,
            max_concurrency: queue.max_concurrency,
            claims: queue.claims.clone(),
        }
    }

    /// How many jobs are in progress over all pools.
    pub fn running(&self) -> usize {
        self.claims.values().map(Vec::len).sum()
    }
}
