//! The worker pool on the memory store, with paused time: what handlers see, what becomes of jobs, how a pool stops, and how it
//! lives through faults of the store.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

mod faults;
mod handlers;
mod observation;
mod outcomes;
mod periodic;
mod reaper;
mod sharing;
mod stopping;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shiftwork_core::job::{JobName, RawJob};
use shiftwork_core::memory::{MemoryStore, Snapshot};
use shiftwork_core::{Client, Drained, Job, WorkerPool};

/// A job with a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Number {
    n: i64,
}

impl Job for Number {
    const NAME: &str = "number";
}

/// Another type of job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Other {
    n: i64,
}

impl Job for Other {
    const NAME: &str = "other";
}

/// A store that starts in 2023 and a client of it.
fn store() -> (MemoryStore, Client) {
    let store = MemoryStore::at(jiff::Timestamp::from_second(1_700_000_000).unwrap());
    (store.clone(), Client::from(store))
}

/// What handlers have to say.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl ToString) {
        self.0.lock().unwrap().push(line.to_string());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn name(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

async fn drain(pool: WorkerPool) -> Drained {
    pool.drain(Duration::from_secs(3600)).await.unwrap()
}

/// The jobs of a due set, parsed.
fn jobs(set: &[(i64, Arc<[u8]>)]) -> Vec<(i64, RawJob)> {
    set.iter().map(|(at, job)| (*at, RawJob::parse(job.clone()).unwrap())).collect()
}

/// No claim is left and every queue's bookkeeping is at zero.
fn assert_nothing_runs(snapshot: &Snapshot) {
    for (name, queue) in &snapshot.queues {
        assert_eq!(queue.running(), 0, "{name}");
    }
}
