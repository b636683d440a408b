//! Where a user starts: a pool is described, then run.

use std::any::TypeId;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::context::{Context, TypeMap};
use super::handler::{Blocking, Handler, Job, Raw, Typed};
use super::middleware::Middleware;
use super::options::JobOptions;
use super::outcome::HandlerOutput;
use super::periodic::{Periodic, PeriodicOptions};
use super::registry::Registry;
use super::running::{Drained, RunningPool};
use super::shared::{ServiceOptions, Shared};
use super::tally::Tally;
use crate::client::Client;
use crate::cron::Schedule;
use crate::error::Error;
use crate::job::{RawJob, WorkerId};
use crate::service::{ReapReport, ReaperOptions, SkipHook, SkippedTick};

/// The number of slots of a pool that does not say.
const DEFAULT_CONCURRENCY: usize = 10;
/// The most slots of a pool.
const MAX_CONCURRENCY: usize = 100_000;
/// Kubernetes kills a process 30 seconds after it has asked it to stop.
const DEFAULT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(25);

/// A pool of workers: job types with their handlers, and how many jobs to run at once.
///
/// ```no_run
/// # use shiftwork_core::{Client, Context, Job, WorkerPool};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Welcome { user: u64 }
/// # impl Job for Welcome { const NAME: &str = "welcome"; }
/// # async fn example(client: Client) -> shiftwork_core::Result {
/// async fn welcome(job: Welcome, ctx: Context) -> shiftwork_core::Result {
///     println!("welcome, user {} (attempt {})", job.user, ctx.attempt());
///     Ok(())
/// }
///
/// WorkerPool::new(client).concurrency(20).job(welcome).run().await
/// # }
/// ```
///
/// A mistake in the description (a name that can't be, a type registered twice) is reported when the pool is started.
#[must_use = "a pool does nothing until it is run"]
pub struct WorkerPool {
    client: Client,
    registry: Registry,
    middleware: Vec<Arc<dyn Middleware>>,
    state: TypeMap,
    concurrency: usize,
    shutdown_timeout: Duration,
    reaper: ReaperOptions,
    /// Specs, names and options of periodic jobs.
    periodics: Vec<(String, String, PeriodicOptions)>,
    zone: TimeZone,
    skip_hook: Option<SkipHook>,
    #[cfg(feature = "health")]
    health_address: Option<std::net::SocketAddr>,
    mistake: Option<Error>,
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool")
            .field("client", &self.client)
            .field("queues", &self.registry.queues())
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

impl WorkerPool {
    /// A pool without job types yet, on the store of `client`.
    pub fn new(client: impl Into<Client>) -> Self {
        Self {
            client: client.into(),
            registry: Registry::default(),
            middleware: Vec::new(),
            state: TypeMap::new(),
            concurrency: DEFAULT_CONCURRENCY,
            shutdown_timeout: DEFAULT_SHUTDOWN_TIMEOUT,
            reaper: ReaperOptions::default(),
            periodics: Vec::new(),
            zone: TimeZone::UTC,
            skip_hook: None,
            #[cfg(feature = "health")]
            health_address: None,
            mistake: None,
        }
    }

    /// Adds a job type with the default [`JobOptions`]. The handler is an async function or closure of the job's args
    /// and a [`Context`].
    pub fn job<J, F, Fut>(self, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, Context) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: HandlerOutput,
    {
        self.job_with(JobOptions::default(), handler)
    }

    /// Adds a job type.
    pub fn job_with<J, F, Fut>(self, options: JobOptions, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, Context) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: HandlerOutput,
    {
        self.add(J::NAME, options, Arc::new(Typed::new(handler)))
    }

    /// Adds a job type whose handler blocks its thread: it runs on threads of the pool's own, as many as it has slots.
    pub fn blocking<J, F, O>(self, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, Context) -> O + Send + Sync + 'static,
        O: HandlerOutput,
    {
        self.blocking_with(JobOptions::default(), handler)
    }

    /// As [`WorkerPool::blocking`], with options.
    pub fn blocking_with<J, F, O>(self, options: JobOptions, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, Context) -> O + Send + Sync + 'static,
        O: HandlerOutput,
    {
        self.add(J::NAME, options, Arc::new(Blocking::new(handler)))
    }

    /// Adds a job type by name whose handler takes the job as it is, args undecoded.
    pub fn raw<F, Fut>(self, name: &str, options: JobOptions, handler: F) -> Self
    where
        F: Fn(RawJob, Context) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: HandlerOutput,
    {
        self.add(name, options, Arc::new(Raw(handler)))
    }

    /// Adds code around every handler. The first one added is the outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Adds a value that handlers read with [`Context::state`]: a database pool, a configuration. One of each type.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// How many jobs run at once (default 10).
    pub fn concurrency(mut self, slots: usize) -> Self {
        self.concurrency = slots;
        self
    }

    /// How long [`WorkerPool::run`] waits for running jobs after it was asked to stop (default 25 s). Then their tokens
    /// fire, and what does not end soon is given back to its queue, to be run again.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Calls `hook` whenever this pool's reaper has found something: dead pools, unknown ones, wrong bookkeeping, or an error.
    pub fn on_reap(mut self, hook: impl Fn(&ReapReport) + Send + Sync + 'static) -> Self {
        self.reaper.hook = Some(Arc::new(hook));
        self
    }

