//! The scheduled, retry and dead sets, and `promote`.

use rusqlite::params;
use shiftwork_core::store::{JobBytes, Promoted, Promotion, promotion};
use xxhash_rust::xxh3::xxh3_64;

use crate::changes::Changed;
use crate::errors::SqlResult;
use crate::jobs::Jobs;
use crate::queues::Queues;
use crate::transaction::{Transaction, to_sql};

/// One of the three sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Scheduled,
    Retry,
    Dead,
}

impl State {
    /// As the tables have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Retry => "retry",
            Self::Dead => "dead",
        }
    }
}

/// Finds rows by their bytes without an index over all of those.
pub(crate) fn digest(job: &[u8]) -> i64 {
    i64::from_ne_bytes(xxh3_64(job).to_ne_bytes())
}

/// The three sets of a namespace, with their sizes, which are written at the end of the request.
#[derive(Debug)]
pub(crate) struct DueSets<'a> {
    transaction: &'a Transaction<'a>,
    namespace: i64,
    grown: [i64; 3],
}

impl<'a> DueSets<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>, namespace: i64) -> Self {
        Self { transaction, namespace, grown: [0; 3] }
    }

    /// Puts a job into a set; one with the same bytes moves to the new second.
    pub(crate) fn insert(&mut self, state: State, at: i64, job: &[u8]) -> SqlResult<()> {
        let digest = digest(job);
        let seconds = self.transaction.all(
            "SELECT at FROM due_member WHERE namespace = ?1 AND state = ?2 AND digest = ?3",
            params![self.namespace, state.as_str(), digest],
            |row| row.get(0),
        )?;
        for second in seconds {
            self.remove(state, second, job)?;
        }
        self.transaction.execute(
            "INSERT INTO due (namespace, state, at, job) VALUES (?1, ?2, ?3, ?4)",
            params![self.namespace, state.as_str(), at, job],
        )?;
        // Two members of one second may, very rarely, have one digest.
        self.transaction.execute(
            "INSERT OR IGNORE INTO due_member (namespace, state, digest, at) VALUES (?1, ?2, ?3, ?4)",
            params![self.namespace, state.as_str(), digest, at],
        )?;
        self.grown[state as usize] += 1;
        if state != State::Dead {
            self.transaction.note(Changed::DUE);
        }
        Ok(())
    }

    /// Takes a job out of a set; whether it was there.
    pub(crate) fn remove(&mut self, state: State, at: i64, job: &[u8]) -> SqlResult<bool> {
        let removed = self.transaction.execute(
            "DELETE FROM due WHERE namespace = ?1 AND state = ?2 AND at = ?3 AND job = ?4",
            params![self.namespace, state.as_str(), at, job],
        )?;
        if removed == 0 {
            return Ok(false);
        }
        self.transaction.execute(
            "DELETE FROM due_member WHERE namespace = ?1 AND state = ?2 AND digest = ?3 AND at = ?4",
            params![self.namespace, state.as_str(), digest(job), at],
        )?;
        self.grown[state as usize] -= 1;
        Ok(true)
    }

    /// The first members that are due, in order.
    fn due(&self, state: State, now: i64, limit: usize) -> SqlResult<Vec<(i64, JobBytes)>> {
        self.transaction.all(
            "SELECT at, job FROM due WHERE namespace = ?1 AND state = ?2 AND at <= ?3 ORDER BY at, job LIMIT ?4",
            params![self.namespace, state.as_str(), now, to_sql(limit)],
            |row| Ok((row.get(0)?, row.get_ref(1)?.as_blob()?.into())),
        )
    }

    /// Writes the sizes.
    pub(crate) fn save(self) -> SqlResult<()> {
        let [scheduled, retry, dead] = self.grown;
        if self.grown != [0; 3] {
            self.transaction.execute(
                "UPDATE namespace SET scheduled = scheduled + ?2, retry = retry + ?3, dead = dead + ?4 WHERE id = ?1",
                params![self.namespace, scheduled, retry, dead],
            )?;
        }
        Ok(())
    }
}

/// The earliest second in the scheduled and the retry set.
pub(crate) fn next_due(transaction: &Transaction<'_>, namespace: i64) -> SqlResult<Option<i64>> {
    let mut earliest: Option<i64> = None;
    for state in [State::Scheduled, State::Retry] {
        let first: Option<i64> = transaction
            .first(
                "SELECT min(at) FROM due WHERE namespace = ?1 AND state = ?2",
                params![namespace, state.as_str()],
                |row| row.get(0),
            )?
            .flatten();
        earliest = [earliest, first].into_iter().flatten().min();
    }
    Ok(earliest)
}

/// `promote`: due jobs to their queues, what names no queue to the dead set.
pub(crate) fn promote(transaction: &Transaction<'_>, namespace: i64, limit: usize) -> SqlResult<Promoted> {
    let now = transaction.now_second();
    let (mut queues, mut sets) = (Queues::new(transaction, namespace), DueSets::new(transaction, namespace));
    let mut jobs = Jobs::new(transaction)?;
    let mut promoted = Promoted::default();
    for state in [State::Scheduled, State::Retry] {
        let left = limit - promoted.moved - promoted.buried;
        for (at, member) in sets.due(state, now, left)? {
            sets.remove(state, at, &member)?;
            match promotion(&member, now) {
                Promotion::Queue { queue, job } => {
                    let queue = queues.get_or_create(&queue)?;
                    queue.known = true;
                    jobs.append(queue, &job)?;
                    promoted.moved += 1;
                }
                Promotion::Dead { job } => {
                    sets.insert(State::Dead, now, &job)?;
                    promoted.buried += 1;
                }
            }
        }
    }
    queues.save()?;
    sets.save()?;
    promoted.next_due = next_due(transaction, namespace)?;
    Ok(promoted)
}
