//! Every key of a namespace is built here.
//!
//! The layout is that of the Go library; golden vectors measured from it hold this file to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use shiftwork_core::job::{JobName, PoolId};

/// The keys of one namespace.
#[derive(Debug)]
pub(crate) struct Keys {
    prefix: String,
    /// Of the pool that asked last: a process has one pool per store nearly always, and asks for its keys all the time.
    claimed: Mutex<(PoolId, HashMap<JobName, Arc<QueueKeys>>)>,
}

/// What a claim from one queue by one pool touches.
#[derive(Debug)]
pub(crate) struct QueueKeys {
    pub(crate) jobs: String,
    pub(crate) in_progress: String,
    pub(crate) lock: String,
    pub(crate) lock_info: String,
    pub(crate) paused: String,
    pub(crate) max_concurrency: String,
}

impl Keys {
    /// Keys of the namespace; empty for none.
    pub(crate) fn new(namespace: &str) -> Self {
        let prefix = match namespace {
            "" => String::new(),
            namespace if namespace.ends_with(':') => namespace.to_owned(),
            namespace => format!("{namespace}:"),
        };
        Self { prefix, claimed: Mutex::new((PoolId::from(""), HashMap::new())) }
    }

    pub(crate) fn known_jobs(&self) -> String {
        self.key("known_jobs")
    }

    pub(crate) fn scheduled(&self) -> String {
        self.key("scheduled")
    }

    pub(crate) fn retry(&self) -> String {
        self.key("retry")
    }

    pub(crate) fn dead(&self) -> String {
        self.key("dead")
    }

    pub(crate) fn worker_pools(&self) -> String {
        self.key("worker_pools")
    }

    pub(crate) fn heartbeat(&self, pool: &str) -> String {
        self.key(&format!("worker_pools:{pool}"))
    }

    pub(crate) fn worker(&self, worker: &str) -> String {
        self.key(&format!("worker:{worker}"))
    }

    pub(crate) fn reaper_lock(&self) -> String {
        self.key("reaper_lock")
    }

    /// Ours: pools of Rust by the second of their last heartbeat. Whoever looks for silent ones reads only those.
    pub(crate) fn beats(&self) -> String {
        self.key("beats")
    }

    /// Ours: the microsecond of the last look for silent pools.
    pub(crate) fn looked(&self) -> String {
        self.key("reaper:looked")
    }

    /// Ours: the second before which nobody counts as silent.
    pub(crate) fn quiet(&self) -> String {
        self.key("reaper:quiet")
    }

    /// Ours: by pool of Go, its heartbeat and since when it has been that.
    pub(crate) fn seen(&self) -> String {
        self.key("reaper:seen")
    }

    /// Ours: by pool that is not registered and holds something, since when.
    pub(crate) fn unknown(&self) -> String {
        self.key("reaper:unknown")
    }

    /// Ours: the microsecond of the last audit.
    pub(crate) fn audited(&self) -> String {
        self.key("reaper:audited")
    }

    /// Ours: that a tick of a periodic job was put in. `id` is that of its job, which begins with `periodic:`.
    pub(crate) fn tick(&self, id: &str) -> String {
        self.key(id)
    }

    /// Ours: that a tick was picked up by a worker.
    pub(crate) fn picked_up(&self, id: &str) -> String {
        self.key(&format!("periodic_done:{}", id.strip_prefix("periodic:").unwrap_or(id)))
    }

    /// Ours: the latest tick that was put in of a schedule, which is a name and a spec.
    pub(crate) fn last_tick(&self, schedule: &str) -> String {
        self.key(&format!("periodic_last:{schedule}"))
    }

    /// Ours: which workers died with a job.
    pub(crate) fn crashes(&self, id: &str) -> String {
        self.key(&format!("crashes:{id}"))
    }

    /// Ours: lives for two seconds; whoever waits to be woken checks with it that changes are reported.
    pub(crate) fn wake_check(&self, number: u64) -> String {
        self.key(&format!("wake_check:{number:x}"))
    }

    pub(crate) fn jobs(&self, queue: &str) -> String {
        self.key(&format!("jobs:{queue}"))
    }

    pub(crate) fn in_progress(&self, queue: &str, pool: &str) -> String {
        self.key(&format!("jobs:{queue}:{pool}:inprogress"))
    }

    pub(crate) fn lock(&self, queue: &str) -> String {
        self.key(&format!("jobs:{queue}:lock"))
    }

    pub(crate) fn lock_info(&self, queue: &str) -> String {
        self.key(&format!("jobs:{queue}:lock_info"))
    }

    pub(crate) fn paused(&self, queue: &str) -> String {
        self.key(&format!("jobs:{queue}:paused"))
    }

    pub(crate) fn max_concurrency(&self, queue: &str) -> String {
        self.key(&format!("jobs:{queue}:max_concurrency"))
    }

    /// `key` as core's `unique_key` makes it: name, colon, args.
    pub(crate) fn unique(&self, key: &str) -> String {
        self.key(&format!("unique:{key}"))
    }

    /// What a claim from `queue` by `pool` touches, built once.
    pub(crate) fn of_claim(&self, queue: &JobName, pool: &PoolId) -> Arc<QueueKeys> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.0 != *pool {
            *claimed = (pool.clone(), HashMap::new());
        }
        if let Some(keys) = claimed.1.get(queue) {
            return keys.clone();
        }
        let keys = Arc::new(QueueKeys {
            jobs: self.jobs(queue),
            in_progress: self.in_progress(queue, pool),
            lock: self.lock(queue),
            lock_info: self.lock_info(queue),
            paused: self.paused(queue),
            max_concurrency: self.max_concurrency(queue),
        });
        claimed.1.insert(queue.clone(), keys.clone());
        keys
    }

    fn key(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn keys_are_those_of_the_go_library() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shiftwork-core/tests/golden/keys.json");
        let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let cases = golden.as_array().unwrap();
        assert_eq!(cases.len(), 8);
        for case in cases {
            let text = |field: &str| case[field].as_str().unwrap().to_owned();
            let (job, pool) = (text("job"), text("pool"));
            let keys = Keys::new(&text("namespace"));
            let wanted = |name: &str| case["keys"][name].as_str().unwrap();
            assert_eq!(keys.known_jobs(), wanted("KnownJobs"));
            assert_eq!(keys.scheduled(), wanted("Scheduled"));
            assert_eq!(keys.retry(), wanted("Retry"));
            assert_eq!(keys.dead(), wanted("Dead"));
            assert_eq!(keys.worker_pools(), wanted("WorkerPools"));
            assert_eq!(keys.heartbeat(&pool), wanted("Heartbeat"));
            assert_eq!(keys.jobs(""), wanted("JobsPrefix"));
            assert_eq!(keys.unique(&format!("{job}:{{\"a\":1}}\n")), wanted("UniqueJobArgs"));
            assert_eq!(keys.unique(&format!("{job}:")), wanted("UniqueJobNilArgs"));
            assert_eq!(keys.worker(&text("worker")), wanted("WorkerObservation"));
            assert_eq!(keys.reaper_lock(), wanted("ReaperLock"));
            assert_eq!(keys.jobs(&job), wanted("Jobs"));
            assert_eq!(keys.in_progress(&job, &pool), wanted("JobsInProgress"));
            assert_eq!(keys.lock(&job), wanted("JobsLock"));
            assert_eq!(keys.lock_info(&job), wanted("JobsLockInfo"));
            assert_eq!(keys.paused(&job), wanted("JobsPaused"));
            assert_eq!(keys.max_concurrency(&job), wanted("JobsConcurrency"));
        }
    }
}
