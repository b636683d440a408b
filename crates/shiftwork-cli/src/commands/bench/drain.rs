//! How many jobs a second.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use shiftwork::Enqueue;
use tokio::sync::Notify;

use super::report::{Figure, Report};
use super::scratch::{Place, Scratch};
use super::{Bench, median, reference};

const JOBS: usize = 300_000;
/// Jobs in one call of the enqueuer.
const CALL: usize = 1000;

/// How far a run is.
pub(super) struct Progress {
    done: AtomicUsize,
    wanted: usize,
    /// What handlers took, in nanoseconds.
    worked: AtomicU64,
    reached: Notify,
}

impl Progress {
    pub(super) fn new(wanted: usize) -> Arc<Self> {
        Arc::new(Self {
            done: AtomicUsize::new(0),
            wanted,
            worked: AtomicU64::new(0),
            reached: Notify::new(),
        })
    }

    pub(super) fn done(&self) {
        if self.done.fetch_add(1, Ordering::Relaxed) + 1 == self.wanted {
            self.reached.notify_one();
        }
    }

    /// Completes when all are done; the bar shows how it goes.
    pub(super) async fn reached(&self, bar: &ProgressBar) {
        let mut clock = tokio::time::interval(Duration::from_millis(250));
        loop {
            tokio::select! {
                () = self.reached.notified() => return,
                _ = clock.tick() => bar.set_position(self.done.load(Ordering::Relaxed) as u64),
            }
        }
    }
}

pub(super) async fn measure(bench: &Bench, scratch: &Scratch, report: &mut Report) -> anyhow::Result<()> {
    let jobs = bench.jobs.map_or(JOBS, |jobs| jobs.get());
    let compares = !bench.no_reference && bench.work == 0 && bench.backlog == 0;
    for slots in bench.slots(&[20, 100, 500]) {
        let (mut rates, mut overheads, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for run in 1..=bench.runs.get() {
            let bar = bar(jobs, &format!("{slots} slots, run {run}"));
            let (time, overhead) = ours(bench, scratch, jobs, slots, &bar).await?;
            rates.push(jobs as f64 / time.as_secs_f64());
            overheads.push(overhead);
            if compares && let Place::Redis(client) = &scratch.place {
                bar.set_message(format!("{slots} slots, run {run}, the Go way"));
                fill(bench, scratch, jobs).await?;
                let time = reference::drain(bench, scratch, client, jobs, slots, &bar).await?;
                others.push(jobs as f64 / time.as_secs_f64());
            }
            bar.finish_and_clear();
        }
        let rate = median(rates);
        let mut row = vec![
            ("slots", Figure::Count(slots)),
            ("jobs/s", Figure::Number(rate, 0)),
            ("overhead of a slot, µs a job", Figure::Number(median(overheads), 0)),
        ];
        if !others.is_empty() {
            let other = median(others);
            row.push(("the Go way, jobs/s", Figure::Number(other, 0)));
            row.push(("ratio", Figure::Number(rate / other, 1)));
        }
        report.row(row);
    }
    report.note(format!(
        "{} jobs of {} types with {} bytes of args on {} threads, medians of {} runs. The store shares this machine if it is \
         local: look at ratios.",
        jobs,
        bench.types,
        bench.payload,
        bench.threads(),
        bench.runs
    ));
    Ok(())
}

/// The time for all jobs, and what a slot spends on each besides the handler, in microseconds.
async fn ours(
    bench: &Bench,
    scratch: &Scratch,
    jobs: usize,
    slots: usize,
    bar: &ProgressBar,
) -> anyhow::Result<(Duration, f64)> {
    let progress = Progress::new(jobs);
    let work = Duration::from_millis(bench.work);
    let handler = {
        let progress = progress.clone();
        move || {
            let progress = progress.clone();
            async move {
                if !work.is_zero() {
                    let started = Instant::now();
                    tokio::time::sleep(work).await;
                    let took = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    progress.worked.fetch_add(took, Ordering::Relaxed);
                }
                progress.done();
            }
        }
    };
    // On connections of their own, as pools of several processes would be.
    let mut clients = Vec::new();
    for _ in 0..bench.pools.get() {
        clients.push(scratch.client().await?);
    }
    fill(bench, scratch, jobs + bench.backlog).await?;
    let started = Instant::now();
    let mut pools = Vec::new();
    for client in clients {
        pools.push(bench.start_pool(client, slots, handler.clone()).await?);
    }
    progress.reached(bar).await;
    let time = started.elapsed();
    for pool in pools {
        pool.stop().await;
    }
    scratch.clear().await?;
    let slot_time = time.as_secs_f64() * (slots * bench.pools.get()) as f64;
    let worked = Duration::from_nanos(progress.worked.load(Ordering::Relaxed)).as_secs_f64();
    Ok((time, (slot_time - worked) / jobs as f64 * 1e6))
}

async fn fill(bench: &Bench, scratch: &Scratch, jobs: usize) -> anyhow::Result<()> {
    let client = scratch.client().await?;
    let names: Vec<String> = bench.names().collect();
    for first in (0..jobs).step_by(CALL) {
        let call = first..jobs.min(first + CALL);
        client.enqueue_many(call.map(|n| Enqueue::json(&names[n % names.len()], bench.args(n)))).await?;
    }
    Ok(())
}

/// A progress bar; nothing where the terminal is none.
pub(super) fn bar(length: usize, message: &str) -> ProgressBar {
    let bar = ProgressBar::new(length as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg:32} {wide_bar} {human_pos}/{human_len}") {
        bar.set_style(style);
    }
    bar.set_message(message.to_owned());
    bar
}
