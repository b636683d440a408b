//! The reaper on a real server: states as crashes, Go pools and foreign hands leave them, and what has to come of them; and
//! outages, after which nobody may be taken for dead.
#![cfg(feature = "redis")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shiftwork::{Client, Context, JobOptions, ReapReport, RedisStore, RunningPool, WorkerPool};
use test_servers::{RedisServer, Value};

type Reports = Arc<Mutex<Vec<ReapReport>>>;

async fn client(server: &RedisServer, namespace: &str) -> Client {
    Client::from(RedisStore::builder(&server.url()).namespace(namespace).connect().await.unwrap())
}

/// A pool that works on a type of its own, and what its reaper has to tell.
async fn pool(client: Client) -> (RunningPool, Reports) {
    let reports = Reports::default();
    let told = reports.clone();
    let pool = WorkerPool::new(client)
        .raw("other", JobOptions::new(), |_, _: Context| async {})
        .on_reap(move |report| told.lock().unwrap().push(report.clone()));
    (pool.start().await.unwrap(), reports)
}

fn job(id: usize) -> String {
    format!(r#"{{"name":"foo","id":"{id}","t":1700000000,"args":{{"big":12345678901234567,"list":[]}}}}"#)
}

/// A namespace with something wrong in it, and what it must become.
struct Scenario {
    name: &'static str,
    commands: Vec<Vec<String>>,
    /// The jobs of the queue at the end, the next one first.
    jobs: Vec<usize>,
    lock: &'static str,
    lock_info: Vec<(&'static str, &'static str)>,
    /// Dead pools, unknown pools and dangling locks of the reports.
    reported: (usize, usize, usize),
}

fn commands(namespace: &str, lines: &[&str]) -> Vec<Vec<String>> {
    let job_of = |word: &str| word.strip_prefix("job-").map(|id| job(id.parse().unwrap()));
    let key = |word: &str| word.strip_prefix("P:").map(|rest| format!("{namespace}:{rest}"));
    lines
        .iter()
        .map(|line| {
            line.split(' ')
                .map(|word| key(word).or_else(|| job_of(word)).unwrap_or_else(|| word.to_owned()))
                .collect()
        })
        .collect()
}

fn scenarios() -> Vec<Scenario> {
    let scenario =
        |name: &'static str, lines: &[&str], jobs: &[usize], lock, info: &[_], reported| Scenario {
            name,
            commands: commands(name, lines),
            jobs: jobs.to_vec(),
            lock,
            lock_info: info.to_vec(),
            reported,
        };
    let old = "HSET P:worker_pools:2 heartbeat_at 1600000000 started_at 1600000000 job_names foo concurrency 2 host h";
    vec![
        scenario(
            "golden_reaper_dead_pool_and_a28_order",
            &[
                "SADD P:worker_pools 2",
                old,
                "RPUSH P:jobs:foo:2:inprogress job-3 job-2 job-1",
                "RPUSH P:jobs:foo job-5 job-4",
                "SET P:jobs:foo:lock 3",
                "HSET P:jobs:foo:lock_info 2 3",
            ],
            &[1, 2, 3, 4, 5],
            "0",
            &[],
            (1, 0, 0),
        ),
        scenario(
            "golden_reaper_no_heartbeat_a3_and_a30",
            &[
                "SADD P:known_jobs foo",
                "SADD P:worker_pools 2",
                "RPUSH P:jobs:foo:2:inprogress job-1",
                "SET P:jobs:foo:lock 3",
                "HSET P:jobs:foo:lock_info 2 1 9 2",
            ],
            &[1],
            "0",
            &[],
            (1, 0, 1),
        ),
        scenario(
            "golden_reaper_dangling",
            &[
                "SADD P:known_jobs foo",
                "SADD P:worker_pools live",
                "RPUSH P:jobs:foo:live:inprogress job-1",
                "SET P:jobs:foo:lock 5",
                "HSET P:jobs:foo:lock_info live 1",
            ],
            &[],
            "1",
            &[("live", "1")],
            (0, 0, 1),
        ),
        scenario(
            "a15_no_job_names",
            &[
                "SADD P:known_jobs foo",
                "SADD P:worker_pools 2",
                "HSET P:worker_pools:2 heartbeat_at 1600000000",
                "RPUSH P:jobs:foo:2:inprogress job-1",
                "SET P:jobs:foo:lock 1",
                "HSET P:jobs:foo:lock_info 2 1",
            ],
            &[1],
            "0",
            &[],
            (1, 0, 0),
        ),
        scenario(
            "a15_a_heartbeat_that_is_no_number",
            &[
                "SADD P:worker_pools 2",
                "HSET P:worker_pools:2 heartbeat_at yesterday job_names foo",
                "RPUSH P:jobs:foo:2:inprogress job-1",
                "SET P:jobs:foo:lock 1",
                "HSET P:jobs:foo:lock_info 2 1",
            ],
            &[1],
            "0",
            &[],
            (1, 0, 0),
        ),
        scenario(
            "a20_keys_of_the_wrong_type_keep_nobody",
            &[
                "SADD P:known_jobs foo bar",
                "SADD P:worker_pools 1 2",
                "SET P:worker_pools:1 nonsense",
                "SET P:jobs:bar:1:inprogress nonsense",
                old,
                "RPUSH P:jobs:foo:2:inprogress job-1",
                "SET P:jobs:foo:lock nonsense",
                "HSET P:jobs:foo:lock_info 2 1",
            ],
            &[1],
            "0",
            &[],
            (2, 0, 1),
        ),
        scenario(
            "a17_a19_an_unknown_pool_of_an_unknown_type",
            &[
                "SADD P:known_jobs foo",
                "RPUSH P:jobs:foo:9:inprogress job-2 job-1",
                "SET P:jobs:foo:lock 2",
                "HSET P:jobs:foo:lock_info 9 2",
            ],
            &[1, 2],
            "0",
            &[],
            (0, 1, 0),
        ),
        scenario(
            "a21_a_job_claimed_while_a_reaper_of_go_removed_the_pool",
            &[
                "SADD P:known_jobs foo",
                "ZADD P:beats 1600000000 2",
                "RPUSH P:jobs:foo:2:inprogress job-1",
                "SET P:jobs:foo:lock 0",
            ],
            &[1],
            "0",
            &[],
            (1, 0, 0),
        ),
        scenario(
            "a18_residue_is_cleared_away_quietly",
            &["SADD P:known_jobs foo", "SET P:jobs:foo:lock 0", "HSET P:jobs:foo:lock_info 7 0 8 0"],
            &[],
            "0",
            &[],
            (0, 0, 0),
        ),
        scenario(
            "a62_a_lost_lock_and_a_negative_count",
            &[
                "SADD P:known_jobs foo",
                "SADD P:worker_pools live",
                "RPUSH P:jobs:foo:live:inprogress job-2 job-1",
                "HSET P:jobs:foo:lock_info live 2 gone -3",
            ],
            &[],
            "2",
            &[("live", "2")],
            (0, 0, 1),
        ),
    ]
}

