//! How fast jobs are enqueued, every commit durable: one by one, from one client and from twenty at once, and in bulk.
//! `cargo bench -p shiftwork-sqlite --bench enqueue`
#![allow(clippy::disallowed_methods, dead_code, reason = "a benchmark measures real time")]

mod support;

use shiftwork_core::{Client, Enqueue};
use shiftwork_sqlite::Durability;
use support::{Fresh, median_rate, runtime, timed};

const RUNS: usize = 3;

async fn one_by_one(client: Client, jobs: usize) {
    for n in 0..jobs {
        client.enqueue(Enqueue::json("job", format!("{{\"n\":{n}}}"))).await.expect("a job");
    }
}

async fn clients(count: usize, jobs: usize) -> f64 {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let fresh = Fresh::new();
        let client = Client::from(fresh.open(Durability::default()).await);
        let (time, ()) = timed(async {
            let tasks: Vec<_> =
                (0..count).map(|_| tokio::spawn(one_by_one(client.clone(), jobs / count))).collect();
            for task in tasks {
                task.await.expect("a client");
            }
        })
        .await;
        times.push(time);
    }
    median_rate(jobs, times)
}

async fn bulk(slice: usize, jobs: usize) -> f64 {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let fresh = Fresh::new();
        let client = Client::from(fresh.open(Durability::default()).await);
        let (time, ()) = timed(async {
            for _ in 0..jobs / slice {
                let jobs = (0..slice).map(|n| Enqueue::json("job", format!("{{\"n\":{n}}}")));
                client.enqueue_many(jobs).await.expect("jobs");
            }
        })
        .await;
        times.push(time);
    }
    median_rate(jobs, times)
}

fn main() {
    runtime().block_on(async {
        println!("| enqueue | jobs/s | ratio |\n|---|---|---|");
        let alone = clients(1, 5_000).await;
        println!("| one by one, 1 client | {alone:.0} | 1.0 |");
        let many = clients(20, 40_000).await;
        println!("| one by one, 20 clients | {many:.0} | {:.1} |", many / alone);
        for slice in [1_000, 100_000] {
            let rate = bulk(slice, 500_000).await;
            println!("| {slice} at a time, 1 client | {rate:.0} | {:.1} |", rate / alone);
        }
    });
}
