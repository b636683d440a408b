//! How soon an idle pool starts a job.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use shiftwork::{Client, Enqueue};
use tokio::sync::mpsc;

use super::report::{Figure, Report};
use super::scratch::{Place, Scratch};
use super::{Bench, drain, percentile};

const JOBS: usize = 1000;
/// A pool that has not started a job by then never will.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn measure(bench: &Bench, scratch: &Scratch, report: &mut Report) -> anyhow::Result<()> {
    let jobs = bench.jobs.map_or(JOBS, |jobs| jobs.get());
    let slots = bench.one_concurrency(100)?;
    let (started, mut starts) = mpsc::unbounded_channel();
    let mut pools = Vec::new();
    for _ in 0..bench.pools.get() {
        let started = started.clone();
        let handler = move || {
            let _ = started.send(Instant::now());
            std::future::ready(())
        };
        pools.push(bench.start_pool(scratch.client().await?, slots, handler).await?);
    }
    let mut pusher = Pusher::new(scratch).await?;
    let bar = drain::bar(jobs, "one job at a time");
    let names: Vec<String> = bench.names().collect();
    let mut times = Vec::new();
    for number in 0..jobs {
        // All pools are asleep again, and not in step with anything.
        tokio::time::sleep(Duration::from_micros(fastrand::u64(5_000..15_000))).await;
        let pushed = Instant::now();
        pusher.push(scratch, &names[number % names.len()], bench.args(number)).await?;
        let start = tokio::time::timeout(PATIENCE, starts.recv()).await;
        let start = start.ok().flatten().ok_or_else(|| anyhow::anyhow!("job {number} was never started"))?;
        times.push(start.saturating_duration_since(pushed));
        bar.inc(1);
    }
    bar.finish_and_clear();
    for pool in pools {
        pool.stop().await;
    }
    times.sort();
    let micros = |percent| Figure::Number(percentile(&times, percent).as_secs_f64() * 1e6, 0);
    report.row(vec![
        ("idle pools", Figure::Count(bench.pools.get())),
        ("jobs", Figure::Count(jobs)),
        ("p50, µs", micros(50)),
        ("p90, µs", micros(90)),
        ("p99, µs", micros(99)),
        ("longest, µs", micros(100)),
    ]);
    report.note(format!("From before {} to the start of the handler.", pusher.what()));
    Ok(())
}

/// Pushes jobs as somebody else would.
enum Pusher {
    /// A plain `LPUSH` on a connection of its own.
    Foreign(redis::aio::MultiplexedConnection),
    Ours(Client),
}

impl Pusher {
    async fn new(scratch: &Scratch) -> anyhow::Result<Self> {
        Ok(match &scratch.place {
            Place::Redis(client) => Self::Foreign(client.get_multiplexed_async_connection().await?),
            _ => Self::Ours(scratch.client().await?),
        })
    }

    fn what(&self) -> &'static str {
        match self {
            Self::Foreign(_) => "a plain LPUSH on another connection is sent",
            Self::Ours(_) => "the job is enqueued in the same process",
        }
    }

    async fn push(&mut self, scratch: &Scratch, name: &str, args: String) -> anyhow::Result<()> {
        match self {
            Self::Foreign(connection) => {
                let id = fastrand::u64(..);
                let job = format!(r#"{{"name":"{name}","id":"{id:024x}","t":1700000000,"args":{args}}}"#);
                let mut push = redis::cmd("LPUSH");
                let () =
                    push.arg(scratch.key(&format!("jobs:{name}"))).arg(job).query_async(connection).await?;
            }
            Self::Ours(client) => {
                client.enqueue(Enqueue::json(name, args)).await?;
            }
        }
        Ok(())
    }
}
