//! The queues' rows: changed in memory, written back at the end of a request.
//!
//! The thread that writes keeps the rows from one transaction to the next, as long as nobody else has written to the file
//! (`PRAGMA data_version` tells): reading ten rows costs as much as claiming ten jobs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Row, params};
use shiftwork_core::job::JobName;
use shiftwork_core::store::claimable;

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
    pub(crate) head: i64,
    pub(crate) tail: i64,
    pub(crate) swept: i64,
    pub(crate) next_claim: i64,
}

impl Queue {
    /// How many jobs could be claimed now.
    pub(crate) fn available(&self) -> usize {
        claimable(self.waiting, self.running, self.paused, self.max_concurrency)
    }

    fn read(row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            known: row.get(1)?,
            paused: row.get(2)?,
            max_concurrency: row.get(3)?,
            waiting: from_sql(row.get(4)?),
            running: from_sql(row.get(5)?),
            head: row.get(6)?,
            tail: row.get(7)?,
            swept: row.get(8)?,
            next_claim: row.get(9)?,
        })
    }
}

/// Rows as the file has them, by namespace and name. `None`: the file has no such row.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    stored: RefCell<HashMap<(i64, JobName), Option<Queue>>>,
}

impl Rows {
    /// Forgets everything: the file may have changed.
    pub(crate) fn clear(&self) {
        self.stored.borrow_mut().clear();
    }
}

/// The queues that a request touches.
#[derive(Debug)]
pub(crate) struct Queues<'a> {
    transaction: &'a Transaction<'a>,
    namespace: i64,
    touched: HashMap<JobName, Option<Touched>>,
}

#[derive(Debug)]
struct Touched {
    queue: Queue,
    stored: Queue,
}

impl<'a> Queues<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>, namespace: i64) -> Self {
        Self { transaction, namespace, touched: HashMap::new() }
    }

    /// The queue, if it was ever heard of.
    pub(crate) fn get(&mut self, name: &JobName) -> SqlResult<Option<&mut Queue>> {
        let row = match self.touched.entry(name.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let stored = stored(self.transaction, self.namespace, name)?;
                new.insert(stored.map(|stored| Touched { queue: stored.clone(), stored }))
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
            self.touched.remove(name);
            self.transaction.rows().stored.borrow_mut().remove(&(self.namespace, name.clone()));
        }
        // The row is there now.
        self.get(name)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// Writes what has changed.
    pub(crate) fn save(self) -> SqlResult<()> {
        let mut rows = self.transaction.rows().stored.borrow_mut();
        for (name, touched) in self.touched {
            let Some(Touched { queue, stored }) = touched else { continue };
            if queue == stored {
                continue;
            }
            self.transaction.execute(
                "UPDATE queue SET known = ?2, paused = ?3, max_concurrency = ?4, waiting = ?5, running = ?6,
                    head = ?7, tail = ?8, swept = ?9, next_claim = ?10 WHERE id = ?1",
                params![
                    queue.id,
                    queue.known,
                    queue.paused,
                    queue.max_concurrency,
                    to_sql(queue.waiting),
                    to_sql(queue.running),
                    queue.head,
                    queue.tail,
                    queue.swept,
                    queue.next_claim
                ],
            )?;
            rows.insert((self.namespace, name), Some(queue));
        }
        Ok(())
    }
}

fn stored(transaction: &Transaction<'_>, namespace: i64, name: &JobName) -> SqlResult<Option<Queue>> {
    let mut rows = transaction.rows().stored.borrow_mut();
    match rows.entry((namespace, name.clone())) {
        Entry::Occupied(known) => Ok(known.get().clone()),
        Entry::Vacant(new) => {
            let read = transaction.first(
                "SELECT id, known, paused, max_concurrency, waiting, running, head, tail, swept, next_claim
                    FROM queue WHERE namespace = ?1 AND name = ?2",
                params![namespace, name.as_str()],
                Queue::read,
            )?;
            Ok(new.insert(read).clone())
        }
    }
}
