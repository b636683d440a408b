#![doc = include_str!("../docs/overview.md")]

use shiftwork_core::store::Store;

pub use shiftwork_core::{
    BoxError, BoxFuture, CatchUp, Client, Context, DEFAULT_MAX_PAYLOAD, Drained, Enqueue, Error,
    HandlerOutput, HandlerResult, Health, HealthProbe, Job, JobOptions, MAX_PRIORITY, MemoryStore,
    Middleware, Next, Outcome, PeriodicOptions, PeriodicStats, ReapReport, ReapedPool, Receipt, Result,
    RunningPool, SkippedTick, Tally, WorkerPool,
};
pub use shiftwork_core::{clock, cron, job, memory, store};

#[cfg(feature = "redis")]
pub use shiftwork_redis::{RedisStore, RedisStoreBuilder};
#[cfg(feature = "sqlite")]
pub use shiftwork_sqlite::{Durability, SqliteStore, SqliteStoreBuilder};

/// How the guide's chapters are laid out: one module each, with text only.
#[doc = include_str!("../docs/guide.md")]
pub mod guide {
    #[doc = include_str!("../docs/periodic.md")]
    pub mod periodic {}

    #[doc = include_str!("../docs/recovery.md")]
    pub mod recovery {}

    #[doc = include_str!("../docs/redis.md")]
    pub mod redis {}

    #[cfg(feature = "sqlite")]
    #[doc = include_str!("../docs/sqlite.md")]
    pub mod sqlite {}
}

/// The namespace that is used when none is given, as in the Go library's tools.
pub const DEFAULT_NAMESPACE: &str = "work";

/// Connects to the store that `url` names, in the namespace `work`:
///
/// | URL | store | feature |
/// | --- | --- | --- |
/// | `redis://host:6379/0`, `unix:///path/to/redis.sock` | Redis or Valkey | `redis` (default) |
/// | `rediss://host:6379/0` | the same, with TLS | `tls` |
/// | `sqlite:PATH`, `sqlite::memory:` | an embedded file, or one in memory that is gone with the process | `sqlite` |
/// | `memory:` | inside this process, gone with it: for tests | |
///
/// # Errors
///
/// [`Error::is_config`] if the URL is wrong, or the feature for it is not built in; [`Error::is_unavailable`] if the store
/// can't be reached.
pub async fn connect(url: &str) -> Result<Client, Error> {
    connect_to(url, DEFAULT_NAMESPACE).await
}

/// As [`connect`], in a namespace of your choice.
///
/// # Errors
///
/// As [`connect`].
pub async fn connect_to(url: &str, namespace: &str) -> Result<Client, Error> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let store: std::sync::Arc<dyn Store> = match scheme {
        "memory" => std::sync::Arc::new(MemoryStore::new()),
        "redis" | "rediss" | "valkey" | "valkeys" | "unix" | "redis+unix" | "valkey+unix" => {
            open_redis(url, namespace).await?
        }
        "sqlite" => open_sqlite(url, namespace).await?,
        _ => {
            return Err(Error::config(
                "the store's URL has an unknown scheme; write redis://host:6379/0, rediss://host:6379/0 for TLS, \
                 unix:///path/to/redis.sock, sqlite:path/to/jobs.db, or memory:",
            ));
        }
    };
    Ok(Client::new(store))
}

#[cfg(feature = "redis")]
async fn open_redis(url: &str, namespace: &str) -> Result<std::sync::Arc<dyn Store>, Error> {
    Ok(std::sync::Arc::new(RedisStore::builder(url).namespace(namespace).connect().await?))
}

#[cfg(not(feature = "redis"))]
async fn open_redis(_: &str, _: &str) -> Result<std::sync::Arc<dyn Store>, Error> {
    Err(Error::config(
        "this program is built without the store on Redis; add the feature `redis` of shiftwork",
    ))
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(url: &str, namespace: &str) -> Result<std::sync::Arc<dyn Store>, Error> {
    let place = url.strip_prefix("sqlite:").unwrap_or_default();
    // Three slashes are one absolute path, as in other tools.
    let place = place.strip_prefix("//").unwrap_or(place);
    let builder = match place {
        ":memory:" => SqliteStore::memory_builder(),
        path => SqliteStore::builder(path),
    };
    Ok(std::sync::Arc::new(builder.namespace(namespace).open().await?))
}

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite(_: &str, _: &str) -> Result<std::sync::Arc<dyn Store>, Error> {
    Err(Error::config(
        "this program is built without the embedded store; add the feature `sqlite` of shiftwork",
    ))
}
