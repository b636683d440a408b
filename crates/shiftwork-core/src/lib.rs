//! The engine of Shiftwork, free of any database.
//!
//! Most people use the crate `shiftwork`, which re-exports what they need. Here is how the engine is laid out, in the
//! order in which a job travels:
//!
//! - [`job`]: the job's envelope, byte for byte as the Go library writes it; names, ids, unique keys;
//! - [`store`]: the [`Store`](store::Store) trait, one verb per atomic transition;
//! - [`memory`]: a store inside the process: the reference model, and the store for tests;
//! - `client`, the enqueuer; `pool`, which runs jobs; `service`, what moves records beside them;
//! - [`cron`]: schedules, as the Go library reads them;
//! - [`clock`]: the only module that reads time;
//! - [`error`]: the one error type.

mod client;
pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod cron;
pub mod error;
pub mod job;
pub mod memory;
mod pool;
mod service;
pub mod store;

pub use client::{Client, DEFAULT_MAX_PAYLOAD, Enqueue, Receipt};
pub use error::{BoxError, Error};
pub use memory::MemoryStore;
pub use pool::{
    BoxFuture, CatchUp, Context, Drained, HandlerOutput, HandlerResult, Health, HealthProbe, Job, JobOptions,
    MAX_PRIORITY, Middleware, Next, Outcome, PeriodicOptions, RunningPool, Tally, WorkerPool,
};
pub use service::{PeriodicStats, ReapReport, ReapedPool, SkippedTick};

/// The result of most things here. The error defaults to a boxed one, so that `?` works on any error in a handler
/// and in `main`.
pub type Result<T = (), E = BoxError> = std::result::Result<T, E>;
