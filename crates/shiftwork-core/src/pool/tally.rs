//! What a pool has done since it started.

use super::policy::FateKind;

/// Counts of a pool since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Tally {
    /// Jobs done.
    pub done: usize,
    /// Failed attempts that will be tried again.
    pub retried: usize,
    /// Jobs put off by their handler.
    pub snoozed: usize,
    /// Jobs dropped: discarded by their handler, or out of attempts with `skip_dead`.
    pub dropped: usize,
    /// Jobs that went to the dead set after running here.
    pub dead: usize,
    /// Claims that were not run: malformed, or in the wrong queue.
    pub refused: usize,
    /// Periodic jobs that were dropped, since nobody had started them when their next tick was due.
    pub expired: usize,
    /// Jobs given back to their queues unfinished.
    pub released: usize,
    /// Jobs that ended here after their claim had been taken away.
    pub lost: usize,
    /// Jobs whose end the store refused to take.
    pub given_up: usize,
}

impl Tally {
    pub(in crate::pool) fn count(&mut self, kind: FateKind) {
        match kind {
            FateKind::Done => self.done += 1,
            FateKind::Retried => self.retried += 1,
            FateKind::Snoozed => self.snoozed += 1,
            FateKind::Dropped => self.dropped += 1,
            FateKind::Dead => self.dead += 1,
        }
    }
}
