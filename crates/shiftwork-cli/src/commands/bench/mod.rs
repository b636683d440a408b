//! `shiftwork bench`: how fast this machine and this store are, measured where nothing of yours is touched.

mod drain;
mod idle;
mod latency;
mod process;
mod reference;
mod report;
mod scratch;

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use shiftwork::{Client, Context, JobOptions, RunningPool, WorkerPool};

use self::report::Report;
use self::scratch::Scratch;
use super::{Usage, stop_signal};
use crate::store::StoreOptions;

/// Measure how fast jobs are done: how many a second, how soon, and what it costs to wait for them.
///
/// Without --latency or --idle, jobs that do nothing are drained, and on Redis a loop that works as the Go library does (a
/// connection a worker, a script to fetch each job and one to finish it) does the same in turn. The jobs are in a
/// namespace of their own, or for the embedded store in a file of its own beside the one named; either is removed at
/// the end.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct Bench {
    /// How many jobs to drain, or with --latency to start one by one [default: 300000, 1000]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// How many job types they are of
    #[arg(long, default_value_t = NonZeroUsize::MIN.saturating_add(9), value_name = "N")]
    types: NonZeroUsize,

    /// How many jobs a pool runs at once; several, separated by commas, are measured one after the other [default:
    /// 20,100,500, or 100 with --latency and --idle]
    #[arg(long, value_delimiter = ',', value_name = "N")]
    concurrency: Vec<NonZeroUsize>,

    /// How many bytes of args a job has
    #[arg(long, default_value_t = 20, value_name = "BYTES")]
    payload: usize,

    /// How long each job sleeps, in milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    work: u64,

    /// How many more jobs lie in the queues and stay there
    #[arg(long, default_value_t = 0, value_name = "N")]
    backlog: usize,

    /// How many pools share the work
    #[arg(long, default_value_t = NonZeroUsize::MIN, value_name = "N")]
    pools: NonZeroUsize,

    /// How many threads run them [default: half of the cores, since the store needs some, too]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// How often to measure; the median counts
    #[arg(long, default_value_t = NonZeroUsize::MIN.saturating_add(2), value_name = "N")]
    runs: NonZeroUsize,

    /// Leave out the loop that works as the Go library does
    #[arg(long)]
    no_reference: bool,

    /// Measure how soon an idle pool starts a job that another client pushes
    #[arg(long, conflicts_with = "idle")]
    latency: bool,

    /// Measure what a pool costs that has nothing to do
    #[arg(long)]
    idle: bool,

    /// How long to watch an idle pool
    #[arg(long, default_value_t = 30, value_name = "N", requires = "idle")]
    seconds: u64,

    /// Print a JSON object for each row instead of a table
    #[arg(long)]
    json: bool,
}

impl Bench {
    pub(crate) async fn run(self, store: &StoreOptions) -> anyhow::Result<ExitCode> {
        let scratch = Scratch::new(store).await?;
        let stop = stop_signal()?;
        let measured = tokio::select! {
            result = self.measure(&scratch) => result.map(|()| ExitCode::SUCCESS),
            // What was put there is removed all the same.
            () = stop => Ok(ExitCode::from(130)),
        };
        let removed = scratch.remove().await;
        let code = measured?;
        removed?;
        Ok(code)
    }

    /// Short jobs are done fastest by few threads: threads that wake one another cost more than such a job.
    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.threads.map_or_else(|| (cores() / 2).max(1), NonZeroUsize::get)
    }

    async fn measure(&self, scratch: &Scratch) -> anyhow::Result<()> {
        let mut report = Report::new(self.json);
        if self.idle {
            idle::measure(self, scratch, &mut report).await?;
        } else if self.latency {
            latency::measure(self, scratch, &mut report).await?;
        } else {
            drain::measure(self, scratch, &mut report).await?;
        }
        report.print();
        Ok(())
    }

    fn slots(&self, otherwise: &[usize]) -> Vec<usize> {
        match &self.concurrency[..] {
            [] => otherwise.to_vec(),
            given => given.iter().map(|slots| slots.get()).collect(),
        }
    }

    fn one_concurrency(&self, otherwise: usize) -> anyhow::Result<usize> {
        match &self.slots(&[otherwise])[..] {
            [slots] => Ok(*slots),
            _ => {
                Err(Usage("name one --concurrency: only a drain is measured with several".to_owned()).into())
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        (0..self.types.get()).map(|number| format!("type-{number}"))
    }

    /// The args of job `number`: a JSON object of about as many bytes as are wanted.
    fn args(&self, number: usize) -> String {
        let bare = format!("{{\"n\":{number}}}");
        match self.payload.checked_sub(bare.len() + ",\"pad\":\"\"".len()) {
            None => bare,
            Some(pad) => format!("{{\"n\":{number},\"pad\":\"{}\"}}", "x".repeat(pad)),
        }
    }

    /// A pool for all types, with everything on that a pool has by default.
    async fn start_pool<F, Fut>(
        &self,
        client: Client,
        slots: usize,
        handler: F,
    ) -> anyhow::Result<RunningPool>
    where
        F: Fn() -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let mut pool = WorkerPool::new(client).concurrency(slots);
        for name in self.names() {
            let handler = handler.clone();
            pool = pool.raw(&name, JobOptions::new(), move |_, _: Context| handler());
        }
        Ok(pool.start().await?)
    }
}

/// Of sorted values, the one below which so many percent of them are.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians_are_values_that_were_measured() {
        let values: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        let micros = |percent| percentile(&values, percent).as_micros();
        assert_eq!((micros(50), micros(99), micros(100)), (100, 198, 200));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
