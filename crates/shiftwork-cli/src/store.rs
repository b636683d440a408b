//! Which store a command works on.

use clap::Args;
use shiftwork::Client;

/// The store and the namespace, for every command.
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// Where the jobs are: redis://[user:password@]host:6379/0, rediss://… for TLS, unix:///path/to/redis.sock, or
    /// memory: for jobs that end with the process [default: redis://localhost:6379/0; demo: memory:]
    #[arg(long, global = true, env = "SHIFTWORK_STORE", hide_env_values = true, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// The prefix of all keys, as in the Go library; on Redis Cluster with a hash tag, such as {work}
    #[arg(long, global = true, env = "SHIFTWORK_NAMESPACE", default_value = "work")]
    pub(crate) namespace: String,
}

impl StoreOptions {
    /// Connects; to the server on this machine if no store is named.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        self.connect_or("redis://localhost:6379/0").await
    }

    /// Connects; to `default` if no store is named.
    pub(crate) async fn connect_or(&self, default: &str) -> anyhow::Result<Client> {
        let url = self.store.as_deref().unwrap_or(default);
        Ok(shiftwork::connect_to(url, &self.namespace).await?)
    }
}
