//! Worker pools: job types, handlers and middleware, and what runs them.
//!
//! The files in the order in which a job travels: [`dispatcher`] claims it, [`intake`] looks at it, [`registry`] knows its
//! handler, [`executor`] runs it, [`policy`] decides what becomes of it, and [`completer`] sees to it that the store takes that;
//! [`reconcile`] finds claims whose reply was lost.
//! [`builder`] is where a user starts, [`running`] how a pool stops.

mod blocking;
mod board;
mod builder;
mod completer;
mod context;
mod dispatcher;
mod executor;
mod handler;
mod health;
mod intake;
mod link;
mod middleware;
mod options;
mod outcome;
mod periodic;
mod policy;
mod reconcile;
mod registry;
mod running;
mod shared;
mod slots;
mod tally;

pub use builder::WorkerPool;
pub use context::Context;
pub use handler::{BoxFuture, Job};
pub use health::{Health, HealthProbe};
pub use middleware::{Middleware, Next};
pub use options::{JobOptions, MAX_PRIORITY};
pub use outcome::{HandlerOutput, HandlerResult, Outcome};
pub use periodic::{CatchUp, PeriodicOptions};
pub use running::{Drained, RunningPool};
pub use tally::Tally;

pub(crate) use link::{Link, Outage};
pub(crate) use periodic::Periodic;
pub(crate) use shared::Shared;
