//! What two hundred idle pools cost a server: commands a second, by what they are for.
//! `cargo bench -p shiftwork-redis --bench fleet`
//!
//! Counted from `MONITOR`, commands inside of scripts included.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use shiftwork_core::{Client, Context, JobOptions, WorkerPool};
use shiftwork_redis::RedisStore;
use test_servers::RedisServer;

const POOLS: usize = 200;
const TYPES: usize = 10;
const SECONDS: u64 = 40;

/// Scripts by what they are for.
fn scripts() -> BTreeMap<String, &'static str> {
    let hash = |text: &str| redis::Script::new(text).get_hash().to_owned();
    [
        (include_str!("../src/scripts/beat.lua"), "heartbeats"),
        (include_str!("../src/scripts/look.lua"), "reaping"),
        (include_str!("../src/scripts/seen.lua"), "reaping"),
        (include_str!("../src/scripts/recover.lua"), "reaping"),
        (include_str!("../src/scripts/repair.lua"), "reaping"),
        (include_str!("../src/scripts/reaper_lock.lua"), "reaping"),
    ]
    .map(|(text, purpose)| (hash(text), purpose))
    .into()
}

/// What a command outside of scripts is for, by its line in MONITOR.
fn purpose(line: &str) -> &'static str {
    // A claim that finds nothing names the same keys.
    if line.contains("EVALSHA") {
        return "waiting for work and for due jobs";
    }
    let audits = ["\"SMEMBERS\"", "\"HGETALL\"", ":lock\"", ":inprogress\"", "reaper:"];
    if audits.iter().any(|word| line.contains(word)) {
        "reaping"
    } else {
        "waiting for work and for due jobs"
    }
}

fn count(port: u16) -> BTreeMap<&'static str, usize> {
    let scripts = scripts();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.write_all(b"MONITOR\r\n").expect("a command");
    let mut counts = BTreeMap::new();
    let mut current = "waiting for work and for due jobs";
    let started = Instant::now();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if started.elapsed() > Duration::from_secs(SECONDS) {
            break;
        }
        // Commands of a script come right after the call of the script.
        if !line.contains(" lua] ") {
            let script =
                scripts.iter().find(|(hash, _)| line.contains(hash.as_str())).map(|(_, purpose)| *purpose);
            current = script.unwrap_or_else(|| purpose(&line));
        }
        *counts.entry(current).or_default() += 1;
    }
    counts
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = RedisServer::start();
        let mut pools = Vec::new();
        for _ in 0..POOLS {
            let client = Client::from(RedisStore::connect(&server.url()).await.expect("a store"));
            let mut pool = WorkerPool::new(client).concurrency(10);
            for number in 0..TYPES {
                pool = pool.raw(&format!("type-{number}"), JobOptions::new(), |_, _: Context| async {});
            }
            pools.push(pool.start().await.expect("a pool"));
        }
        let port = server.port();
        let counts = tokio::task::spawn_blocking(move || count(port)).await.expect("counts");
        println!("| {POOLS} idle pools of {TYPES} types: commands for | a second |\n|---|---|");
        for (purpose, count) in counts {
            println!("| {purpose} | {:.1} |", count as f64 / SECONDS as f64);
        }
        for pool in pools {
            pool.stop().await;
        }
    });
}
