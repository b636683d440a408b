//! How fast rusty-sidekiq drains jobs that do nothing, and how soon it picks up a single one; one line of JSON tells.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Parser, ValueEnum};
use sidekiq::{Processor, ProcessorConfig, RedisConnectionManager, RedisPool, Worker};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{self, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

const QUEUES: u32 = 10;

/// Measures rusty-sidekiq on an empty Redis server.
#[derive(Parser)]
struct Arguments {
    /// The server: redis://HOST:PORT
    #[arg(long, value_parser = |url: &str| RedisConnectionManager::new(url))]
    url: RedisConnectionManager,
    /// How many jobs
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// How many workers
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// What to measure
    #[arg(long)]
    mode: Mode,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Jobs per second, out of full queues
    Drain,
    /// From before the enqueue call to the start of the handler, with idle workers
    Latency,
}

/// A handler that does nothing but tell that it ran.
struct Noop(Arc<dyn Fn() + Send + Sync>);

#[async_trait::async_trait]
impl Worker<()> for Noop {
    async fn perform(&self, (): ()) -> sidekiq::Result<()> {
        (self.0)();
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    // The info events of each job stay off, as in a program that wants speed.
    tracing_subscriber::registry()
        .with(LevelFilter::ERROR)
        .with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr))
        .with(EndOnError)
        .init();
    match arguments.mode {
        Mode::Drain => drain(&arguments).await?,
        Mode::Latency => latency(&arguments).await?,
    }
    // Not by returning: workers whose connections go away before them try again without end, and keep the runtime.
    std::process::exit(0)
}

/// Workers log what goes wrong and go on, for ever if the server is gone; but then there is nothing to measure.
struct EndOnError;

impl<S: tracing::Subscriber> Layer<S> for EndOnError {
    fn on_event(&self, _: &tracing::Event<'_>, _: layer::Context<'_, S>) {
        std::process::exit(1);
    }
}

async fn drain(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { jobs, concurrency, .. } = *arguments;
    let client = pool(arguments, QUEUES).await?;
    // There is no call that enqueues many: one task for each queue.
    let mut tasks = JoinSet::new();
    for queue in 0..QUEUES {
        let client = client.clone();
        tasks.spawn(async move {
            for _ in (queue..jobs).step_by(QUEUES as usize) {
                enqueue(&client, queue).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(enqueued) = tasks.join_next().await {
        enqueued??;
    }

    let all = Arc::new(Notify::new());
    let (done, left) = (all.clone(), AtomicUsize::new(jobs as usize));
    let on_job = move || {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            done.notify_one();
        }
    };
    let processor = processor(arguments, on_job).await?;
    let started = Instant::now();
    tokio::spawn(processor.run());
    all.notified().await;
    let seconds = started.elapsed().as_secs_f64();

    println!(
        r#"{{"peer":"rusty-sidekiq","version":"{}","mode":"drain","jobs":{jobs},"concurrency":{concurrency},"seconds":{seconds:.6},"jobs_per_second":{:.1}}}"#,
        version()?,
        f64::from(jobs) / seconds,
    );
    Ok(())
}

async fn latency(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { jobs, concurrency, .. } = *arguments;
    let client = pool(arguments, 1).await?;
    let (sender, mut starts) = mpsc::unbounded_channel();
    // If nobody listens any more, the measurement is over.
    let processor = processor(arguments, move || _ = sender.send(Instant::now())).await?;
    tokio::spawn(processor.run());
    // One job that does not count opens the client's connection, then all workers get time to fall idle.
    enqueue(&client, 0).await?;
    starts.recv().await.context("the workers have stopped")?;
    tokio::time::sleep(Duration::from_millis(500)).await;

    let mut times = Vec::new();
    for job in 0..jobs {
        tokio::time::sleep(Duration::from_micros(fastrand::u64(5_000..=15_000))).await;
        let before = Instant::now();
        enqueue(&client, job % QUEUES).await?;
        let start = starts.recv().await.context("the workers have stopped")?;
        times.push((start - before).as_micros());
    }
    times.sort_unstable();
    let percentile = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1];

    println!(
        r#"{{"peer":"rusty-sidekiq","version":"{}","mode":"latency","jobs":{jobs},"concurrency":{concurrency},"p50_us":{},"p99_us":{},"highest_us":{}}}"#,
        version()?,
        percentile(50),
        percentile(99),
        percentile(100),
    );
    Ok(())
}

async fn enqueue(client: &RedisPool, queue: u32) -> sidekiq::Result<()> {
    Noop::opts().queue(queue_name(queue)).perform_async(client, ()).await
}

fn queue_name(queue: u32) -> String {
    format!("bench{queue}")
}

/// Workers on all queues, with connections of their own, as the documentation recommends.
async fn processor(
    arguments: &Arguments,
    on_job: impl Fn() + Send + Sync + 'static,
) -> anyhow::Result<Processor> {
    // Each worker keeps a connection while it waits; the heartbeat and the two schedulers need one now and then.
    let pool = pool(arguments, u32::from(arguments.concurrency) + 3).await?;
    let config = ProcessorConfig::default().num_workers(arguments.concurrency.into());
    let mut processor = Processor::new(pool, (0..QUEUES).map(queue_name).collect()).with_config(config);
    processor.register(Noop(Arc::new(on_job)));
    Ok(processor)
}

async fn pool(arguments: &Arguments, connections: u32) -> anyhow::Result<RedisPool> {
    bb8::Pool::builder()
        .max_size(connections)
        // Otherwise each command has a PING before it, and draining is about 40 % slower.
        .test_on_check_out(false)
        // These two: a server that is not there is an error here and now.
        .min_idle(1)
        .retry_connection(false)
        .build(arguments.url.clone())
        .await
        .context("no connection to the Redis server")
}

/// The crate does not tell its version; the lock file does.
fn version() -> anyhow::Result<&'static str> {
    include_str!("../Cargo.lock")
        .split_once("name = \"rusty-sidekiq\"\nversion = \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(version, _)| version)
        .context("rusty-sidekiq is not in Cargo.lock")
}
