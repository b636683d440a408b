//! What all parts of a running pool share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

use super::blocking::BlockingThreads;
use super::board::Board;
use super::context::TypeMap;
use super::link::Outage;
use super::middleware::Middleware;
use super::periodic::Periodic;
use super::registry::Registry;
use crate::client::Client;
use crate::clock::StoreClock;
use crate::service::{ReaperOptions, SkipHook, Ticks};
use crate::store::Store;

/// What the services of a pool are to do.
pub(crate) struct ServiceOptions {
    pub(crate) reaper: ReaperOptions,
    pub(crate) periodics: Vec<Periodic>,
    pub(crate) skip_hook: Option<SkipHook>,
}

pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) registry: Registry,
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    pub(crate) state: TypeMap,
    pub(crate) blocking: BlockingThreads,
    pub(crate) outage: Outage,
    /// What the workers run.
    pub(crate) board: Arc<Board>,
    pub(crate) reaper: ReaperOptions,
    pub(crate) periodics: Arc<[Periodic]>,
    pub(crate) skip_hook: Option<SkipHook>,
    /// What became of the ticks of periodic jobs.
    pub(crate) ticks: Ticks,
    /// Nobody has looked for silent pools for a while: it is this pool's turn.
    pub(crate) look_asked: Arc<Notify>,
    /// How many claims the pool has by the store's count, as of the last heartbeat.
    pub(crate) held: watch::Sender<usize>,
    /// This pool's scheduler has moved jobs to their queues: the dispatcher need not wait to be woken by the store.
    pub(crate) promoted: Notify,
    at_risk: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        client: Client,
        registry: Registry,
        middleware: Vec<Arc<dyn Middleware>>,
        state: TypeMap,
        workers: Vec<Arc<str>>,
        services: ServiceOptions,
    ) -> Self {
        Self {
            client,
            registry,
            middleware: middleware.into(),
            state,
            blocking: BlockingThreads::new(workers.len()),
            board: Arc::new(Board::new(workers)),
            reaper: services.reaper,
            periodics: services.periodics.into(),
            skip_hook: services.skip_hook,
            ticks: Ticks::default(),
            look_asked: Arc::default(),
            held: watch::Sender::new(0),
            promoted: Notify::new(),
            outage: Outage::default(),
            at_risk: AtomicBool::new(false),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.client.store()
    }

    pub(crate) fn clock(&self) -> &StoreClock {
        self.client.clock()
    }

    /// Whether the heartbeat has not got through for so long that others may take the pool for dead.
    pub(crate) fn at_risk(&self) -> bool {
        self.at_risk.load(Ordering::Relaxed)
    }

    pub(crate) fn set_at_risk(&self, at_risk: bool) -> bool {
        self.at_risk.swap(at_risk, Ordering::Relaxed)
    }
}
