//! One file as this process works on it: one writer, one reader, whoever opens it how often.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use shiftwork_core::Error;
use shiftwork_core::store::Timed;

use crate::changes::Changes;
use crate::errors::{SqlResult, thread_ended};
use crate::request::{Call, Reply, Request};
use crate::transaction::Transaction;
use crate::writer::Requests;
use crate::{Durability, place, reader, writer};

/// The threads that work on one file. They end when the last handle is gone.
#[derive(Debug)]
pub(crate) struct Database {
    path: Option<PathBuf>,
    durability: Durability,
    writer: Requests,
    /// None for a file in memory, which has one connection only.
    reader: Option<Requests>,
    pub(crate) changes: Arc<Changes>,
}

/// All files that are open in this process: two pools on one file share its writer, and wake each other at once.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Database>>>> = Mutex::new(None);

impl Database {
    /// Opens a file, or joins those who have it open. Blocks for as long as the disk takes.
    pub(crate) fn open(path: &Path, durability: Durability) -> Result<Arc<Self>, Error> {
        let path = place::canonical(path)?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        open.retain(|_, database| database.strong_count() > 0);
        if let Some(database) = open.get(&path).and_then(Weak::upgrade) {
            if database.durability != durability {
                return Err(Error::config(format!(
                    "{} is already open in this process with another durability; use the same one for both",
                    path.display()
                )));
            }
            return Ok(database);
        }
        place::refuse_network(&path)?;
        let changes = Arc::new(Changes::default());
        let writer = writer::start(Some(&path), durability, changes.clone())?;
        let reader = Some(reader::start(&path, changes.clone())?);
        let database = Arc::new(Self { path: Some(path.clone()), durability, writer, reader, changes });
        open.insert(path, Arc::downgrade(&database));
        Ok(database)
    }

    /// A new file in memory.
    pub(crate) fn in_memory() -> Result<Arc<Self>, Error> {
        let changes = Arc::new(Changes::default());
        let durability = Durability::None;
        let writer = writer::start(None, durability, changes.clone())?;
        Ok(Arc::new(Self { path: None, durability, writer, reader: None, changes }))
    }

    /// Where it is, for logs.
    pub(crate) fn describe(&self) -> String {
        match &self.path {
            Some(path) => format!("sqlite:{}", path.display()),
            None => "sqlite::memory:".to_owned(),
        }
    }

    /// Runs `action` in a transaction that writes. `durable`: it must survive a power cut once it is answered.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        ahead: Duration,
        durable: bool,
        action: impl FnMut(&Transaction<'_>) -> SqlResult<T> + Send + 'static,
    ) -> Result<Timed<T>, Error> {
        self.begin_write(ahead, durable, action)?.get().await
    }

    /// As [`Database::write`], without waiting for the reply. Requests are done in the order in which they are made.
    pub(crate) fn begin_write<T: Send + 'static>(
        &self,
        ahead: Duration,
        durable: bool,
        action: impl FnMut(&Transaction<'_>) -> SqlResult<T> + Send + 'static,
    ) -> Result<Reply<T>, Error> {
        let (request, reply) = Call::with_reply(ahead, durable, action);
        send(&self.writer, request)?;
        Ok(reply)
    }

    /// Runs `action` in a transaction that reads: it sees everything that was answered before.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        ahead: Duration,
        action: impl FnMut(&Transaction<'_>) -> SqlResult<T> + Send + 'static,
    ) -> Result<Timed<T>, Error> {
        let (request, reply) = Call::with_reply(ahead, false, action);
        send(self.reader.as_ref().unwrap_or(&self.writer), request)?;
        reply.get().await
    }
}

fn send(thread: &Requests, request: Box<dyn Request>) -> Result<(), Error> {
    thread.send(request).map_err(|_| thread_ended())
}
