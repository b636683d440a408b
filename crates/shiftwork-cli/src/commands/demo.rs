//! `shiftwork demo`: a worker pool at work, to watch.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use shiftwork::job::RawJob;
use shiftwork::{Client, Context, Enqueue, HandlerResult, Job, JobOptions, Next, WorkerPool};

use super::stop_signal;
use crate::store::StoreOptions;

/// Jobs that are added in a second.
const JOBS_A_SECOND: u64 = 12;

/// Watch a worker pool at work: no server, nothing to set up.
///
/// Jobs of five kinds trickle in and are worked on: e-mails, of which some fail and are tried again, thumbnails that take their
/// time and say how far they are, a report that is unique, reminders that are put off, and a clean-up every ten seconds. A line a second says what happens. Ctrl-c stops it: what runs
/// is finished first, and what is left goes on next time. The jobs are in the embedded file in your data directory; with
/// --store redis://… they are on that server.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Stop by itself after so many seconds
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// How many jobs to run at once
    #[arg(long, env = "SHIFTWORK_CONCURRENCY", default_value_t = 8)]
    concurrency: usize,
}

const CLEAN_UP: &str = "clean_up";

macro_rules! job {
    ($type:ident, $name:literal) => {
        #[derive(Serialize, Deserialize)]
        struct $type {
            number: u64,
        }

        impl Job for $type {
            const NAME: &str = $name;
        }
    };
}

job!(Email, "email");
job!(Thumbnail, "thumbnail");
job!(Reminder, "reminder");

/// Always the same args, so that only one waits at a time.
#[derive(Serialize, Deserialize)]
struct Report {}

impl Job for Report {
    const NAME: &str = "report";
}

/// What the middleware counts.
#[derive(Default)]
struct Counts {
    running: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
}

async fn count(ctx: Context, next: Next) -> HandlerResult {
    let counts = ctx.state::<Arc<Counts>>();
    counts.running.fetch_add(1, Ordering::Relaxed);
    let result = next.run(ctx).await;
    counts.running.fetch_sub(1, Ordering::Relaxed);
    let total = if result.is_ok() { &counts.done } else { &counts.failed };
    total.fetch_add(1, Ordering::Relaxed);
    result
}

async fn email(job: Email, ctx: Context) -> Result<(), String> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    // Every fifth address is wrong at first.
    if job.number.is_multiple_of(5) && ctx.attempt() == 1 { Err("mailbox busy".to_owned()) } else { Ok(()) }
}

async fn thumbnail(job: Thumbnail, ctx: Context) {
    let steps = 4 + job.number % 7 * 3;
    for step in 0..steps {
        ctx.progress(step, steps);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn report(_: Report, _: Context) {
    tokio::time::sleep(Duration::from_millis(2500)).await;
}

async fn reminder(_: Reminder, _: Context) {}

async fn clean_up(_: RawJob, _: Context) {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

impl Demo {
    pub(crate) async fn run(self, store: &StoreOptions) -> anyhow::Result<ExitCode> {
        let client = store.connect().await?;
        let counts = Arc::new(Counts::default());
        let soon = JobOptions::new().backoff(|_| Duration::from_secs(3));
        let pool = WorkerPool::new(client.clone())
            .concurrency(self.concurrency)
            .state(counts.clone())
            .middleware(count)
            .job_with(soon.priority(5), email)
            .job_with(JobOptions::new().max_concurrency(3), thumbnail)
            .job(report)
            .job(reminder)
            .raw(CLEAN_UP, JobOptions::new(), clean_up)
            .periodic("*/10 * * * * *", CLEAN_UP)
            .start()
            .await?;
        println!(
            "a worker pool of {} slots on {}; ctrl-c stops it",
            self.concurrency,
            client.store().describe()
        );
        let stop = stop_signal()?;
        tokio::select! {
            () = stop => println!("stopping: finishing what runs"),
            () = limit(self.seconds) => {}
            result = trickle(&client) => result?,
            () = tell(&client, &counts) => {}
        }
        pool.stop().await;
        println!(
            "stopped: {} done, {} failed attempts",
            counts.done.load(Ordering::Relaxed),
            counts.failed.load(Ordering::Relaxed)
        );
        Ok(ExitCode::SUCCESS)
    }
}

async fn limit(seconds: Option<u64>) {
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => std::future::pending().await,
    }
}

/// Adds jobs, until the process is stopped. An outage of the store is waited for.
async fn trickle(client: &Client) -> anyhow::Result<()> {
    let mut clock = tokio::time::interval(Duration::from_millis(1000 / JOBS_A_SECOND));
    for number in 1.. {
        clock.tick().await;
        let job = match number % 4 {
            0 => Enqueue::job(Reminder { number }).after(Duration::from_secs(2)),
            1 | 2 => Enqueue::job(Email { number }),
            _ if number % 8 == 3 => Enqueue::job(Report {}).unique(),
            _ => Enqueue::job(Thumbnail { number }),
        };
        match client.enqueue(job).await {
            Err(error) if !error.is_unavailable() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// A line a second.
async fn tell(client: &Client, counts: &Counts) {
    let names: Vec<_> = [Email::NAME, Thumbnail::NAME, Report::NAME, Reminder::NAME]
        .iter()
        .filter_map(|name| shiftwork::job::JobName::new(name).ok())
        .collect();
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    clock.tick().await;
    for second in 1_u64.. {
        clock.tick().await;
        let waiting = match client.store().backlog(&names).await {
            Ok(backlog) => {
                let queued: usize = backlog.value.queued.iter().map(|(_, jobs)| jobs).sum();
                format!(
                    "{queued:3} queued {:3} put off {:3} to retry",
                    backlog.value.scheduled, backlog.value.retry
                )
            }
            Err(_) => "the store is away".to_owned(),
        };
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        println!(
            "{second:4} s  {:5} done {:4} failed {:3} running  {waiting}",
            get(&counts.done),
            get(&counts.failed),
            get(&counts.running),
        );
    }
}
