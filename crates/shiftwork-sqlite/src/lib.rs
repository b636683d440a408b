//! Shiftwork's store in an embedded SQLite file: jobs without any server.
//!
//! [`SqliteStore`] keeps the contract of [`Store`](shiftwork_core::store::Store) to the letter: same verbs, same order, same
//! limits as on Redis. One thread per file and process writes, with group commit; another one reads beside it. Any number
//! of processes on one machine share a file, and take turns.
//!
//! Where things are: `store.rs` has the verbs, `verbs.rs` and `due.rs` their transactions, `writer.rs` group commit,
//! `turn.rs` the fairness between processes, `migrations/` the tables.

mod changes;
mod database;
mod due;
mod errors;
mod jobs;
mod migrations;
mod open;
mod periodic;
mod place;
mod queues;
mod reader;
mod recovery;
mod request;
mod store;
mod transaction;
mod turn;
mod verbs;
mod writer;

pub use store::{SqliteStore, SqliteStoreBuilder};

/// Which commits wait until the disk has them. Whatever is chosen, no crash of the process loses anything, and no power
/// cut damages the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Those that enqueue jobs: an acknowledged job survives a power cut; one that was finished in the last moments before
    /// it may run again.
    #[default]
    Enqueued,
    /// All: a job that finished before a power cut does not run again.
    All,
    /// None: a power cut may undo the last moments, enqueued jobs included.
    None,
}

impl Durability {
    /// Whether a group of requests is synced to the disk.
    fn syncs(self, enqueues: bool) -> bool {
        match self {
            Self::Enqueued => enqueues,
            Self::All => true,
            Self::None => false,
        }
    }
}
