//! Services: what moves records between states beside the jobs themselves. One shape for all of them.
//!
//! A [`Service`] has a name and does one round at a time; [`run_service`] is the loop around it: errors, backoff and stopping
//! are solved there once. The heartbeat is no such service: it has to live when all else is blocked, so it has a thread.

#[cfg(feature = "health")]
mod health_server;
mod heartbeat;
mod observer;
mod periodic;
mod reaper;
mod scheduler;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "health")]
pub(crate) use health_server::serve as serve_health;
pub(crate) use heartbeat::Heartbeat;
pub(crate) use observer::Observer;
pub(crate) use periodic::PeriodicEnqueuer;
pub use reaper::{ReapReport, ReapedPool};
pub(crate) use reaper::{Reaper, ReaperOptions};
pub(crate) use scheduler::Scheduler;
pub use watchdog::{PeriodicStats, SkippedTick};
pub(crate) use watchdog::{SkipHook, Ticks, Watchdog};

use crate::error::Error;
use crate::pool::{BoxFuture, Link, Outage};
use crate::store::{Store, WaitFor};

/// Work that is done again and again.
pub(crate) trait Service: Send + 'static {
    /// Who it is, for the log.
    const NAME: &'static str;

    /// One round, and how long to pause after it. A round is never interrupted, so it is bounded.
    fn round(&mut self) -> impl Future<Output = Result<Pause, Error>> + Send;
}

/// What a service does between two rounds.
pub(crate) struct Pause {
    /// At most this long.
    pub(crate) at_most: Duration,
    /// Less, if this happens.
    pub(crate) unless: Option<WaitFor>,
    /// Less, if something in this process fires this.
    pub(crate) wake: Option<Arc<Notify>>,
}

/// Runs a service until `stop` fires.
pub(crate) async fn run_service<S: Service>(
    mut service: S,
    store: Arc<dyn Store>,
    outage: Outage,
    stop: CancellationToken,
) {
    let mut link = Link::new(S::NAME, &outage);
    while !stop.is_cancelled() {
        match service.round().await {
            Ok(pause) => {
                link.answered();
                if let Err(error) = rest(pause, &store, &stop).await {
                    sleep_until(link.failed(&error), &stop).await;
                }
            }
            Err(error) => sleep_until(link.failed(&error), &stop).await,
        }
    }
}

async fn rest(pause: Pause, store: &Arc<dyn Store>, stop: &CancellationToken) -> Result<(), Error> {
    let woken: BoxFuture<Result<(), Error>> = match pause.unless {
        Some(wait) => {
            let store = store.clone();
            Box::pin(async move { store.wait(wait).await })
        }
        None => Box::pin(std::future::pending()),
    };
    let told: BoxFuture<()> = match pause.wake {
        Some(wake) => Box::pin(async move { wake.notified().await }),
        None => Box::pin(std::future::pending()),
    };
    // Dropping a wait loses nothing: it only looks.
    tokio::select! {
        () = stop.cancelled() => Ok(()),
        () = tokio::time::sleep(pause.at_most) => Ok(()),
        () = told => Ok(()),
        woken = woken => woken,
    }
}

async fn sleep_until(at: crate::clock::Instant, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep_until(at) => {}
    }
}
