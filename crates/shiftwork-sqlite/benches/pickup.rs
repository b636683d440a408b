//! How long an idle pool takes to start a job: enqueued in its own process, and in another one.
//! `cargo bench -p shiftwork-sqlite --bench pickup`
#![allow(clippy::disallowed_methods, dead_code, reason = "a benchmark measures real time")]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shiftwork_core::{Client, Context, Enqueue, JobOptions, WorkerPool};
use shiftwork_sqlite::{Durability, SqliteStore};
use support::{Fresh, runtime};
use tokio::sync::mpsc;

const JOBS: usize = 1_000;

fn micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    u64::try_from(now.as_micros()).expect("a time of this era")
}

async fn enqueue(client: &Client) {
    client.enqueue(Enqueue::json("job", format!("{{\"at\":{}}}", micros()))).await.expect("a job");
}

/// Enqueues a job for each line on standard input.
async fn producer(file: std::ffi::OsString) {
    let client = Client::from(SqliteStore::open(file).await.expect("a store"));
    for _ in std::io::stdin().lines() {
        enqueue(&client).await;
    }
}

/// Milliseconds from just before each enqueue to the start of its handler.
async fn measure(other_process: bool) -> Vec<f64> {
    let fresh = Fresh::new();
    let client = Client::from(fresh.open(Durability::default()).await);
    let (started, mut starts) = mpsc::unbounded_channel();
    let pool = WorkerPool::new(client.clone()).concurrency(4).raw(
        "job",
        JobOptions::new(),
        move |job: shiftwork_core::job::RawJob, _: Context| {
            let args: serde_json::Value =
                serde_json::from_slice(job.args().unwrap_or_default()).expect("args");
            let _ = started.send(micros() - args["at"].as_u64().expect("a time"));
            async {}
        },
    );
    let pool = pool.start().await.expect("a pool");
    let mut child = other_process.then(|| {
        Command::new(std::env::current_exe().expect("this program"))
            .env("PICKUP_FILE", fresh.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("a process")
    });
    let mut latencies = Vec::new();
    for _ in 0..JOBS {
        match &mut child {
            Some(child) => writeln!(child.stdin.as_mut().expect("its input")).expect("a line"),
            None => enqueue(&client).await,
        }
        latencies.push(starts.recv().await.expect("a start") as f64 / 1000.0);
        // Until the pool is idle again, at no fixed distance from its looks.
        tokio::time::sleep(Duration::from_micros(fastrand::u64(3_000..15_000))).await;
    }
    if let Some(mut child) = child {
        drop(child.stdin.take());
        child.wait().expect("its end");
    }
    pool.stop().await;
    latencies.sort_by(f64::total_cmp);
    latencies
}

fn main() {
    let runtime = runtime();
    if let Some(file) = std::env::var_os("PICKUP_FILE") {
        return runtime.block_on(producer(file));
    }
    println!("| enqueued | p50, ms | p99, ms | worst, ms |\n|---|---|---|---|");
    for (place, other_process) in [("in the same process", false), ("in another process", true)] {
        let latencies = runtime.block_on(measure(other_process));
        println!(
            "| {place} | {:.2} | {:.2} | {:.2} |",
            latencies[JOBS / 2],
            latencies[JOBS * 99 / 100],
            latencies[JOBS - 1]
        );
    }
}
