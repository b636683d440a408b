//! How fast worker pools drain jobs that do nothing: by slots and by durability, in one process and in three.
//! `cargo bench -p shiftwork-sqlite --bench drain`
//!
//! The benchmarks of other embedded job systems are in `benches/peers`, and do the same work.
#![allow(clippy::disallowed_methods, dead_code, reason = "a benchmark measures real time")]

mod support;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use shiftwork_core::{Client, Context, JobOptions, WorkerPool};
use shiftwork_sqlite::{Durability, SqliteStore};
use support::{Fresh, fill, median_rate, names, runtime, timed};

const RUNS: usize = 3;
const JOBS: usize = 200_000;
const LIMIT: Duration = Duration::from_secs(300);

/// Drains all queues; how many jobs this pool did.
async fn drain(store: SqliteStore, slots: usize) -> usize {
    let mut pool = WorkerPool::new(Client::from(store)).concurrency(slots);
    for name in names() {
        pool = pool.raw(&name, JobOptions::new(), |_, _: Context| async {});
    }
    pool.start().await.expect("a pool").drain(LIMIT).await.expect("a drain").tally.done
}

async fn one_process(durability: Durability, slots: usize) -> f64 {
    let jobs = if slots == 1 { JOBS / 10 } else { JOBS };
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let fresh = Fresh::new();
        let store = fresh.open(durability).await;
        fill(&store, jobs).await;
        let (time, done) = timed(drain(store, slots)).await;
        assert_eq!(done, jobs);
        times.push(time);
    }
    median_rate(jobs, times)
}

/// Three processes on one file: the rate of all together, and how many jobs each did.
async fn three_processes(slots: usize) -> (f64, Vec<usize>) {
    let fresh = Fresh::new();
    let store = fresh.open(Durability::default()).await;
    fill(&store, JOBS).await;
    let program = std::env::current_exe().expect("this program");
    let (time, done) = timed(async {
        let processes: Vec<_> = (0..3)
            .map(|_| {
                Command::new(&program)
                    .env("DRAIN_FILE", fresh.path())
                    .env("DRAIN_SLOTS", slots.to_string())
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("a process")
            })
            .collect();
        let mut done = Vec::new();
        for mut process in processes {
            let mut text = String::new();
            process.stdout.take().expect("its output").read_to_string(&mut text).expect("its output");
            process.wait().expect("its end");
            done.push(text.trim().parse::<usize>().expect("how many jobs it did"));
        }
        done
    })
    .await;
    assert_eq!(done.iter().sum::<usize>(), JOBS);
    (JOBS as f64 / time.as_secs_f64(), done)
}

fn main() {
    let runtime = runtime();
    if let Some(file) = std::env::var_os("DRAIN_FILE") {
        let slots = std::env::var("DRAIN_SLOTS").expect("slots").parse().expect("a number of slots");
        let done =
            runtime.block_on(async { drain(SqliteStore::open(file).await.expect("a store"), slots).await });
        println!("{done}");
        return;
    }
    runtime.block_on(async {
        println!("| slots | all commits synced, jobs/s | none (NORMAL), jobs/s | default, jobs/s |\n|---|---|---|---|");
        let mut alone = 0.0;
        for slots in [1, 20, 100] {
            let mut row = format!("| {slots} |");
            for durability in [Durability::All, Durability::None, Durability::Enqueued] {
                let rate = one_process(durability, slots).await;
                row += &format!(" {rate:.0} |");
                if slots == 20 {
                    alone = rate;
                }
            }
            println!("{row}");
        }
        let (together, shares) = three_processes(20).await;
        println!(
            "\nthree processes of 20 slots: {together:.0} jobs/s, {:.2} of one; they did {shares:?}",
            together / alone
        );
    });
}
