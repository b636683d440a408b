//! A pool that runs, and how it stops.
//!
//! Stopping has two phases. *Quiet*: no more claims; what runs goes on until the shutdown timeout. Then the tokens of what still
//! runs fire, and after a moment of grace it is dropped and its claims go back to the head of their queues, so that another pool
//! has them at once. Senders stop before receivers: the scheduler, which feeds queues, then the dispatcher, then its
//! completer. The heartbeat is last: as long as a claim is in our name, others must see us alive.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::dispatcher::{Dispatcher, Phase};
use super::health::{Health, HealthProbe};
use super::shared::Shared;
use super::tally::Tally;
use crate::error::Error;
use crate::job::{PoolId, WorkerId};
use crate::service::{
    Heartbeat, Observer, PeriodicEnqueuer, PeriodicStats, Reaper, Scheduler, Service, Watchdog, run_service,
};
use crate::store::Backlog;

/// How long jobs may go on after their tokens have fired.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// How long giving back and committing may take after that. With the grace and the default timeout it stays within
/// the 30 seconds that orchestrators give.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Due jobs that a drain moves to their queues in one call.
const DUE_AT_ONCE: usize = 500;

/// A pool that runs. Dropping the handle lets it run on; [`RunningPool::stop`] stops it.
pub struct RunningPool {
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    dispatcher: JoinHandle<Tally>,
    services: Vec<JoinHandle<()>>,
    stop_services: CancellationToken,
    /// Fires when the pool has stopped.
    ended: CancellationToken,
    heartbeat: Heartbeat,
    probe: HealthProbe,
    shutdown_timeout: Duration,
}

impl fmt::Debug for RunningPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningPool")
            .field("id", &self.id())
            .field("phase", &*self.phase.borrow())
            .finish_non_exhaustive()
    }
}

/// What a drained pool did and what it left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drained {
    /// What it did.
    pub tally: Tally,
    /// Whether its queues had nothing more to give. If not, it was stopped before.
    pub complete: bool,
    /// What is left.
    pub left: Backlog,
}

impl RunningPool {
    pub(super) async fn start(
        shared: Arc<Shared>,
        workers: &[WorkerId],
        shutdown_timeout: Duration,
    ) -> Result<Self, Error> {
        if cfg!(panic = "abort") {
            tracing::warn!(
                target: "shiftwork",
                "this program is built with panic=abort: a handler that panics ends the process, and its job is \
                 taken for lost with it"
            );
        }
        // Registered before the first claim: a claim of a pool that nobody knows looks like one of a dead pool.
        let heartbeat = Heartbeat::start(shared.clone(), workers).await?;
        let (phase, phases) = watch::channel(Phase::Working);
        let dispatcher = Dispatcher::new(shared.clone(), workers, heartbeat.membership(), phases);
        let stop_services = CancellationToken::new();
        let mut services = vec![
            spawn(Scheduler::new(shared.clone()), &shared, &stop_services),
            spawn(Reaper::new(shared.clone(), heartbeat.membership()), &shared, &stop_services),
            spawn(Observer::new(shared.clone()), &shared, &stop_services),
            // Also without schedules of its own: other pools want to know what is picked up here.
            spawn(Watchdog::new(shared.clone()), &shared, &stop_services),
        ];
        if !shared.periodics.is_empty() {
            services.push(spawn(PeriodicEnqueuer::new(shared.clone()), &shared, &stop_services));
        }
        tracing::info!(
            target: "shiftwork", pool = &*heartbeat.pool(), concurrency = workers.len(), store = shared.store().describe(),
            "the worker pool has started"
        );
        let probe = HealthProbe::new(shared.clone(), dispatcher.inbox(), phase.subscribe());
        Ok(Self {
            shared,
            probe,
            phase,
            dispatcher: tokio::spawn(dispatcher.run()),
            services,
            stop_services,
            ended: CancellationToken::new(),
            heartbeat,
            shutdown_timeout,
        })
    }

    /// The id under which the pool is registered now. It changes if a reaper removes the pool and it comes back.
    pub fn id(&self) -> PoolId {
        self.heartbeat.pool()
    }

    /// What became of the ticks of this pool's periodic jobs since it started, whichever pool ran them.
    pub fn periodic_stats(&self) -> Vec<PeriodicStats> {
        self.shared.ticks.stats()
    }

    /// How the pool is.
    pub async fn health(&self) -> Health {
        self.probe.check().await
    }

    /// A handle that asks how the pool is, for wherever that is wanted.
    pub fn health_probe(&self) -> HealthProbe {
        self.probe.clone()
    }

    /// Answers the probes of an orchestrator, `/healthz` and `/readyz`, on a port of its own and from a thread of its own,
    /// until the pool has stopped. Returns the address, which tells the port if 0 was asked for.
    ///
    /// # Errors
    ///
    /// [`Error::is_config`] if the address can't be listened on.
    #[cfg(feature = "health")]
    pub fn serve_health(&self, address: std::net::SocketAddr) -> Result<std::net::SocketAddr, Error> {
        crate::service::serve_health(address, self.probe.clone(), self.ended.clone())
    }

