//! Real servers for Shiftwork's own tests: started on a free port, stopped on drop, broken on purpose in between.
//!
//! - [`RedisServer`] starts a Redis (or Valkey) process with its data in a temporary folder; it can be killed,
//!   restarted on the same port and data, frozen, and served over TLS.
//! - [`Client`] speaks RESP2 without any driver, so that a test never checks a driver with itself, and
//!   [`RedisServer::dump`] reads the exact state that a test asserts on as [`Value`]s.
//! - [`FaultProxy`] stands between a client and a server and loses connections, replies and time.
//! - [`flavors()`] lists the server programs that the same test should pass on.
//!
//! Everything here panics instead of returning errors: the caller is a test, and the panic message says what to do.
#![allow(
    clippy::disallowed_methods,
    reason = "no pool runs here: these deadlines are those of the real machine"
)]

mod builder;
mod certificates;
mod client;
mod dump;
mod flavors;
mod launch;
mod process;
mod proxy;
mod reply;
mod server;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

pub use builder::RedisServerBuilder;
pub use client::Client;
pub use dump::Value;
pub use flavors::{Flavor, flavors};
pub use proxy::FaultProxy;
pub use reply::Reply;
pub use server::RedisServer;

/// A namespace that no other test uses, in this process or another: `test` becomes `test-4711-0-9c1fa2b7`.
pub fn unique_namespace(test: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    // Process ids repeat across containers that share one server; the hasher's random seed does not.
    let random = RandomState::new().hash_one(count) as u32;
    format!("{test}-{}-{count}-{random:08x}", std::process::id())
}
