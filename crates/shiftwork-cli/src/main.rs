//! The `shiftwork` command: background jobs from the command line.

mod commands;
mod logging;
mod store;
mod time;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use store::StoreOptions;

/// Background jobs from the command line: put jobs into queues, run commands for them.
///
/// Jobs live in an embedded file, or in Redis or Valkey in the layout of the Go library gocraft/work.
#[derive(Debug, Parser)]
#[command(name = "shiftwork", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    store: StoreOptions,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a job, or many from a file, into its queue.
    Enqueue(commands::enqueue::Enqueue),
    /// Run a shell command for each job.
    Work(commands::work::Work),
    /// Watch a worker pool at work: no server, nothing to set up.
    Demo(commands::demo::Demo),
    /// Measure how fast jobs are done.
    Bench(commands::bench::Bench),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A benchmark starts and stops pools all the time.
    logging::install(matches!(arguments.command, Command::Bench(_)));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Command::Bench(bench) = &arguments.command {
        runtime.worker_threads(bench.threads());
    }
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no async runtime can be made: {error}");
            return ExitCode::from(3);
        }
    };
    let result = runtime.block_on(async {
        match arguments.command {
            Command::Enqueue(enqueue) => enqueue.run(&arguments.store).await,
            Command::Work(work) => work.run(&arguments.store).await,
            Command::Demo(demo) => demo.run(&arguments.store).await,
            Command::Bench(bench) => bench.run(&arguments.store).await,
        }
    });
    // A handler that hangs must not keep the process: its job has been given back.
    runtime.shutdown_background();
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            if is_unavailable(&error) {
                eprintln!("start a server there, or name another one with --store or SHIFTWORK_STORE");
            }
            exit_code_of(&error)
        }
    }
}

fn our_error(error: &anyhow::Error) -> Option<&shiftwork::Error> {
    error.chain().find_map(|cause| cause.downcast_ref::<shiftwork::Error>())
}

fn is_unavailable(error: &anyhow::Error) -> bool {
    our_error(error).is_some_and(shiftwork::Error::is_unavailable)
}

/// 2 for wrong usage, 3 for a store that can't be reached, 1 for anything else.
fn exit_code_of(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match our_error(error) {
        Some(error) if error.is_unavailable() => 3,
        Some(error) if error.is_config() || error.is_invalid_input() => 2,
        _ if error.downcast_ref::<commands::Usage>().is_some() => 2,
        _ => 1,
    })
}
