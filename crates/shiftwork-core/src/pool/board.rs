//! What the workers of a pool run right now, for people to see.
//!
//! Each slot has a cell. The dispatcher fills and clears it, the handler may write a line into it, and once a second the
//! observer takes what has changed. Nobody waits for anybody: a cell is locked for as long as it takes to swap a value, and
//! a handler that checks in a thousand times a second overwrites its own line.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Instant;
use crate::job::RawJob;
use crate::store::{Observation, ObservedJob};

/// The cells of all slots.
#[derive(Debug)]
pub(crate) struct Board {
    cells: Vec<Mutex<Cell>>,
    workers: Vec<Arc<str>>,
    /// A job has begun.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Cell {
    current: Option<Current>,
    /// The number of the attempt that was shown last, and of its line; none if nothing is shown.
    shown: Option<(u64, u64)>,
    shown_at: Option<Instant>,
    /// Attempts that this slot has seen.
    attempts: u64,
}

#[derive(Debug)]
struct Current {
    job: RawJob,
    started: Instant,
    started_at: i64,
    checkin: Option<(String, i64)>,
    /// How often the line was written.
    lines: u64,
}

/// An attempt's right to write into its cell; it has none when the slot runs another job.
#[derive(Debug, Clone)]
pub(crate) struct CheckIn {
    board: Arc<Board>,
    slot: usize,
    attempt: u64,
}

impl Board {
    pub(crate) fn new(workers: Vec<Arc<str>>) -> Self {
        let cells = workers.iter().map(|_| Mutex::default()).collect();
        Self { cells, workers, changed: Arc::default() }
    }

    /// A slot begins with a job.
    pub(crate) fn fill(
        self: &Arc<Self>,
        slot: usize,
        job: &RawJob,
        started: Instant,
        started_at: i64,
    ) -> CheckIn {
        let mut cell = self.cell(slot);
        cell.attempts += 1;
        cell.current = Some(Current { job: job.clone(), started, started_at, checkin: None, lines: 0 });
        let attempt = cell.attempts;
        drop(cell);
        self.changed.notify_one();
        CheckIn { board: self.clone(), slot, attempt }
    }

    /// A slot has ended its job.
    pub(crate) fn clear(&self, slot: usize) {
        self.cell(slot).current = None;
    }

    /// Fires when a job has begun.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// What has to be written now: jobs that have run for `minimum` or have something to say and are not shown as
    /// they are, or were shown longer ago than `refresh`; and slots that are shown to run what they do not run any more.
    pub(crate) fn take(&self, now: Instant, minimum: Duration, refresh: Duration) -> Vec<Observation> {
        let mut observations = Vec::new();
        for (slot, worker) in self.workers.iter().enumerate() {
            let mut cell = self.cell(slot);
            let attempt = cell.attempts;
            let wanted = cell.current.as_ref().and_then(|current| {
                let old = now.saturating_duration_since(current.started) >= minimum;
                (old || current.checkin.is_some()).then_some((attempt, current.lines))
            });
            let stale = cell.shown_at.is_some_and(|at| now.saturating_duration_since(at) >= refresh);
            if wanted == cell.shown && !(stale && wanted.is_some()) {
                continue;
            }
            cell.shown = wanted;
            cell.shown_at = wanted.map(|_| now);
            let job = wanted.and(cell.current.as_ref()).map(|current| ObservedJob {
                name: current.job.name().to_owned(),
                id: current.job.id().to_owned(),
                started_at: current.started_at,
                args: current.job.args().unwrap_or_default().into(),
                checkin: current.checkin.clone(),
            });
            observations.push(Observation { worker: worker.to_string(), job });
        }
        observations
    }

    /// Everything is to be written again: the last write failed.
    pub(crate) fn forget(&self) {
        for slot in 0..self.cells.len() {
            let mut cell = self.cell(slot);
            // Of an idle slot nothing may be left to show, but the old record may still be there.
            cell.shown = Some((u64::MAX, 0));
        }
    }

    /// Whether any slot runs a job or is still shown to run one.
    pub(crate) fn is_busy(&self) -> bool {
        (0..self.cells.len()).any(|slot| {
            let cell = self.cell(slot);
            cell.current.is_some() || cell.shown.is_some()
        })
    }

    /// The records of all workers, to be taken away at the end.
    pub(crate) fn all_idle(&self) -> Vec<Observation> {
        let shown = |slot: &usize| self.cell(*slot).shown.is_some();
        let idle = |slot: usize| Observation { worker: self.workers[slot].to_string(), job: None };
        (0..self.cells.len()).filter(shown).map(idle).collect()
    }

    fn cell(&self, slot: usize) -> MutexGuard<'_, Cell> {
        self.cells[slot].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckIn {
    /// Writes the line that is shown with the job. `at` is the second at which it was said.
    pub(crate) fn say(&self, text: String, at: i64) {
        let mut cell = self.board.cell(self.slot);
        if cell.attempts == self.attempt
            && let Some(current) = &mut cell.current
        {
            current.checkin = Some((text, at));
            current.lines += 1;
        }
    }
}
