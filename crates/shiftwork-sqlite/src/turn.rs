//! Whose turn it is to write: fairness between the processes that share a file.
//!
//! SQLite lets one process write at a time; the others sleep and try again, and one that is busy all the time can keep
//! them out for good. So before a write transaction a process takes two file locks that the kernel queues, like a
//! turnstile: it waits for *next*, then for *writing*, and then gives *next* free. Who has just written has to pass *next*
//! again, and another process already holds it while it waits for *writing*: so they take turns. Alone, it costs four
//! system calls a transaction. A process that is killed loses its locks with its file handles.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The two locks of one file.
#[derive(Debug)]
pub(crate) struct Turnstile {
    next: File,
    writing: File,
}

/// The turn of this process, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a File);

impl Turnstile {
    /// Opens the two side files, and makes them if need be.
    pub(crate) fn beside(database: &Path) -> io::Result<Self> {
        Ok(Self { next: side_file(database, "-next")?, writing: side_file(database, "-writing")? })
    }

    /// Waits for this process's turn.
    pub(crate) fn wait(&self) -> io::Result<Turn<'_>> {
        self.next.lock()?;
        let turn = self.writing.lock();
        self.next.unlock()?;
        turn.map(|()| Turn(&self.writing))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Closing the file would free it as well; an error here leaves nothing to do.
        let _ = self.0.unlock();
    }
}

fn side_file(database: &Path, ending: &str) -> io::Result<File> {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(PathBuf::from(path))
}
