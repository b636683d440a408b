//! Which store a command works on.

use anyhow::Context;
use clap::Args;
use directories::ProjectDirs;
use shiftwork::Client;

/// The store and the namespace, for every command.
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// Where the jobs are: sqlite:PATH for an embedded file, redis://[user:password@]host:6379/0, rediss://… for TLS,
    /// unix:///path/to/redis.sock, or sqlite::memory: for jobs that end with the process [default: the embedded file
    /// shiftwork/jobs.db in your data directory, the same for every command]
    #[arg(long, global = true, env = "SHIFTWORK_STORE", hide_env_values = true, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// The prefix of all keys, as in the Go library; on Redis Cluster with a hash tag, such as {work}
    #[arg(long, global = true, env = "SHIFTWORK_NAMESPACE", default_value = "work")]
    pub(crate) namespace: String,
}

impl StoreOptions {
    /// Connects; to the embedded file if no store is named.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        Ok(shiftwork::connect_to(&self.url()?, &self.namespace).await?)
    }

    /// The store's URL; that of the embedded file if none is named.
    pub(crate) fn url(&self) -> anyhow::Result<String> {
        self.store.clone().map_or_else(embedded_file, Ok)
    }
}

/// The URL of the file that all commands share. Makes its directory.
fn embedded_file() -> anyhow::Result<String> {
    let place = ProjectDirs::from("", "", "shiftwork").context(
        "no home directory is known, so there is no place for the embedded store; name one with --store",
    )?;
    let directory = place.data_dir();
    std::fs::create_dir_all(directory).with_context(|| {
        format!("the data directory {} can't be made; name a store with --store", directory.display())
    })?;
    Ok(format!("sqlite:{}", directory.join("jobs.db").display()))
}
