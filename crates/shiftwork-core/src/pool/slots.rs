//! The workers of a pool: a fixed number of slots, each with at most one job.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::job::{PoolId, WorkerId};
use crate::store::Claim;

/// A job that runs.
#[derive(Debug)]
pub(in crate::pool) struct Running {
    pub(in crate::pool) claim: Claim,
    /// The registration under which it was claimed.
    pub(in crate::pool) pool: PoolId,
    pub(in crate::pool) token: CancellationToken,
    pub(in crate::pool) task: AbortHandle,
    /// Hash of the job's id.
    pub(in crate::pool) id: u64,
}

/// All slots.
#[derive(Debug)]
pub(in crate::pool) struct Slots {
    running: Vec<Option<Running>>,
    workers: Vec<Arc<str>>,
    free: Vec<usize>,
    ids: HashSet<u64>,
    hasher: RandomState,
}

impl Slots {
    pub(in crate::pool) fn new(workers: &[WorkerId]) -> Self {
        Self {
            running: workers.iter().map(|_| None).collect(),
            workers: workers.iter().map(|worker| Arc::from(&**worker)).collect(),
            // From the end, so that a pool with little to do keeps to its first workers.
            free: (0..workers.len()).rev().collect(),
            ids: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    pub(in crate::pool) fn free(&self) -> usize {
        self.free.len()
    }

    pub(in crate::pool) fn busy(&self) -> usize {
        self.running.len() - self.free.len()
    }

    /// The slot that the next job gets, and its worker's id.
    pub(in crate::pool) fn peek(&self) -> Option<(usize, Arc<str>)> {
        let slot = *self.free.last()?;
        Some((slot, self.workers[slot].clone()))
    }

    /// Fills the slot that [`Slots::peek`] named.
    pub(in crate::pool) fn fill(&mut self, running: Running) {
        if let Some(slot) = self.free.pop() {
            self.ids.insert(running.id);
            self.running[slot] = Some(running);
        }
    }

    /// Empties a slot; `None` if it is empty already.
    pub(in crate::pool) fn take(&mut self, slot: usize) -> Option<Running> {
        let running = self.running[slot].take()?;
        self.ids.remove(&running.id);
        self.free.push(slot);
        Some(running)
    }

    /// Empties all slots.
    pub(in crate::pool) fn take_all(&mut self) -> Vec<Running> {
        (0..self.running.len()).filter_map(|slot| self.take(slot)).collect()
    }

    pub(in crate::pool) fn iter(&self) -> impl Iterator<Item = &Running> {
        self.running.iter().flatten()
    }

    /// A short stand-in for a job's id.
    pub(in crate::pool) fn id_of(&self, id: &str) -> u64 {
        self.hasher.hash_one(id)
    }

    /// Whether a job with this id runs here already.
    pub(in crate::pool) fn runs(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }
}
