//! Workers that are killed with SIGKILL again and again: no job is lost, every job that ran twice has a kill to blame, no
//! limit is ever exceeded, and at the end nothing is left in any book.
//!
//! A short, seeded run here; longer ones by hand: `SHIFTWORK_CRASH_SECONDS=120 SHIFTWORK_CRASH_JOBS=20000 cargo nextest run
//! -p shiftwork --all-features --test crash`.
#![cfg(all(feature = "redis", feature = "sqlite"))]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shiftwork::job::{JobName, RawJob};
use shiftwork::{Client, Context, Enqueue, JobOptions, WorkerPool};
use test_servers::RedisServer;

const PROCESSES: usize = 6;
/// How many `limited` jobs may run at once over all processes.
const LIMIT: usize = 3;
const TYPES: [&str; 3] = ["plain", "limited", "slow"];

fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A file to which all processes append whole lines.
#[derive(Clone)]
struct Log(Arc<Mutex<File>>);

impl Log {
    fn open(path: &Path) -> Self {
        Self(Arc::new(Mutex::new(OpenOptions::new().create(true).append(true).open(path).unwrap())))
    }

    fn add(&self, line: &str) {
        // One write: lines of several processes don't mix.
        self.0.lock().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// What the worker processes do: this test program, run again.
#[tokio::test]
#[ignore = "not a test, but what the worker processes do"]
async fn worker_process() {
    let Ok(store) = std::env::var("CRASH_STORE") else { return };
    let log = Log::open(Path::new(&std::env::var_os("CRASH_LOG").unwrap()));
    let client = shiftwork::connect(&store).await.unwrap();
    let mut pool = WorkerPool::new(client).concurrency(10).max_crashes(1000);
    for name in TYPES {
        let log = log.clone();
        let limit = if name == "limited" { LIMIT as u32 } else { 0 };
        pool = pool.raw(name, JobOptions::new().max_concurrency(limit), move |job: RawJob, _: Context| {
            let log = log.clone();
            async move {
                let id = job.id().to_owned();
                log.add(&format!("start {name} {id} {}", std::process::id()));
                let millis = id.bytes().map(u64::from).sum::<u64>() % 40;
                // sleep: it is the job's work, or time for a worker to get into it.
                tokio::time::sleep(Duration::from_millis(if name == "slow" { 4 * millis } else { millis }))
                    .await;
                log.add(&format!("end {name} {id} {}", std::process::id()));
            }
        });
    }
    pool.run().await.unwrap();
}

struct Worker(Child);

impl Worker {
    fn start(store: &str, log: &Path) -> Self {
        let program = std::env::current_exe().unwrap();
        let child = Command::new(program)
            .args(["worker_process", "--exact", "--include-ignored", "--nocapture"])
            .env("CRASH_STORE", store)
            .env("CRASH_LOG", log)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn kill(&mut self, log: &Log) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        log.add(&format!("killed {}", self.0.id()));
    }

    fn stop(mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has ended by itself, if all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Enqueues jobs, bit by bit, while workers are killed and started again; then waits until all is done.
async fn crash(store: &str) -> Client {
    let (seconds, jobs) =
        (number_from("SHIFTWORK_CRASH_SECONDS", 8), number_from("SHIFTWORK_CRASH_JOBS", 4000));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let log = Log::open(&path);
    let client = shiftwork::connect(store).await.unwrap();
    let mut random = fastrand::Rng::with_seed(number_from("SHIFTWORK_CRASH_SEED", 7));
    let mut workers: Vec<_> = (0..PROCESSES).map(|_| Worker::start(store, &path)).collect();
    let mut ids = BTreeSet::new();
    let started = Instant::now();
    let mut kills = 0;
    while started.elapsed() < Duration::from_secs(seconds) {
        let share = jobs as f64 * (started.elapsed().as_secs_f64() / seconds as f64);
        while (ids.len() as f64) < share {
            let many = (0..50).map(|n| Enqueue::json(TYPES[n % TYPES.len()], "{}"));
            let receipts = client.enqueue_many(many).await.unwrap();
            ids.extend(receipts.iter().map(|receipt| receipt.id().to_string()));
        }
        // Some way into whatever it does.
        // sleep: it is the job's work, or time for a worker to get into it.
        tokio::time::sleep(Duration::from_millis(random.u64(100..700))).await;
        let victim = random.usize(..PROCESSES);
        workers[victim].kill(&log);
        workers[victim] = Worker::start(store, &path);
        kills += 1;
    }
    let names = TYPES.map(|name| JobName::new(name).unwrap());
    let deadline = Instant::now() + Duration::from_secs(60 + seconds);
    loop {
        let backlog = client.store().backlog(&names).await.unwrap().value;
        let audits = client.store().audit(&names).await.unwrap().value;
        let running: i64 = audits.iter().map(|audit| audit.lock.unwrap()).sum();
        if backlog.queued.is_empty() && backlog.retry == 0 && running == 0 {
            break;
        }
        assert!(Instant::now() < deadline, "still there: {backlog:?}, {audits:?}");
        // sleep: the workers are processes of their own, and the store is all there is to look at.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for worker in workers {
        worker.stop();
    }
    check(&std::fs::read_to_string(&path).unwrap(), &ids);
    println!("{} jobs, {kills} kills", ids.len());
    client
}

/// Reads the log as it happened.
fn check(log: &str, ids: &BTreeSet<String>) {
    let mut running: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut ended: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut runs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut killed = BTreeSet::new();
    for line in log.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["start", name, id, pid] => {
                running.insert((id, pid), name);
                runs.entry(id).or_default().push(pid);
                let limited = running.values().filter(|name| **name == "limited").count();
                assert!(limited <= LIMIT, "{limited} limited jobs ran at once");
            }
            ["end", _, id, pid] => {
                running.remove(&(id, pid));
                ended.entry(id).or_default().push(pid);
            }
            ["killed", pid] => {
                running.retain(|(_, runner), _| *runner != pid);
                killed.insert(pid);
            }
            _ => panic!("{line:?}"),
        }
    }
    let lost: Vec<_> = ids.iter().filter(|id| !ended.contains_key(id.as_str())).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    for (id, pids) in runs {
        assert!(ids.contains(id), "{id} was never enqueued");
        // All runs but the last must have been cut short, or not been told to the store, by a kill.
        let unexplained = pids[..pids.len() - 1].iter().filter(|pid| !killed.contains(*pid)).count();
        assert_eq!(unexplained, 0, "{id} ran in {pids:?}, of which these were killed: {killed:?}");
    }
    assert!(running.is_empty(), "{running:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_workers_lose_nothing_on_redis() {
    let server = RedisServer::start();
    crash(&server.url()).await;
    // In every book: zero.
    for (key, value) in server.dump("work:") {
        let rest = &key["work:".len()..];
        let expected = match rest {
            "known_jobs" | "jobs:limited:max_concurrency" => true,
            _ if rest.starts_with("reaper:") || rest.starts_with("crashes:") => true,
            _ if rest.ends_with(":max_concurrency") || rest.ends_with(":lock") => {
                value == test_servers::Value::string("0")
            }
            _ => false,
        };
        assert!(expected, "{key} is left: {value:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_workers_lose_nothing_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let client = crash(&format!("sqlite:{}", path.display())).await;
    let audits = client.store().audit(&[]).await.unwrap().value;
    assert!(audits.iter().all(|audit| audit.lock == Some(0) && audit.pools.is_empty()), "{audits:?}");
}