/// Each state in a namespace of its own, with a reaper of its own, all at once: most of the time is spent waiting.
#[tokio::test]
async fn reaper_scenarios_end_in_exactly_the_right_state() {
    let server = RedisServer::start();
    let scenarios = scenarios();
    let mut pools = Vec::new();
    for scenario in &scenarios {
        for command in &scenario.commands {
            server.run(&command.iter().map(String::as_str).collect::<Vec<_>>());
        }
        pools.push(pool(client(&server, scenario.name).await).await);
    }
    // A pool of Go beats with its own clock every few seconds. Longer than an unknown pool is waited for.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(21) {
        let now = server.run(&["TIME"]).list()[0].int().to_string();
        for scenario in &scenarios {
            let key = format!("{}:worker_pools:live", scenario.name);
            if scenario.commands.iter().flatten().any(|word| word == "live") {
                server.run(&["HSET", &key, "heartbeat_at", &now, "job_names", "foo"]);
            }
        }
        // sleep: time is what this test is about, and it passes on the server.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for (scenario, (pool, reports)) in scenarios.iter().zip(pools) {
        let name = scenario.name;
        let own = pool.id().to_string();
        let dump = server.dump(&format!("{name}:"));
        let get = |key: &str| dump.get(&format!("{name}:{key}"));
        let jobs: Vec<String> = scenario.jobs.iter().rev().map(|id| job(*id)).collect();
        let queue = if jobs.is_empty() { None } else { Some(Value::list(jobs.iter().map(String::as_str))) };
        assert_eq!(get("jobs:foo"), queue.as_ref(), "{name}");
        assert_eq!(get("jobs:foo:lock"), Some(&Value::string(scenario.lock)), "{name}");
        let info = Value::hash(scenario.lock_info.iter().copied());
        let wanted = if scenario.lock_info.is_empty() { None } else { Some(&info) };
        assert_eq!(get("jobs:foo:lock_info"), wanted, "{name}");
        let live = scenario.commands.iter().flatten().any(|word| word == "live");
        let members = if live { vec![own.as_str(), "live"] } else { vec![own.as_str()] };
        assert_eq!(get("worker_pools"), Some(&Value::set(members)), "{name}");
        let reports = std::mem::take(&mut *reports.lock().unwrap());
        let sum = |count: fn(&ReapReport) -> usize| reports.iter().map(count).sum::<usize>();
        let reported = (
            sum(|report| report.dead_pools.len()),
            sum(|report| report.unknown_pools.len()),
            sum(|report| report.dangling_locks.len()),
        );
        assert_eq!(reported, scenario.reported, "{name}: {reports:?}");
        assert_eq!(sum(|report| report.errors.len()), 0, "{name}: {reports:?}");
        pool.stop().await;
    }
}

