//! What a request works with: a transaction, the store's time in it, and the queues' rows.

use std::cell::Cell;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use shiftwork_core::clock;

use crate::changes::Changed;
use crate::errors::SqlResult;
use crate::queues::Rows;

/// A number of rows, as SQLite has it.
pub(crate) fn to_sql(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A number of rows, as SQLite has it. A negative one, which only a foreign hand can have written, counts as none.
pub(crate) fn from_sql(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// A transaction under way.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    connection: &'a Connection,
    rows: &'a Rows,
    now: Timestamp,
    changed: Cell<Changed>,
}

impl<'a> Transaction<'a> {
    /// Over a connection that is in a transaction. The store's time is the machine's, `ahead` of it in tests.
    pub(crate) fn new(connection: &'a Connection, rows: &'a Rows, ahead: Duration) -> Self {
        let now = clock::add(clock::wall_now(), ahead);
        Self { connection, rows, now, changed: Cell::default() }
    }

    /// Rows of queues that are known already.
    pub(crate) fn rows(&self) -> &'a Rows {
        self.rows
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn now_second(&self) -> i64 {
        self.now.as_second()
    }

    /// Notes that a waiter of this kind should look again once this is committed.
    pub(crate) fn note(&self, changed: Changed) {
        self.changed.set(self.changed.get() | changed);
    }

    pub(crate) fn changed(&self) -> Changed {
        self.changed.get()
    }

    /// Runs a statement; how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, parameters: impl Params) -> SqlResult<usize> {
        self.connection.prepare_cached(sql)?.execute(parameters)
    }

    /// The first row, if there is one.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        self.connection.prepare_cached(sql)?.query_row(parameters, read).optional()
    }

    /// All rows.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Vec<T>> {
        self.connection.prepare_cached(sql)?.query_map(parameters, read)?.collect()
    }

    /// The connection, for statements that run many times in a row.
    pub(crate) fn connection(&self) -> &'a Connection {
        self.connection
    }
}
