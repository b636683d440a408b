//! Runs `shiftwork bench` and the peers, each on a server started for it, and reads their figures.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::{Map, Value};
use test_servers::RedisServer;
use xshell::{Shell, cmd};

use super::Bench;

/// The figures of one row, by name.
#[derive(Debug)]
pub(super) struct Figures(Map<String, Value>);

impl Figures {
    pub(super) fn get(&self, name: &str) -> anyhow::Result<f64> {
        self.0
            .get(name)
            .and_then(Value::as_f64)
            .with_context(|| format!("no figure {name:?} in {:?}", self.0))
    }
}

/// Another job system in `bench/peers`.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    command: Vec<PathBuf>,
}

#[derive(Debug)]
pub(super) struct Tools<'a> {
    shell: &'a Shell,
    program: PathBuf,
    pub(super) peers: Vec<Peer>,
    runs: usize,
    quick: bool,
}

impl<'a> Tools<'a> {
    pub(super) fn build(shell: &'a Shell, bench: &Bench) -> anyhow::Result<Self> {
        cmd!(shell, "cargo build --release --package shiftwork-cli").run()?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = target.unwrap_or(shell.current_dir().join("target"));
        let peers = if bench.no_peers { Vec::new() } else { peers(shell)? };
        let program = target.join("release/shiftwork");
        Ok(Self { shell, program, peers, runs: bench.runs.get(), quick: bench.quick })
    }

    /// How many jobs, in place of so many.
    pub(super) fn jobs(&self, jobs: usize) -> String {
        (if self.quick { (jobs / 10).max(10) } else { jobs }).to_string()
    }

    /// `shiftwork bench` on a fresh server.
    pub(super) fn on_redis(&self, arguments: &str) -> anyhow::Result<Vec<Figures>> {
        let server = server();
        self.on(&server.url(), arguments)
    }

    /// `shiftwork bench` on a store.
    pub(super) fn on(&self, store: &str, arguments: &str) -> anyhow::Result<Vec<Figures>> {
        let (program, runs) = (&self.program, self.runs.to_string());
        let arguments = arguments.split_whitespace();
        // One that measures latency or idle cost has one run.
        let output =
            cmd!(self.shell, "{program} bench --store {store} --runs {runs} --json {arguments...}").read()?;
        output.lines().map(|line| Ok(Figures(serde_json::from_str(line)?))).collect()
    }

    /// The only row of [`Tools::on_redis`].
    pub(super) fn row(&self, arguments: &str) -> anyhow::Result<Figures> {
        only(self.on_redis(arguments)?)
    }

    /// A folder for a file to measure in: on the disk of the build, since a temporary one may be memory.
    pub(super) fn folder(&self) -> anyhow::Result<tempfile::TempDir> {
        let beside = self.program.parent().context("the program is in a folder")?;
        Ok(tempfile::tempdir_in(beside)?)
    }

    /// The medians of figures of a peer.
    pub(super) fn peer(&self, peer: &Peer, arguments: &str, figures: &[&str]) -> anyhow::Result<Vec<f64>> {
        let mut values = vec![Vec::new(); figures.len()];
        for _ in 0..self.runs {
            let server = server();
            let url = server.url();
            let (program, rest) = peer.command.split_first().context("a peer has a program")?;
            let arguments = arguments.split_whitespace();
            let output = cmd!(self.shell, "{program} {rest...} --url {url} {arguments...}").read()?;
            let row = Figures(serde_json::from_str(&output)?);
            for (values, figure) in values.iter_mut().zip(figures) {
                values.push(row.get(figure)?);
            }
        }
        Ok(values.into_iter().map(median).collect())
    }
}

/// A server as most people run it, but without a disk in the way.
pub(super) fn server() -> RedisServer {
    RedisServer::builder().arg("save", "").arg("appendonly", "no").start()
}

pub(super) fn only(rows: Vec<Figures>) -> anyhow::Result<Figures> {
    ensure!(rows.len() == 1, "one row was expected, not {rows:?}");
    rows.into_iter().next().context("there is one")
}

fn peers(shell: &Shell) -> anyhow::Result<Vec<Peer>> {
    let folder = shell.current_dir().join("bench/peers");
    let (sidekiq, bullmq) = (folder.join("rusty-sidekiq"), folder.join("bullmq"));
    let manifest = sidekiq.join("Cargo.toml");
    let target = sidekiq.join("target");
    cmd!(shell, "cargo build --release --locked --manifest-path {manifest} --target-dir {target}").run()?;
    cmd!(shell, "npm ci --ignore-scripts --no-audit --no-fund --prefix {bullmq}")
        .run()
        .context("BullMQ needs Node.js 20 and npm; --no-peers leaves it out")?;
    Ok(vec![
        Peer { name: "rusty-sidekiq", command: vec![target.join("release/peer-rusty-sidekiq")] },
        Peer { name: "BullMQ", command: vec!["node".into(), bullmq.join("bench.mjs")] },
    ])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
