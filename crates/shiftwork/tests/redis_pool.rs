//! Worker pools on a real Redis that is cut off, frozen and restarted under them.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]
#![cfg(feature = "redis")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shiftwork::{Client, Context, Enqueue, Job, JobOptions, RedisStore, RunningPool, WorkerPool};
use test_servers::{FaultProxy, RedisServer, Value};
use tokio::sync::watch;

#[derive(Serialize, Deserialize)]
struct Count {
    n: usize,
}

impl Job for Count {
    const NAME: &str = "count";
}

/// Which jobs have run, and how often in all.
#[derive(Clone)]
struct Seen(Arc<watch::Sender<Runs>>);

#[derive(Default)]
struct Runs {
    jobs: BTreeSet<usize>,
    total: usize,
}

impl Seen {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::default()))
    }

    fn add(&self, n: usize) {
        self.0.send_modify(|runs| {
            runs.jobs.insert(n);
            runs.total += 1;
        });
    }

    fn runs(&self) -> usize {
        self.0.borrow().total
    }

    /// Until so many different jobs have run.
    async fn reach(&self, count: usize) {
        let mut runs = self.0.subscribe();
        let reached = runs.wait_for(|runs| runs.jobs.len() >= count);
        tokio::time::timeout(Duration::from_secs(50), reached).await.expect("all jobs run in time").unwrap();
    }
}

async fn client(url: &str) -> Client {
    // Half a second of silence is an outage here, so that the tests need not wait for one.
    let builder = RedisStore::builder(url).response_timeout(Duration::from_millis(500));
    Client::from(builder.connect().await.unwrap())
}

async fn start(url: &str, seen: &Seen) -> RunningPool {
    let seen = seen.clone();
    let pool = WorkerPool::new(client(url).await).concurrency(10).shutdown_timeout(Duration::from_secs(5));
    let count = move |job: Count, _: Context| {
        let seen = seen.clone();
        async move {
            // sleep: it is the job's work.
            tokio::time::sleep(Duration::from_millis(1)).await;
            seen.add(job.n);
        }
    };
    pool.job_with(JobOptions::new().max_concurrency(15), count).start().await.unwrap()
}

fn assert_all_is_quiet(server: &RedisServer) {
    for (key, value) in server.dump("work:") {
        let fine = match key.as_str() {
            "work:known_jobs" | "work:jobs:count:max_concurrency" => true,
            // When somebody last looked for dead pools.
            key if key.starts_with("work:reaper:") => true,
            // It lives two seconds: whether an idle pool is told of what changes.
            key if key.starts_with("work:wake_check:") => true,
            "work:jobs:count:lock" => value == Value::string("0"),
            _ => false,
        };
        assert!(fine, "left behind: {key} = {value:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_under_load_loses_no_job_and_needs_no_help() {
    const JOBS: usize = 4000;
    let mut server = RedisServer::builder().arg("appendonly", "yes").arg("appendfsync", "always").start();
    let seen = Seen::new();
    client(&server.url()).await.enqueue_many((0..JOBS).map(|n| Count { n })).await.unwrap();
    let pool = start(&server.url(), &seen).await;
    for part in 1..=2 {
        seen.reach(JOBS * part / 4).await;
        server.kill();
        server.restart();
    }
    // Jobs whose claim was made but never answered are in this pool's name; they go back when it leaves for good.
    let claimed = async || server.run(&["LLEN", &format!("work:jobs:count:{}:inprogress", pool.id())]).int();
    tokio::time::timeout(Duration::from_secs(50), async {
        while server.run(&["LLEN", "work:jobs:count"]).int() > 0 || claimed().await > 0 {
            // sleep: the server is asked, and does not say when.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("nothing is left");
    seen.reach(JOBS).await;
    pool.stop().await;
    assert!(
        seen.runs() - JOBS <= 2 * 30,
        "only what was under way at a kill runs twice: {}",
        seen.runs() - JOBS
    );
    assert_all_is_quiet(&server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_and_lost_replies_lose_no_job() {
    const JOBS: usize = 3000;
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let seen = Seen::new();
    client(&server.url()).await.enqueue_many((0..JOBS).map(|n| Count { n })).await.unwrap();
    let pool = start(&proxy.url(), &seen).await;
    seen.reach(JOBS / 4).await;
    proxy.cut();
    seen.reach(JOBS / 2).await;
    proxy.swallow_replies(true);
    // sleep: as long as it takes for calls to go unanswered.
    tokio::time::sleep(Duration::from_millis(700)).await;
    proxy.swallow_replies(false);
    proxy.cut();
    seen.reach(JOBS).await;
    pool.stop().await;
    assert_all_is_quiet(&server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_is_waited_for() {
    const JOBS: usize = 400;
    let server = RedisServer::start();
    let seen = Seen::new();
    let client = client(&server.url()).await;
    let pool = start(&server.url(), &seen).await;
    client.enqueue_many((0..JOBS).map(|n| Count { n })).await.unwrap();
    seen.reach(JOBS / 2).await;
    server.pause();
    // sleep: longer than the time-out of a call.
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.resume();
    seen.reach(JOBS).await;
    client.enqueue(Enqueue::job(Count { n: JOBS })).await.unwrap();
    seen.reach(JOBS + 1).await;
    pool.stop().await;
    assert_all_is_quiet(&server);
}
