//! `cargo xtask test`: the one test command.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use test_servers::RedisServer;
use xshell::{Shell, cmd};

use crate::servers;

/// How long an example may run.
const EXAMPLE_SECONDS: u64 = 60;

pub(crate) fn run(shell: &Shell, arguments: &[String]) -> anyhow::Result<()> {
    servers::install(shell)?;
    let has_nextest =
        cmd!(shell, "cargo nextest --version").quiet().ignore_stderr().ignore_stdout().run().is_ok();
    if has_nextest {
        cmd!(shell, "cargo nextest run --workspace --all-features {arguments...}").run()?;
    } else {
        println!(
            "cargo-nextest is not installed; using cargo test (`cargo install cargo-nextest` is faster and names hangs)"
        );
        cmd!(shell, "cargo test --workspace --all-features --lib --bins --tests -- {arguments...}").run()?;
    }
    if !arguments.is_empty() {
        return Ok(());
    }
    cmd!(shell, "cargo test --doc --workspace --all-features").run()?;
    examples(shell)
}

/// Runs each example on a server started for it. It has to end by itself, in time, with success.
fn examples(shell: &Shell) -> anyhow::Result<()> {
    cmd!(shell, "cargo build --package shiftwork --all-features --examples").run()?;
    let mut examples: Vec<_> = shell.read_dir("crates/shiftwork/examples")?;
    examples.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    ensure!(!examples.is_empty(), "there are no examples in crates/shiftwork/examples");
    for example in examples {
        let name = example
            .file_stem()
            .and_then(|name| name.to_str())
            .context("an example's name is not text")?
            .to_owned();
        let server = RedisServer::start();
        let store = server.url();
        println!("example {name}");
        let mut child = std::process::Command::new(target(shell)?.join("debug/examples").join(&name))
            .env("SHIFTWORK_STORE", store)
            .spawn()
            .with_context(|| format!("example {name} can't be started"))?;
        for _ in 0..EXAMPLE_SECONDS * 20 {
            if child.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        match child.try_wait()? {
            Some(status) => ensure!(status.success(), "example {name} failed: {status}"),
            None => {
                child.kill()?;
                bail!("example {name} does not end by itself within {EXAMPLE_SECONDS} s");
            }
        }
    }
    Ok(())
}

fn target(shell: &Shell) -> anyhow::Result<std::path::PathBuf> {
    let configured = std::env::var_os("CARGO_TARGET_DIR").map(std::path::PathBuf::from);
    Ok(configured.unwrap_or(shell.current_dir().join("target")))
}
