//! Which store a command works on.

use clap::Args;
use shiftwork::Client;

/// The store and the namespace, for every command.
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// Where the jobs are: redis://[user:password@]host:6379/0, rediss://… for TLS, unix:///path/to/redis.sock
    #[arg(
        long,
        global = true,
        env = "SHIFTWORK_STORE",
        hide_env_values = true,
        value_name = "URL",
        default_value = "redis://localhost:6379/0"
    )]
    pub(crate) store: String,

    /// The prefix of all keys, as in the Go library; on Redis Cluster with a hash tag, such as {work}
    #[arg(long, global = true, env = "SHIFTWORK_NAMESPACE", default_value = "work")]
    pub(crate) namespace: String,
}

impl StoreOptions {
    /// Connects.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        Ok(shiftwork::connect_to(&self.store, &self.namespace).await?)
    }
}