/// What is done to a server, and how it is undone.
async fn nobody_is_reaped(
    namespace: &str,
    mut server: RedisServer,
    outage: impl AsyncFnOnce(&mut RedisServer),
) {
    let mut pools = Vec::new();
    for _ in 0..4 {
        pools.push(pool(client(&server, namespace).await).await);
    }
    let ids: Vec<_> = pools.iter().map(|(pool, _)| pool.id()).collect();
    outage(&mut server).await;
    // Long enough for a reaper to have made up its mind.
    // sleep: time is what this test is about, and it passes on the server.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(pools.iter().map(|(pool, _)| pool.id()).collect::<Vec<_>>(), ids, "nobody had to come back");
    for (pool, reports) in pools {
        assert_eq!(*reports.lock().unwrap(), []);
        pool.stop().await;
    }
}

#[tokio::test]
async fn a23_nobody_is_reaped_after_the_server_stood_still() {
    nobody_is_reaped("stopped", RedisServer::start(), async |server| {
        server.pause();
        // sleep: time is what this test is about, and it passes on the server.
        tokio::time::sleep(Duration::from_secs(14)).await;
        server.resume();
    })
    .await;
}

#[tokio::test]
async fn a23_nobody_is_reaped_after_the_server_was_killed_and_came_back() {
    let server = RedisServer::builder().arg("appendonly", "yes").arg("appendfsync", "everysec").start();
    nobody_is_reaped("killed", server, async |server| {
        // What was written in the last second is lost with it.
        // sleep: time is what this test is about, and it passes on the server.
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.kill();
        // sleep: time is what this test is about, and it passes on the server.
        tokio::time::sleep(Duration::from_secs(13)).await;
        server.restart();
    })
    .await;
}

#[tokio::test]
async fn a23_nobody_is_reaped_after_the_server_was_full() {
    nobody_is_reaped("full", RedisServer::start(), async |server| {
        server.run(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        server.run(&["CONFIG", "SET", "maxmemory", "1"]);
        // sleep: time is what this test is about, and it passes on the server.
        tokio::time::sleep(Duration::from_secs(13)).await;
        server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    })
    .await;
}

#[tokio::test]
async fn nobody_is_reaped_when_connections_are_cut_again_and_again() {
    nobody_is_reaped("cut", RedisServer::start(), async |server| {
        for _ in 0..30 {
            server.run(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            // sleep: time is what this test is about, and it passes on the server.
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
    })
    .await;
}

/// A24, A25: a handler that blocks all threads of the user's runtime, for longer than the dead time.
#[test]
fn a_blocked_runtime_does_not_get_its_pool_reaped() {
    let server = RedisServer::start();
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (blocked, other) = (runtime(), runtime());
    let (pool_of_other, reports) = other.block_on(async { pool(client(&server, "blocked").await).await });
    let (id, after) = blocked.block_on(async {
        let client = client(&server, "blocked").await;
        let pool = WorkerPool::new(client.clone())
            .raw("job", JobOptions::new(), |_, _: Context| async {
                // The mistake that users make.
                // sleep: time is what this test is about, and it passes on the server.
                std::thread::sleep(Duration::from_secs(16));
            })
            .start()
            .await
            .unwrap();
        let id = pool.id();
        client.enqueue(shiftwork::Enqueue::json("job", "{}")).await.unwrap();
        let drained = pool.drain(Duration::from_secs(60)).await.unwrap();
        (id, drained.tally)
    });
    assert_eq!((after.done, after.lost), (1, 0), "{id:?}");
    assert_eq!(*reports.lock().unwrap(), []);
    other.block_on(pool_of_other.stop());
}
