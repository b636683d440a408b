//! How fast jobs go in: one by one, and many at a time. `cargo bench -p shiftwork-redis --bench push`
//!
//! Starts a server of its own and shares the machine with it, so the figures are for both together. Each is the median of several
//! runs; look at the ratios, not at the numbers.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

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

/// Jobs a second, the median of the runs. `run` returns how many jobs it has pushed and in what time.
async fn median(mut run: impl AsyncFnMut() -> (usize, Duration)) -> f64 {
    let mut rates = Vec::new();
    for _ in 0..RUNS {
        let (count, time) = run().await;
        rates.push(count as f64 / time.as_secs_f64());
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
            let started = Instant::now();
            for job in jobs(SINGLE) {
                client.enqueue(job).await.expect("a job");
            }
            let time = started.elapsed();
            server.run(&["FLUSHALL"]);
            (SINGLE, time)
        })
        .await;
        println!("| way | jobs/s | ratio |\n|---|---|---|");
        println!("| one by one | {one_by_one:.0} | 1 |");
        for batch in [10, 100, 1000, 10_000, 100_000] {
            let rate = median(async || {
                let total = BULK.min(batch * 300);
                let started = Instant::now();
                for _ in 0..total / batch {
                    client.enqueue_many(jobs(batch)).await.expect("jobs");
                }
                let time = started.elapsed();
                assert_eq!(server.run(&["LLEN", "work:jobs:bench"]).int(), total as i64);
                server.run(&["FLUSHALL"]);
                (total, time)
            })
            .await;
            println!("| {batch} at a time | {rate:.0} | {:.1} |", rate / one_by_one);
        }
        for producers in [2, 4] {
            let rate = median(async || {
                let started = Instant::now();
                let share = BULK / producers / 1000;
                let tasks: Vec<_> = (0..producers)
                    .map(|_| {
                        let client = client.clone();
                        tokio::spawn(async move {
                            for _ in 0..share {
                                client.enqueue_many(jobs(1000)).await.expect("jobs");
                            }
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.expect("a producer");
                }
                let time = started.elapsed();
                server.run(&["FLUSHALL"]);
                (share * producers * 1000, time)
            })
            .await;
            println!("| 1000 at a time, {producers} producers | {rate:.0} | {:.1} |", rate / one_by_one);
        }
    });
}
