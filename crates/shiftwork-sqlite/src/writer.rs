//! The thread that writes: group commit.
//!
//! All requests that wait when the file is free become one transaction, so that a flood of small ones costs one commit,
//! and a lone one waits for nobody. Replies go out after the commit. Should one request fail, the group is rolled back
//! and each of its requests runs again alone, so that no other fails with it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use shiftwork_core::{Error, clock};

use crate::changes::{Changed, Changes};
use crate::errors::{SqlResult, failed};
use crate::queues::Rows;
use crate::request::Request;
use crate::transaction::Transaction;
use crate::turn::Turnstile;
use crate::{Durability, open};

/// No transaction takes in more requests after this time: others wait for the file, too.
const LONGEST_GROUP: Duration = Duration::from_millis(20);

/// Where requests go.
pub(crate) type Requests = Sender<Box<dyn Request>>;

#[derive(Debug)]
struct Writer {
    file: OpenFile,
    turnstile: Option<Turnstile>,
    durability: Durability,
    changes: Arc<Changes>,
}

/// The file, and what is known of it from one transaction to the next.
#[derive(Debug)]
struct OpenFile {
    connection: Connection,
    /// The queues' rows, as long as they are those of this version of the file.
    rows: Rows,
    version: Option<i64>,
    /// Whether commits are synced to the disk at the moment.
    synced: bool,
}

/// Opens the file (or one in memory) and starts the thread. Returns when the file is ready.
pub(crate) fn start(
    path: Option<&Path>,
    durability: Durability,
    changes: Arc<Changes>,
) -> Result<Requests, Error> {
    let turnstile = match path {
        Some(path) => Some(Turnstile::beside(path).map_err(|error| {
            Error::config(format!(
                "the files for locking beside {} can't be made ({error}); check that the directory may be written to",
                path.display()
            ))
        })?),
        None => None,
    };
    let connection = {
        let turn = turnstile.as_ref().map(Turnstile::wait).transpose();
        let _turn = turn.map_err(|error| Error::config(format!("file locks do not work here: {error}")))?;
        open::for_writing(path)?
    };
    let file = OpenFile { connection, rows: Rows::default(), version: None, synced: true };
    let mut writer = Writer { file, turnstile, durability, changes };
    let (sender, receiver) = channel();
    std::thread::Builder::new()
        .name("shiftwork-sqlite-writer".to_owned())
        .spawn(move || writer.serve(&receiver))
        .map_err(|error| Error::config(format!("no thread for the store's file can be made: {error}")))?;
    Ok(sender)
}

impl Writer {
    fn serve(&mut self, requests: &Receiver<Box<dyn Request>>) {
        let mut group = Vec::new();
        loop {
            if group.is_empty() {
                match requests.recv() {
                    Ok(first) => group.push(first),
                    Err(_) => return,
                }
            }
            group = self.write(group, || requests.try_iter());
        }
    }

    /// Writes a group, and with it what has arrived when it is its turn. Returns what is left for the next turn.
    fn write<I: Iterator<Item = Box<dyn Request>>>(
        &mut self,
        mut group: Vec<Box<dyn Request>>,
        arrived: impl FnOnce() -> I,
    ) -> Vec<Box<dyn Request>> {
        let outcome = {
            let turn = self.turnstile.as_ref().map(Turnstile::wait).transpose();
            if let Err(error) = turn {
                let text = error.to_string();
                group.into_iter().for_each(|request| {
                    request.answer(Err(Error::unavailable("the store's file can't be locked", text.clone())));
                });
                return Vec::new();
            }
            group.extend(arrived());
            let sync = self.durability.syncs(group.iter().any(|request| request.is_durable()));
            self.file.run(&mut group, sync)
        };
        match outcome {
            Ok((changed, done)) => {
                let rest = group.split_off(done);
                group.into_iter().for_each(|request| request.answer(Ok(())));
                self.changes.announce(changed);
                return rest;
            }
            Err(error) if group.len() == 1 => {
                group.into_iter().for_each(|request| request.answer(Err(failed(&error))));
            }
            Err(_) => {
                for request in group {
                    self.write(vec![request], std::iter::empty);
                }
            }
        }
        Vec::new()
    }
}

impl OpenFile {
    /// One transaction over the group, or as much of it as there is time for. Returns how many requests it did.
    fn run(&mut self, group: &mut [Box<dyn Request>], sync: bool) -> SqlResult<(Changed, usize)> {
        let outcome = self.set_synced(sync).and_then(|()| self.run_transaction(group));
        if outcome.is_err() {
            self.version = None;
        }
        outcome
    }

    fn run_transaction(&mut self, group: &mut [Box<dyn Request>]) -> SqlResult<(Changed, usize)> {
        let began = clock::now();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // From here on nobody else can change it.
        let version: i64 =
            transaction.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.version.replace(version) != Some(version) {
            self.rows.clear();
        }
        let mut changed = Changed::default();
        let mut done = 0;
        for request in group {
            if done > 0 && began.elapsed() > LONGEST_GROUP {
                break;
            }
            let context = Transaction::new(&transaction, &self.rows, request.clock_offset());
            request.run(&context)?;
            changed |= context.changed();
            done += 1;
        }
        transaction.commit()?;
        Ok((changed, done))
    }

    /// Sets whether the next commits wait for the disk. Switching costs less than a microsecond.
    fn set_synced(&mut self, wanted: bool) -> SqlResult<()> {
        if self.synced != wanted {
            self.connection.pragma_update(None, "synchronous", if wanted { "FULL" } else { "NORMAL" })?;
            self.synced = wanted;
        }
        Ok(())
    }
}
