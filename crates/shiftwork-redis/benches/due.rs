//! How late delayed jobs start, and what a million jobs that are due at once do to a server.
//! `cargo bench -p shiftwork-redis --bench due`
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use shiftwork_core::job::{JobName, RawJob};
use shiftwork_core::store::{Push, Store};
use shiftwork_core::{Client, Context, Enqueue, JobOptions, WorkerPool};
use shiftwork_redis::RedisStore;
use test_servers::RedisServer;
use tokio::sync::mpsc;

const DELAYED: i64 = 1_000;
const SPREAD_SECONDS: i64 = 20;
const DUE_AT_ONCE: usize = 1_000_000;
const SLICE: usize = 500;

fn micros() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    i64::try_from(now.as_micros()).expect("a time of this era")
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Jobs spread over some seconds: from the second at which each is due to its start, with three pools waiting.
async fn lateness(server: &RedisServer) {
    let (started, mut starts) = mpsc::unbounded_channel();
    let mut pools = Vec::new();
    let client = Client::from(RedisStore::connect(&server.url()).await.expect("a store"));
    for _ in 0..3 {
        let started = started.clone();
        let client = Client::from(RedisStore::connect(&server.url()).await.expect("a store"));
        let handler = move |job: RawJob, _: Context| {
            let args: serde_json::Value =
                serde_json::from_slice(job.args().unwrap_or_default()).expect("args");
            let late = micros() - args["at"].as_i64().expect("a time") * 1_000_000;
            let _ = started.send(late as f64 / 1000.0);
            async {}
        };
        let pool = WorkerPool::new(client).concurrency(100).raw("job", JobOptions::new(), handler);
        pools.push(pool.start().await.expect("a pool"));
    }
    let first = micros() / 1_000_000 + 3;
    let jobs = (0..DELAYED).map(|n| {
        let at = first + n % SPREAD_SECONDS;
        let time = Timestamp::from_second(at).expect("a time");
        Enqueue::json("job", format!("{{\"at\":{at},\"n\":{n}}}")).at(time)
    });
    client.enqueue_many(jobs).await.expect("jobs");
    let mut late = Vec::new();
    for _ in 0..DELAYED {
        late.push(starts.recv().await.expect("a start"));
    }
    for pool in pools {
        pool.stop().await;
    }
    late.sort_by(f64::total_cmp);
    assert!(late[0] >= 0.0, "a job ran early");
    println!("| due → started, three pools | p50, ms | p99, ms | worst, ms |\n|---|---|---|---|");
    println!(
        "| {DELAYED} jobs over {SPREAD_SECONDS} s | {:.1} | {:.1} | {:.1} |",
        percentile(&late, 50),
        percentile(&late, 99),
        late[late.len() - 1]
    );
}

/// Everything is due: three promoters share the work, and a plain command measures how long the server is busy.
async fn a_million_at_once(server: &RedisServer) {
    server.run(&["FLUSHALL"]);
    let store = RedisStore::connect(&server.url()).await.expect("a store");
    for first in (0..DUE_AT_ONCE).step_by(10_000) {
        let pushes: Vec<_> = (first..first + 10_000)
            .map(|n| Push {
                queue: JobName::new("job").expect("a name"),
                job: format!("{{\"name\":\"job\",\"id\":\"{n}\",\"t\":1,\"args\":{{\"n\":{n}}}}}")
                    .into_bytes()
                    .into(),
                run_at: Some(1_000_000_000),
                unique: None,
            })
            .collect();
        store.push(&pushes).await.expect("jobs");
    }
    let started = Instant::now();
    let promoters: Vec<_> = (0..3)
        .map(|_| {
            let url = server.url();
            tokio::spawn(async move {
                let store = RedisStore::connect(&url).await.expect("a store");
                let mut moved = 0;
                loop {
                    let promoted = store.promote(SLICE).await.expect("a promotion").value;
                    moved += promoted.moved;
                    if promoted.next_due.is_none() {
                        return moved;
                    }
                }
            })
        })
        .collect();
    let mut pings = Vec::new();
    while !promoters.iter().all(tokio::task::JoinHandle::is_finished) {
        let asked = Instant::now();
        store.time().await.expect("the time");
        pings.push(asked.elapsed().as_secs_f64() * 1000.0);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut moved = 0;
    for promoter in promoters {
        moved += promoter.await.expect("a promoter");
    }
    assert_eq!(moved, DUE_AT_ONCE, "each job is moved once");
    pings.sort_by(f64::total_cmp);
    println!(
        "\n| {DUE_AT_ONCE} due at once, three promoters | other calls meanwhile: p50, ms | p99, ms | worst, ms |\n|---|---|---|---|"
    );
    println!(
        "| {:.0} jobs/s | {:.1} | {:.1} | {:.1} |",
        moved as f64 / started.elapsed().as_secs_f64(),
        percentile(&pings, 50),
        percentile(&pings, 99),
        pings[pings.len() - 1]
    );
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = RedisServer::start();
        lateness(&server).await;
        a_million_at_once(&server).await;
    });
}
