//! `shiftwork enqueue`: one job from the arguments, or many from a file of JSON lines.

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use shiftwork::{Client, Enqueue as Job, Receipt};

use super::Usage;
use crate::store::StoreOptions;
use crate::time::{delay, instant};

/// Jobs in one call to the store.
const BATCH: usize = 1000;

/// Put a job, or many from a file, into its queue.
///
/// With --from, each line of the file is a JSON object: its "name" (or NAME for all lines that have none), and if wanted "args",
/// "in" (a delay in seconds, or text such as "5m"), "at" (a time) and "unique". A line that is not right stops the work with its
/// number; the lines before it are enqueued, and the message says how many.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  shiftwork enqueue send_email --args '{\"to\":\"ada@example.com\"}'
  shiftwork enqueue report --in 5m --unique
  shiftwork enqueue --from jobs.jsonl
  find . -type f | jq -Rc '{args: {path: .}}' | shiftwork enqueue checksum --from -")]
pub(crate) struct Enqueue {
    /// The job type's name
    #[arg(required_unless_present = "from")]
    name: Option<String>,

    /// The job's args: a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "from")]
    args: Option<String>,

    /// Run it after this delay: 90s, 5m, 1h30m
    #[arg(long = "in", value_name = "DELAY", value_parser = delay, conflicts_with_all = ["at", "from"])]
    after: Option<Duration>,

    /// Run it at this time: 2026-12-24T18:00:00Z, or seconds since the epoch
    #[arg(long, value_name = "TIME", value_parser = instant, conflicts_with = "from")]
    at: Option<Timestamp>,

    /// Only if no job of the same name and args is waiting
    #[arg(long, conflicts_with = "from")]
    unique: bool,

    /// Take the jobs from this file of JSON lines, or from standard input if it is -
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// One line of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: Option<String>,
    args: Option<Box<RawValue>>,
    r#in: Option<Delay>,
    at: Option<Time>,
    #[serde(default)]
    unique: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Delay {
    Seconds(u64),
    Text(String),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Time {
    Seconds(i64),
    Text(String),
}

impl Enqueue {
    pub(crate) async fn run(self, store: &StoreOptions) -> anyhow::Result<ExitCode> {
        let client = store.connect().await?;
        match &self.from {
            Some(path) => self.enqueue_lines(&client, path).await,
            None => self.enqueue_one(&client).await,
        }
    }

    async fn enqueue_one(&self, client: &Client) -> anyhow::Result<ExitCode> {
        let name = self.name.as_deref().unwrap_or_default();
        let mut job = Job::json(name, self.args.as_deref().unwrap_or("null"));
        if let Some(after) = self.after {
            job = job.after(after);
        }
        if let Some(at) = self.at {
            job = job.at(at);
        }
        if self.unique {
            job = job.unique();
        }
        let receipt = client.enqueue(job).await?;
        if receipt.is_duplicate() {
            println!("duplicate: an equal job is waiting already; nothing was enqueued");
            return Ok(ExitCode::from(1));
        }
        println!("{}", receipt.id());
        Ok(ExitCode::SUCCESS)
    }

    async fn enqueue_lines(&self, client: &Client, path: &PathBuf) -> anyhow::Result<ExitCode> {
        let (reader, size): (Box<dyn Read>, Option<u64>) = if path.as_os_str() == "-" {
            (Box::new(std::io::stdin()), None)
        } else {
            let file =
                std::fs::File::open(path).map_err(|error| Usage(format!("{}: {error}", path.display())))?;
            let size = file.metadata().ok().map(|metadata| metadata.len());
            (Box::new(file), size)
        };
        let progress = progress_bar(size);
        let mut reader = BufReader::with_capacity(256 * 1024, progress.wrap_read(reader));
        let mut total = Total::default();
        let mut batch = Vec::with_capacity(BATCH);
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let length =
                reader.read_until(b'\n', &mut line).with_context(|| format!("line {number} can't be read"));
            let stop = match length {
                Ok(0) => None,
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => match self.job_of(line.trim_ascii()) {
                    Ok(job) => {
                        batch.push(job);
                        if batch.len() < BATCH {
                            continue;
                        }
                        total.add(&self.send(client, &mut batch, &total).await?);
                        continue;
                    }
                    Err(reason) => Some(Usage(format!("line {number}: {reason}")).into()),
                },
                Err(error) => Some(error),
            };
            // The end, or a line that is not right: what came before it goes in.
            total.add(&self.send(client, &mut batch, &total).await?);
            progress.finish_and_clear();
            return match stop {
                None => {
                    println!("{total}");
                    Ok(ExitCode::SUCCESS)
                }
                Some(error) => {
                    Err(anyhow!(error).context(format!("stopped: {total}, nothing from this line on")))
                }
            };
        }
        unreachable!("the lines of a file are fewer than 2^64")
    }

    async fn send(
        &self,
        client: &Client,
        batch: &mut Vec<Job>,
        total: &Total,
    ) -> anyhow::Result<Vec<Receipt>> {
        let jobs = std::mem::take(batch);
        let context = || format!("stopped: {total}; of the next {} it is not known", BATCH);
        client.enqueue_many(jobs).await.with_context(context)
    }

    fn job_of(&self, line: &[u8]) -> Result<Job, String> {
        let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let name = line.name.or_else(|| self.name.clone());
        let name = name.ok_or("it has no \"name\"; add one, or give NAME for all lines")?;
        shiftwork::job::JobName::new(&name).map_err(|error| error.to_string())?;
        let args = line.args.as_ref().map_or("null", |args| args.get());
        shiftwork::job::args_from_json(args.as_bytes()).map_err(|error| error.to_string())?;
        let mut job = Job::json(name, args);
        match (line.r#in, line.at) {
            (Some(_), Some(_)) => return Err("it has both \"in\" and \"at\"; write one of them".to_owned()),
            (Some(Delay::Seconds(seconds)), None) => job = job.after(Duration::from_secs(seconds)),
            (Some(Delay::Text(text)), None) => job = job.after(delay(&text)?),
            (None, Some(Time::Seconds(seconds))) => job = job.at(instant(&seconds.to_string())?),
            (None, Some(Time::Text(text))) => job = job.at(instant(&text)?),
            (None, None) => {}
        }
        Ok(if line.unique { job.unique() } else { job })
    }
}

/// What went in so far.
#[derive(Debug, Default)]
struct Total {
    enqueued: usize,
    duplicates: usize,
}

impl Total {
    fn add(&mut self, receipts: &[Receipt]) {
        let duplicates = receipts.iter().filter(|receipt| receipt.is_duplicate()).count();
        self.duplicates += duplicates;
        self.enqueued += receipts.len() - duplicates;
    }
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} enqueued", self.enqueued)?;
        if self.duplicates > 0 {
            write!(f, ", {} duplicates left out", self.duplicates)?;
        }
        Ok(())
    }
}

fn progress_bar(size: Option<u64>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match size {
        Some(size) => (ProgressBar::new(size), "{wide_bar} {bytes}/{total_bytes} {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {bytes_per_sec}"),
    };
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}
