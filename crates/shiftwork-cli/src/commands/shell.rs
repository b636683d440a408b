//! A shell command as a job handler.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use shiftwork::job::RawJob;
use shiftwork::{BoxError, Context};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// How much of a command's standard error goes into the job's error.
const ERROR_TAIL: usize = 2000;

/// A command line for `sh`.
#[derive(Debug, Clone)]
pub(crate) struct ShellCommand(Arc<str>);

impl ShellCommand {
    pub(crate) fn new(command: &str) -> Self {
        Self(command.into())
    }

    /// Runs it for one job.
    pub(crate) async fn run(self, job: RawJob, ctx: Context) -> Result<(), BoxError> {
        let mut child = Command::new("sh")
            .args(["-c", &self.0])
            .env("SHIFTWORK_JOB_NAME", job.name())
            .env("SHIFTWORK_JOB_ID", job.id())
            .env("SHIFTWORK_JOB_ATTEMPT", ctx.attempt().to_string())
            .env("SHIFTWORK_JOB_MAX_ATTEMPTS", ctx.max_attempts().to_string())
            .env("SHIFTWORK_JOB_ENQUEUED_AT", job.enqueued_at().to_string())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: ctrl-c at the terminal is for the worker, which lets its jobs end.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("sh can't be started: {error}"))?;
        let group = Group(child.id());
        let mut input = child.stdin.take();
        let feed = async {
            if let Some(input) = &mut input {
                // A command that does not read its input closes the pipe; that is its right.
                let _ = input.write_all(job.args().unwrap_or(b"null")).await;
                let _ = input.write_all(b"\n").await;
            }
            drop(input.take());
        };
        let errors = child.stderr.take();
        let work = async {
            let (status, (), tail) = tokio::join!(child.wait(), feed, tail_of(errors));
            (status, tail)
        };
        tokio::pin!(work);
        let (ended, asked_to_end) = tokio::select! {
            ended = &mut work => (ended, false),
            () = ctx.cancelled() => {
                // It may want to clean up. If it takes too long, this future is dropped, and the group is killed.
                group.signal("TERM");
                (work.await, true)
            }
        };
        let (status, tail) = ended;
        let status = status.map_err(|error| format!("the command can't be waited for: {error}"))?;
        if !status.success() && asked_to_end {
            // Our signal has ended it: that is no failure of the job. It is given back, or has timed out, by whoever drops
            // this future; what the command has left running goes with it.
            std::future::pending::<()>().await;
        }
        group.ended();
        if status.success() { Ok(()) } else { Err(failure(status, &tail).into()) }
    }
}

fn failure(status: ExitStatus, tail: &str) -> String {
    let tail = tail.trim();
    if tail.is_empty() { status.to_string() } else { format!("{status}: {tail}") }
}

/// Passes standard error on, and returns its end.
async fn tail_of(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let mut tail = VecDeque::with_capacity(ERROR_TAIL);
    let mut buffer = vec![0; 8192];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let _ = tokio::io::stderr().write_all(&buffer[..length]).await;
        tail.extend(&buffer[..length]);
        let surplus = tail.len().saturating_sub(ERROR_TAIL);
        tail.drain(..surplus);
    }
    String::from_utf8_lossy(tail.make_contiguous()).into_owned()
}

/// The command's process group: the shell and all that it started. Killed when this is dropped before the end.
struct Group(Option<u32>);

impl Group {
    fn signal(&self, name: &str) {
        if let Some(leader) = self.0 {
            // The group may have ended a moment ago.
            let kill = std::process::Command::new("kill")
                .args([&format!("-{name}"), "--", &format!("-{leader}")])
                .stderr(Stdio::null())
                .status();
            if let Err(error) = kill {
                tracing::warn!(target: "shiftwork", %error, "`kill` can't be run; a command may go on by itself");
            }
        }
    }

    /// The command has ended by itself.
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal("KILL");
    }
}