    /// How many workers may die with a job in their hands (killed, out of memory) before it goes to the dead set instead
    /// of to the next worker (default 3, at least 1).
    pub fn max_crashes(mut self, crashes: usize) -> Self {
        self.reaper.max_crashes = crashes.max(1);
        self
    }

    /// Enqueues a job without args at each tick of a schedule, once over all pools that say so, in Go and Rust. A name may have
    /// several schedules. See [`cron`](crate::cron) for how they are written.
    ///
    /// A tick that no worker has started when the next one is due is dropped.
    pub fn periodic(self, spec: impl Into<String>, name: impl Into<String>) -> Self {
        self.periodic_with(spec, name, PeriodicOptions::default())
    }

    /// As [`WorkerPool::periodic`], with options.
    pub fn periodic_with(
        mut self,
        spec: impl Into<String>,
        name: impl Into<String>,
        options: PeriodicOptions,
    ) -> Self {
        self.periodics.push((spec.into(), name.into(), options));
        self
    }

    /// The time zone of schedules that name none (default: UTC). All pools of a fleet must have the same. Pools of Go go by the
    /// local time of their process; beside such ones set the zone that they run in.
    pub fn time_zone(mut self, zone: TimeZone) -> Self {
        self.zone = zone;
        self
    }

    /// Calls `hook` for each tick of this pool's periodic jobs that no worker of any pool has started in time
    /// ([`PeriodicOptions::pickup_timeout`]).
    pub fn on_skipped_tick(mut self, hook: impl Fn(&SkippedTick) + Send + Sync + 'static) -> Self {
        self.skip_hook = Some(Arc::new(hook));
        self
    }

    /// Answers the probes of an orchestrator on this address while [`WorkerPool::run`] or any other way of running lasts:
    /// `/healthz` (live) and `/readyz` (ready). See [`RunningPool::serve_health`].
    #[cfg(feature = "health")]
    pub fn health_address(mut self, address: std::net::SocketAddr) -> Self {
        self.health_address = Some(address);
        self
    }

    /// Runs until the process gets SIGTERM or SIGINT (ctrl-c), then stops as [`RunningPool::stop`] does. A second signal
    /// cuts the waiting short.
    ///
    /// # Errors
    ///
    /// If the pool is described wrongly or the store can't be reached at the start. Once it runs, it sits out any outage.
    /// The error is boxed, so that this can be the last line of a `main` that returns [`crate::Result`].
    pub async fn run(self) -> crate::Result {
        let mut signals = super::running::Signals::install()?;
        let pool = self.start().await?;
        signals.recv().await;
        tracing::info!(target: "shiftwork", "asked to stop; finishing what runs");
        pool.stop_unless(async move { signals.recv().await }).await;
        Ok(())
    }

    /// Runs until `until` completes, then stops as [`RunningPool::stop`] does. Installs no signal handlers.
    ///
    /// # Errors
    ///
    /// As [`WorkerPool::run`].
    pub async fn run_until(self, until: impl Future) -> Result<Tally, Error> {
        let pool = self.start().await?;
        until.await;
        Ok(pool.stop().await)
    }

    /// Runs until the queues of this pool's job types have nothing to give, then stops, and says what is left: a paused
    /// queue, one at its limit, jobs that wait for their time. Gives up after `timeout`, if producers keep it busy.
    ///
    /// # Errors
    ///
    /// As [`WorkerPool::run`], and if the store can't be asked for what is left.
    pub async fn drain(self, timeout: Duration) -> Result<Drained, Error> {
        self.start().await?.drain(timeout).await
    }

    /// Starts the pool and returns a handle to it. When this returns, the pool is registered in the store.
    ///
    /// # Errors
    ///
    /// As [`WorkerPool::run`].
    pub async fn start(self) -> Result<RunningPool, Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        if self.registry.is_empty() {
            return Err(Error::config("the worker pool has no job types; add one with `.job(handler)`"));
        }
        if !(1..=MAX_CONCURRENCY).contains(&self.concurrency) {
            return Err(Error::config(format!(
                "a worker pool of concurrency {} can't run; write 1 to {MAX_CONCURRENCY}",
                self.concurrency
            )));
        }
        let workers: Vec<WorkerId> = (0..self.concurrency).map(|_| WorkerId::random()).collect();
        let names = workers.iter().map(|worker| Arc::from(&**worker)).collect();
        let mut periodics: Vec<Periodic> = Vec::new();
        for (spec, name, options) in self.periodics {
            let periodic = Periodic::new(&name, Schedule::parse(&spec, &self.zone)?, options)?;
            if periodics.iter().any(|other| other.key == periodic.key) {
                return Err(Error::config(format!(
                    "the periodic job {name:?} has the schedule {spec:?} twice; leave one out"
                )));
            }
            periodics.push(periodic);
        }
        let services = ServiceOptions { reaper: self.reaper, periodics, skip_hook: self.skip_hook };
        let shared = Shared::new(self.client, self.registry, self.middleware, self.state, names, services);
        let pool = RunningPool::start(Arc::new(shared), &workers, self.shutdown_timeout).await?;
        #[cfg(feature = "health")]
        if let Some(address) = self.health_address
            && let Err(error) = pool.serve_health(address)
        {
            pool.stop().await;
            return Err(error);
        }
        Ok(pool)
    }

    fn add(mut self, name: &str, options: JobOptions, handler: Arc<dyn Handler>) -> Self {
        if let Err(mistake) = self.registry.add(name, options, handler) {
            self.mistake.get_or_insert(mistake);
        }
        self
    }
}
