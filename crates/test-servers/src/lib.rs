//! Real servers for tests: started on free ports by the tests themselves, gone when the tests are.
//!
//! [`RedisServer`] is a server process, [`Client`] a foreign client without any driver, [`FaultProxy`] a bad network.

mod client;
mod proxy;
mod redis;
mod tls;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

pub use client::{Client, Content, Reply};
pub use proxy::FaultProxy;
pub use redis::{Builder, RedisServer};

/// A server program to test against.
#[derive(Debug, Clone)]
pub struct Flavor {
    /// For test output: `redis`, `redis-6.2`, `valkey`.
    pub name: String,
    /// The program.
    pub path: PathBuf,
}

/// All server programs of this machine: the `redis-server` of the system, and those that `cargo xtask test` has put below
/// `target/servers`.
pub fn flavors() -> Vec<Flavor> {
    let mut found = vec![Flavor { name: "redis".to_owned(), path: redis::system_server() }];
    let extra = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    for (name, program) in [("redis-6.2", "redis-server"), ("valkey", "valkey-server")] {
        let path = extra.join(name).join(program);
        if path.exists() {
            found.push(Flavor { name: name.to_owned(), path });
        }
    }
    found
}

/// A namespace that no other test uses.
pub fn unique_namespace(test: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{test}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
