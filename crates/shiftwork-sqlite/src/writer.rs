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
    connection: Connection,
    turnstile: Option<Turnstile>,
    durability: Durability,
    changes: Arc<Changes>,
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
    let mut writer = Writer { connection, turnstile, durability, changes, synced: true };
    let (sender, receiver) = channel();
    std::thread::Builder::new()
        .name("shiftwork-sqlite-writer".to_owned())
        .spawn(move || writer.serve(&receiver))
        .map_err(|error| Error::config(format!("no thread for the store's file can be made: {error}")))?;
    Ok(sender)
}

impl Writer {
    fn serve(&mut self, requests: &Receiver<Box<dyn Request>>) {
        while let Ok(first) = requests.recv() {
            let mut group = vec![first];
            group.extend(requests.try_iter());
            self.write(group, requests);
        }
    }

    /// Writes a group, and with it what arrives while it waits for its turn.
    fn write(&mut self, mut group: Vec<Box<dyn Request>>, requests: &Receiver<Box<dyn Request>>) {
        let (outcome, undone) = {
            let turn = self.turnstile.as_ref().map(Turnstile::wait).transpose();
            if let Err(error) = turn {
                let text = error.to_string();
                let error = || Error::unavailable("the store's file can't be locked", text.clone());
                return group.into_iter().for_each(|request| request.answer(Err(error())));
            }
            group.extend(requests.try_iter());
            let sync = self.durability.syncs(group.iter().any(|request| request.is_durable()));
            match set_synced(&self.connection, &mut self.synced, sync) {
                Ok(()) => run(&mut self.connection, &mut group),
                Err(error) => (Err(error), 0),
            }
        };
        match outcome {
            Ok(changed) => {
                let rest = group.split_off(group.len() - undone);
                group.into_iter().for_each(|request| request.answer(Ok(())));
                self.changes.announce(changed);
                if !rest.is_empty() {
                    self.write(rest, requests);
                }
            }
            Err(error) if group.len() == 1 => {
                group.into_iter().for_each(|request| request.answer(Err(failed(&error))));
            }
            Err(_) => group.into_iter().for_each(|request| self.write_alone(request)),
        }
    }

    fn write_alone(&mut self, request: Box<dyn Request>) {
        let (_none, no_more) = channel();
        self.write(vec![request], &no_more);
    }
}

/// One transaction over the group. Returns how many requests at its end were left for the next one.
fn run(connection: &mut Connection, group: &mut [Box<dyn Request>]) -> (SqlResult<Changed>, usize) {
    let began = clock::now();
    let mut undone = 0;
    let mut in_transaction = || {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut changed = Changed::default();
        let count = group.len();
        for (number, request) in group.iter_mut().enumerate() {
            if number > 0 && began.elapsed() > LONGEST_GROUP {
                undone = count - number;
                break;
            }
            let context = Transaction::new(&transaction, request.clock_offset());
            request.run(&context)?;
            changed |= context.changed();
        }
        transaction.commit()?;
        Ok(changed)
    };
    let outcome = in_transaction();
    (outcome, undone)
}

/// Sets whether the next commits wait for the disk. Switching costs less than a microsecond.
fn set_synced(connection: &Connection, synced: &mut bool, wanted: bool) -> SqlResult<()> {
    if *synced != wanted {
        connection.pragma_update(None, "synchronous", if wanted { "FULL" } else { "NORMAL" })?;
        *synced = wanted;
    }
    Ok(())
}
