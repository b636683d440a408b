//! `shiftwork work`: a worker pool whose handlers are shell commands.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use shiftwork::{JobOptions, WorkerPool};

use super::shell::ShellCommand;
use super::{Usage, stop_signal};
use crate::store::StoreOptions;
use crate::time::delay;

/// Run a shell command for each job.
///
/// The command gets the job's args as JSON on standard input, and in its environment SHIFTWORK_JOB_NAME, SHIFTWORK_JOB_ID,
/// SHIFTWORK_JOB_ATTEMPT, SHIFTWORK_JOB_MAX_ATTEMPTS and SHIFTWORK_JOB_ENQUEUED_AT. Exit code 0 means done; anything else is a
/// failure, and the end of what it wrote to standard error is the job's error. Its standard output is passed on.
///
/// SIGTERM or ctrl-c stops the worker: it takes no more jobs, and waits for those that run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  shiftwork work --exec send_email='./send.sh'
  shiftwork work --exec checksum='jq -r .path | xargs -d \"\\n\" sha256sum' --concurrency 4
  shiftwork work --exec a='./a' --exec b='./b' --timeout 30s --max-fails 10 --drain")]
pub(crate) struct Work {
    /// A job type and the shell command that runs its jobs; may be given several times
    #[arg(long = "exec", value_name = "NAME=COMMAND", required = true)]
    commands: Vec<String>,

    /// How many jobs to run at once
    #[arg(long, env = "SHIFTWORK_CONCURRENCY", default_value_t = 10)]
    concurrency: usize,

    /// How many attempts a job gets before it goes to the dead set
    #[arg(long, value_name = "N", default_value_t = 4)]
    max_fails: u32,

    /// How long one attempt may take: 30s, 5m; its process group then gets SIGTERM, and SIGKILL soon after
    #[arg(long, value_name = "TIME", value_parser = delay)]
    timeout: Option<Duration>,

    /// How many jobs of each type may run at once over all workers, in every language; 0 is no limit
    #[arg(long, value_name = "N")]
    max_concurrency: Option<u32>,

    /// How long to wait for running jobs when stopping
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "25s")]
    shutdown_timeout: Duration,

    /// Answer the probes of an orchestrator on this address: /healthz and /readyz
    #[arg(long, value_name = "ADDRESS:PORT", env = "SHIFTWORK_HEALTH_ADDRESS")]
    health_address: Option<std::net::SocketAddr>,

    /// Stop when the queues are empty
    #[arg(long)]
    drain: bool,
}

impl Work {
    pub(crate) async fn run(self, store: &StoreOptions) -> anyhow::Result<ExitCode> {
        let client = store.connect().await?;
        let mut pool =
            WorkerPool::new(client).concurrency(self.concurrency).shutdown_timeout(self.shutdown_timeout);
        if let Some(address) = self.health_address {
            pool = pool.health_address(address);
        }
        for command in &self.commands {
            let (name, command) =
                command.split_once('=').filter(|(_, command)| !command.trim().is_empty()).ok_or_else(
                    || Usage(format!("--exec {command:?} has no command; write --exec NAME='COMMAND'")),
                )?;
            let mut options = JobOptions::new().max_fails(self.max_fails);
            if let Some(timeout) = self.timeout {
                options = options.timeout(timeout);
            }
            if let Some(limit) = self.max_concurrency {
                options = options.max_concurrency(limit);
            }
            let command = ShellCommand::new(command);
            pool = pool.raw(name, options, move |job, ctx| command.clone().run(job, ctx));
        }
        if self.drain {
            let stop = stop_signal()?;
            let drained = pool.start().await?.drain_unless(stop).await?;
            for (queue, jobs) in &drained.left.queued {
                eprintln!("left in queue {queue}: {jobs}");
            }
            return Ok(ExitCode::SUCCESS);
        }
        pool.run().await.map_err(|error| match error.downcast::<shiftwork::Error>() {
            // The exit code depends on it.
            Ok(error) => anyhow::Error::new(*error),
            Err(error) => anyhow::Error::from_boxed(error),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
