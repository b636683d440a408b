//! A place to measure in: on the store that the user names, but where nobody's jobs are.

use std::path::{Path, PathBuf};

use anyhow::Context;
use shiftwork::Client;

use crate::store::StoreOptions;

/// Where the jobs of a benchmark are, until it ends.
pub(super) struct Scratch {
    url: String,
    namespace: String,
    pub(super) place: Place,
}

pub(super) enum Place {
    /// Keys of a namespace of its own.
    Redis(Box<redis::Client>),
    /// A file of its own, beside the one that was named.
    File(PathBuf),
    /// Gone with the process.
    Memory,
}

impl Scratch {
    pub(super) async fn new(store: &StoreOptions) -> anyhow::Result<Self> {
        let url = store.url()?;
        let random = fastrand::u32(..);
        // With a hash tag, so that it works on a cluster, too.
        let namespace = format!("{{shiftwork-bench-{random:08x}}}");
        let (url, place) = match url.strip_prefix("sqlite:") {
            Some(":memory:") => (url, Place::Memory),
            None if url.starts_with("memory:") => (url, Place::Memory),
            Some(path) => {
                let path = path.strip_prefix("//").unwrap_or(path);
                let file = PathBuf::from(format!("{path}.bench-{random:08x}"));
                (format!("sqlite:{}", file.display()), Place::File(file))
            }
            // Its errors say what is wrong with the URL, and never show its password.
            None => {
                shiftwork::connect_to(&url, &namespace).await?;
                let client = redis::Client::open(url.as_str()).context("the Redis URL can't be used")?;
                (url, Place::Redis(Box::new(client)))
            }
        };
        Ok(Self { url, namespace, place })
    }

    /// A client with a connection of its own.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        Ok(shiftwork::connect_to(&self.url, &self.namespace).await?)
    }

    /// A key of the namespace, on Redis.
    pub(super) fn key(&self, rest: &str) -> String {
        format!("{}:{rest}", self.namespace)
    }

    /// Takes away what was put there.
    pub(super) async fn remove(&self) -> anyhow::Result<()> {
        match &self.place {
            Place::Redis(client) => self.remove_keys(client).await.with_context(|| {
                format!("the benchmark's keys are still there; remove those that match {:?}", self.key("*"))
            }),
            Place::File(file) => {
                remove_file(file);
                Ok(())
            }
            Place::Memory => Ok(()),
        }
    }

    /// Empties the place between two measurements.
    pub(super) async fn clear(&self) -> anyhow::Result<()> {
        match &self.place {
            Place::Redis(client) => Ok(self.remove_keys(client).await?),
            // A drained file is as good as a new one.
            Place::File(_) | Place::Memory => Ok(()),
        }
    }

    async fn remove_keys(&self, client: &redis::Client) -> redis::RedisResult<()> {
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(self.key("*")).arg("COUNT").arg(1000);
            let (next, keys): (u64, Vec<String>) = scan.query_async(&mut connection).await?;
            if !keys.is_empty() {
                let () = redis::cmd("UNLINK").arg(keys).query_async(&mut connection).await?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }
}

/// The file and those that SQLite and the store keep beside it.
fn remove_file(file: &Path) {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|found| found.starts_with(name)) {
            // A file that is gone already is no loss.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
