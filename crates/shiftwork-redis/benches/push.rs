//! How fast jobs go in: one by one, and many at a time. `cargo bench -p shiftwork-redis --bench push`
//!
//! Starts a server of its own and shares the machine with it, so the figures are for both together. Each is the median of several
//! runs; look at the ratios, not at the numbers.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::Instant;

use shiftwork_core::{Client, Enqueue};
use shiftwork_redis::RedisStore;
use test_servers::RedisServer;

const RUNS: usize = 5;
const SINGLE: usize = 5_000;
const BULK: usize = 300_000;

fn jobs(count: usize) -> impl Iterator<Item = Enqueue> {
    (0..count)
        .map(|n| Enqueue::named("bench", &Args { n, text: "forty-two characters of text for each job" }))
}

#[derive(serde::Serialize)]
struct Args {
    n: usize,
    text: &'static str,
}

/// Jobs a second, the median of the runs.
async fn median(mut run: impl AsyncFnMut() -> usize) -> f64 {
    let mut rates = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        let count = run().await;
        rates.push(count as f64 / started.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    rates[RUNS / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = RedisServer::start();
        let client = Client::from(RedisStore::connect(&server.url()).await.expect("a store"));
        let one_by_one = median(async || {
            for job in jobs(SINGLE) {
                client.enqueue(job).await.expect("a job");
            }
            server.run(&["FLUSHALL"]);
            SINGLE
        })
        .await;
        println!("| way | jobs/s | ratio |\n|---|---|---|");
        println!("| one by one | {one_by_one:.0} | 1 |");
        for batch in [10, 100, 1000, 10_000] {
            let rate = median(async || {
                let mut left = BULK.min(batch * 300);
                let total = left;
                while left > 0 {
                    let count = batch.min(left);
                    client.enqueue_many(jobs(count)).await.expect("jobs");
                    left -= count;
                }
                server.run(&["FLUSHALL"]);
                total
            })
            .await;
            println!("| {batch} at a time | {rate:.0} | {:.1} |", rate / one_by_one);
        }
    });
}
