//! Other embedded job systems on the same work in the same run: draining jobs that do nothing, 20 and 100 at once.
//! `cargo bench -p shiftwork-sqlite --bench peers`
//!
//! They are programs of their own in `benches/peers`, built by this one: two of them can't be linked into one program, since
//! each brings its own SQLite, and the workspace's lock file stays free of what they depend on.
#![allow(clippy::disallowed_methods, dead_code, reason = "a benchmark measures real time")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use shiftwork_core::{Client, Context, JobOptions, WorkerPool};
use shiftwork_sqlite::Durability;
use support::{Fresh, fill, names, runtime, timed};

const RUNS: usize = 3;

/// The seconds that a peer says it took.
fn peer(name: &str, jobs: usize, slots: usize) -> f64 {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers").join(name);
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("peers");
    let fresh = Fresh::new();
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--release", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .arg("--")
        .arg(fresh.directory.path())
        .args([jobs.to_string(), slots.to_string()])
        .output()
        .expect("cargo");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{name}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

async fn ours(jobs: usize, slots: usize) -> f64 {
    let fresh = Fresh::new();
    let store = fresh.open(Durability::default()).await;
    let client: Client = fill(&store, jobs).await;
    let mut pool = WorkerPool::new(client).concurrency(slots);
    for name in names() {
        pool = pool.raw(&name, JobOptions::new(), |_, _: Context| async {});
    }
    let pool = pool.start().await.expect("a pool");
    let (time, drained) = timed(pool.drain(Duration::from_secs(300))).await;
    assert_eq!(drained.expect("a drain").tally.done, jobs);
    time.as_secs_f64()
}

fn median(mut seconds: Vec<f64>, jobs: usize) -> f64 {
    seconds.sort_by(f64::total_cmp);
    jobs as f64 / seconds[seconds.len() / 2]
}

fn main() {
    let runtime = runtime();
    println!(
        "| slots | ours, jobs/s | effectum | times as fast | apalis-sqlite | times as fast |\n|---|---|---|---|---|---|"
    );
    for slots in [20, 100] {
        let (mut us, mut effectum, mut apalis) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUNS {
            us.push(runtime.block_on(ours(100_000, slots)));
            effectum.push(peer("effectum", 20_000, slots));
            apalis.push(peer("apalis", 1_000, slots));
        }
        let (us, effectum, apalis) = (median(us, 100_000), median(effectum, 20_000), median(apalis, 1_000));
        println!(
            "| {slots} | {us:.0} | {effectum:.0} | {:.1} | {apalis:.0} | {:.0} |",
            us / effectum,
            us / apalis
        );
    }
}
