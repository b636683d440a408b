//! What the benchmarks share.

use std::time::{Duration, Instant};

use shiftwork_core::{Client, Enqueue};
use shiftwork_sqlite::{Durability, SqliteStore};

/// Job types among which the jobs are spread.
pub(crate) const TYPES: usize = 10;

pub(crate) fn names() -> Vec<String> {
    (0..TYPES).map(|number| format!("type-{number}")).collect()
}

/// A runtime as `#[tokio::main]` makes it.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

/// A fresh file in a directory that is removed at the end.
pub(crate) struct Fresh {
    pub(crate) directory: tempfile::TempDir,
}

impl Fresh {
    pub(crate) fn new() -> Self {
        // In the build directory, on the disk that it is on: the system's temporary one may be in memory.
        Self { directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory") }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("jobs.db")
    }

    pub(crate) async fn open(&self, durability: Durability) -> SqliteStore {
        SqliteStore::builder(self.path()).durability(durability).open().await.expect("a store")
    }
}

/// Puts so many jobs into the queues, in bulk.
pub(crate) async fn fill(store: &SqliteStore, jobs: usize) -> Client {
    let client = Client::from(store.clone());
    for name in names() {
        let jobs = (0..jobs / TYPES).map(|n| Enqueue::json(&name, format!("{{\"n\":{n}}}")));
        client.enqueue_many(jobs).await.expect("jobs");
    }
    client
}

/// The median rate of several runs, in jobs a second.
pub(crate) fn median_rate(jobs: usize, mut times: Vec<Duration>) -> f64 {
    times.sort();
    jobs as f64 / times[times.len() / 2].as_secs_f64()
}

pub(crate) async fn timed<F: Future>(work: F) -> (Duration, F::Output) {
    let started = Instant::now();
    let output = work.await;
    (started.elapsed(), output)
}
