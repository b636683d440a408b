//! The thread that reads, beside the writer: questions never wait for a commit.
//!
//! While somebody waits, it also looks every few milliseconds whether another process has written to the file
//! (`PRAGMA data_version`, a look into shared memory).

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rusqlite::Connection;
use shiftwork_core::Error;

use crate::changes::{Changed, Changes};
use crate::errors::{SqlResult, failed};
use crate::open;
use crate::queues::Rows;
use crate::request::Request;
use crate::transaction::Transaction;
use crate::writer::Requests;

/// How often it looks for changes by other processes: a job of theirs is picked up within this time, and a hundred looks
/// of some microseconds a second are not to be seen in any profile.
const LOOK_PERIOD: Duration = Duration::from_millis(10);

#[derive(Debug)]
struct Reader {
    connection: Connection,
    changes: Arc<Changes>,
    seen: i64,
}

/// Opens the file for reading and starts the thread.
pub(crate) fn start(path: &Path, changes: Arc<Changes>) -> Result<Requests, Error> {
    let connection = open::for_reading(path)?;
    let mut reader = Reader { connection, changes, seen: 0 };
    let (sender, receiver) = channel();
    std::thread::Builder::new()
        .name("shiftwork-sqlite-reader".to_owned())
        .spawn(move || reader.serve(&receiver))
        .map_err(|error| Error::config(format!("no thread for the store's file can be made: {error}")))?;
    Ok(sender)
}

impl Reader {
    fn serve(&mut self, requests: &Receiver<Box<dyn Request>>) {
        loop {
            let request = match self.changes.has_waiters() {
                true => requests.recv_timeout(LOOK_PERIOD),
                false => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match request {
                Ok(request) => self.read(request),
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn read(&self, mut request: Box<dyn Request>) {
        let mut in_transaction = || {
            let transaction = self.connection.unchecked_transaction()?;
            request.run(&Transaction::new(&transaction, &Rows::default(), request.clock_offset()))?;
            transaction.commit()
        };
        let outcome = in_transaction().map_err(|error| failed(&error));
        request.answer(outcome);
    }

    /// Wakes the waiters if the file has changed since the last look. That it also sees what this process wrote only
    /// makes them look once more.
    fn look(&mut self) {
        let version: SqlResult<i64> = self
            .connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)));
        match version {
            Ok(version) if version == self.seen => return,
            Ok(version) => self.seen = version,
            Err(error) => {
                tracing::debug!(%error, "the store's file can't be looked at; waiters will look themselves")
            }
        }
        self.changes.announce(Changed::ANYTHING);
    }
}
