//! The engine of Shiftwork, free of any database.
//!
//! Most people use the crate `shiftwork`, which re-exports what they need. Here is how the engine is laid out, in the
//! order in which a job travels:
//!
//! - [`job`]: the job's envelope, byte for byte as the Go library writes it; names, ids, unique keys;
//! - [`store`]: the [`Store`](store::Store) trait, one verb per atomic transition;
//! - [`memory`]: a store inside the process: the reference model, and the store for tests;
//! - [`cron`]: periodic schedules;
//! - [`clock`]: the only module that reads time;
//! - [`error`]: the one error type.

pub mod clock;
pub mod error;
pub mod job;
pub mod memory;
pub mod store;

pub use error::{BoxError, Error};

/// The result of most things here. The error defaults to a boxed one, so that `?` works on any error in a handler
/// and in `main`.
pub type Result<T = (), E = BoxError> = std::result::Result<T, E>;