    /// Claims no more jobs; what runs goes on. [`RunningPool::stop`] ends it.
    pub fn quiet(&self) {
        self.heartbeat.set_quiet();
        self.advance(Phase::Quiet);
    }

    /// Stops the pool: claims no more, waits for running jobs until the shutdown timeout, fires the tokens of those
    /// that are left, and gives back to their queues what does not end soon after.
    pub async fn stop(self) -> Tally {
        self.stop_unless(std::future::pending::<()>()).await
    }

    /// As [`RunningPool::stop`]; the waiting is cut short when `hurry` completes.
    pub async fn stop_unless(mut self, hurry: impl Future) -> Tally {
        self.stop_services.cancel();
        self.quiet();
        let patience = async {
            tokio::select! {
                () = tokio::time::sleep(self.shutdown_timeout) => {}
                _ = hurry => {}
            }
        };
        let ended = tokio::select! {
            ended = &mut self.dispatcher => Some(ended),
            () = patience => None,
        };
        let tally = match ended {
            Some(tally) => tally.unwrap_or_else(report_crash),
            None => self.stop_by_force().await,
        };
        self.end(tally).await
    }

    /// Runs on until the queues have nothing to give, at most for `timeout`; then stops.
    ///
    /// # Errors
    ///
    /// If the store can't be asked for what is left.
    pub async fn drain(self, timeout: Duration) -> Result<Drained, Error> {
        self.drain_unless(tokio::time::sleep(timeout)).await
    }

    /// As [`RunningPool::drain`]; when `stop` completes first, it stops as [`RunningPool::stop`] does.
    ///
    /// # Errors
    ///
    /// As [`RunningPool::drain`].
    pub async fn drain_unless(mut self, stop: impl Future) -> Result<Drained, Error> {
        let (store, queues) = (self.shared.store().clone(), self.shared.registry.queues());
        // What is due already is part of it, whether or not the scheduler has come to it. If the store is away, it will.
        while let Ok(reply) = store.promote(DUE_AT_ONCE).await {
            if reply.value.next_due.is_none_or(|due| due > reply.now.as_second()) {
                break;
            }
        }
        self.advance(Phase::Draining);
        let ended = tokio::select! {
            ended = &mut self.dispatcher => Some(ended),
            _ = stop => None,
        };
        let complete = ended.is_some();
        let tally = match ended {
            Some(tally) => {
                self.stop_services.cancel();
                let tally = tally.unwrap_or_else(report_crash);
                self.end(tally).await
            }
            None => self.stop().await,
        };
        let left = store.backlog(&queues).await?.value;
        Ok(Drained { tally, complete, left })
    }

    async fn stop_by_force(&mut self) -> Tally {
        tracing::warn!(target: "shiftwork", "jobs still run at the end of the shutdown timeout; cancelling them");
        for (phase, patience) in [(Phase::Cancelled, CANCEL_GRACE), (Phase::Released, RELEASE_TIMEOUT)] {
            self.advance(phase);
            if let Ok(tally) = tokio::time::timeout(patience, &mut self.dispatcher).await {
                return tally.unwrap_or_else(report_crash);
            }
        }
        tracing::error!(
            target: "shiftwork",
            "the store did not take the ends of all jobs in time; their claims stay, and a reaper will find them"
        );
        self.dispatcher.abort();
        Tally::default()
    }

    async fn end(self, tally: Tally) -> Tally {
        for service in self.services {
            // A service ends after the call it is in; that call has a time-out of its own.
            let _ = service.await;
        }
        let shown = self.shared.board.all_idle();
        if !shown.is_empty()
            && let Err(error) = self.shared.store().observe(&shown).await
        {
            tracing::debug!(target: "shiftwork", %error, "what the workers ran stays shown until it expires");
        }
        self.heartbeat.stop(&self.shared.registry.queues()).await;
        self.ended.cancel();
        tracing::info!(target: "shiftwork", ?tally, "the worker pool has stopped");
        tally
    }

    /// Phases only go forward.
    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let forward = *phase < to;
            if forward {
                *phase = to;
            }
            forward
        });
    }
}

fn spawn<S: Service>(service: S, shared: &Arc<Shared>, stop: &CancellationToken) -> JoinHandle<()> {
    let (store, outage) = (shared.store().clone(), shared.outage.clone());
    tokio::spawn(run_service(service, store, outage, stop.clone()))
}

fn report_crash(error: tokio::task::JoinError) -> Tally {
    tracing::error!(target: "shiftwork", %error, "the dispatcher ended by itself; its claims stay, and a reaper will find them");
    Tally::default()
}

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    pub(super) fn install() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let install = |kind| {
            signal(kind).map_err(|error| {
                Error::config(format!("no handler for SIGTERM and SIGINT can be set: {error}"))
            })
        };
        Ok(Self {
            terminate: install(SignalKind::terminate())?,
            interrupt: install(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
