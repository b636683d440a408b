//! The subcommands, one file each.

pub(crate) mod bench;
pub(crate) mod demo;
pub(crate) mod enqueue;
pub(crate) mod shell;
pub(crate) mod work;

use tokio::signal::unix::{SignalKind, signal};

/// Wrong usage that only shows when the command runs. The exit code is 2, as for what clap finds.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Completes at SIGTERM or SIGINT.
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
