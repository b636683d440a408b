//! How fast apalis-sqlite drains jobs that do nothing: `peer-apalis DIRECTORY JOBS SLOTS` prints the seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use apalis::prelude::*;
use apalis_sqlite::*;

struct Done {
    left: AtomicUsize,
    all: tokio::sync::Notify,
}

async fn nothing(_: usize, done: Data<Arc<Done>>) -> Result<(), BoxDynError> {
    if done.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        done.all.notify_one();
    }
    Ok(())
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, jobs, slots] = &arguments[..] else { panic!("usage: DIRECTORY JOBS SLOTS") };
    let (jobs, slots): (usize, usize) = (jobs.parse().expect("jobs"), slots.parse().expect("slots"));
    let pool = SqlitePool::connect(&format!("sqlite://{directory}/apalis.db?mode=rwc")).await.expect("a file");
    SqliteStorage::setup(&pool).await.expect("tables");
    let mut storage = SqliteStorage::new(&pool);
    for n in 0..jobs {
        storage.push(n).await.expect("a job");
    }
    let done = Arc::new(Done { left: AtomicUsize::new(jobs), all: tokio::sync::Notify::new() });
    let started = Instant::now();
    let worker = WorkerBuilder::new("worker").backend(storage).concurrency(slots).data(done.clone()).build(nothing);
    tokio::spawn(worker.run());
    done.all.notified().await;
    println!("{}", started.elapsed().as_secs_f64());
    std::process::exit(0);
}
