//! What is logged, and where: to standard error, warnings and what the pool says of itself, unless `RUST_LOG` says otherwise.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Sends log lines to standard error; standard output is for results. `quiet`: only what is wrong.
pub(crate) fn install(quiet: bool) {
    let usual = if quiet { "warn" } else { "warn,shiftwork=info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
}
