//! The queues' rows: each is read once in a request, changed in memory, and written back at its end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::{Row, params};
use shiftwork_core::job::JobName;

use crate::errors::SqlResult;
use crate::transaction::{Transaction, from_sql, to_sql};

/// A row of the table `queue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) id: i64,
    pub(crate) known: bool,
    pub(crate) paused: bool,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) waiting: usize,
    pub(crate) running: usize,
    pub(crate) next_position: i64,
    pub(crate) next_claim: i64,
}

impl Queue {
    /// How many jobs could be claimed now.
    pub(crate) fn available(&self) -> usize {
        if self.paused {
            return 0;
        }
        let room = match self.max_concurrency {
            None | Some(0) => usize::MAX,
            Some(limit) => (limit as usize).saturating_sub(self.running),
        };
        self.waiting.min(room)
    }

    fn read(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            known: row.get(1)?,
            paused: row.get(2)?,
            max_concurrency: row.get(3)?,
            waiting: from_sql(row.get(4)?),
            running: from_sql(row.get(5)?),
            next_position: row.get(6)?,
            next_claim: row.get(7)?,
        })
    }
}

/// The queues that a request touches.
#[derive(Debug)]
pub(crate) struct Queues<'a> {
    transaction: &'a Transaction<'a>,
    namespace: i64,
    rows: BTreeMap<JobName, Option<Touched>>,
}

#[derive(Debug)]
struct Touched {
    queue: Queue,
    stored: Queue,
}

impl<'a> Queues<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>, namespace: i64) -> Self {
        Self { transaction, namespace, rows: BTreeMap::new() }
    }

    /// The queue, if it was ever heard of.
    pub(crate) fn get(&mut self, name: &JobName) -> SqlResult<Option<&mut Queue>> {
        let row = match self.rows.entry(name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let read = read(self.transaction, self.namespace, name)?;
                new.insert(read.map(|stored| Touched { queue: stored.clone(), stored }))
            }
        };
        Ok(row.as_mut().map(|touched| &mut touched.queue))
    }

    /// The queue; a new one if it was never heard of.
    pub(crate) fn get_or_create(&mut self, name: &JobName) -> SqlResult<&mut Queue> {
        if self.get(name)?.is_none() {
            self.transaction.execute(
                "INSERT INTO queue (namespace, name) VALUES (?1, ?2)",
                params![self.namespace, name.as_str()],
            )?;
            self.rows.remove(name);
        }
        // The row is there now.
        self.get(name)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// Writes what has changed.
    pub(crate) fn save(self) -> SqlResult<()> {
        for Touched { queue, stored } in self.rows.into_values().flatten() {
            if queue == stored {
                continue;
            }
            self.transaction.execute(
                "UPDATE queue SET known = ?2, paused = ?3, max_concurrency = ?4, waiting = ?5, running = ?6,
                    next_position = ?7, next_claim = ?8 WHERE id = ?1",
                params![
                    queue.id,
                    queue.known,
                    queue.paused,
                    queue.max_concurrency,
                    to_sql(queue.waiting),
                    to_sql(queue.running),
                    queue.next_position,
                    queue.next_claim
                ],
            )?;
        }
        Ok(())
    }
}

fn read(transaction: &Transaction<'_>, namespace: i64, name: &JobName) -> SqlResult<Option<Queue>> {
    transaction.first(
        "SELECT id, known, paused, max_concurrency, waiting, running, next_position, next_claim
            FROM queue WHERE namespace = ?1 AND name = ?2",
        params![namespace, name.as_str()],
        Queue::read,
    )
}
