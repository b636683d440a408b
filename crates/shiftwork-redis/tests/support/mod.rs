//! A namespace on a real server as the conformance suite sees it: read and changed by a client that knows no driver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use shiftwork_core::conformance::{Control, Place, Subject};
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::memory::{QueueSnapshot, Snapshot};
use shiftwork_core::store::{JobBytes, ObservedJob, Store};
use shiftwork_redis::RedisStore;
use test_servers::{RedisServer, Value, flavors, unique_namespace};

/// A fresh namespace.
pub(crate) struct RedisSubject {
    server: &'static RedisServer,
    namespace: String,
    one: RedisStore,
    other: RedisStore,
    offset: Mutex<Duration>,
}

/// One server for all tests of this process.
fn server_of(flavor: &str) -> &'static RedisServer {
    static SERVERS: Mutex<BTreeMap<String, &'static RedisServer>> = Mutex::new(BTreeMap::new());
    static WARNED: OnceLock<()> = OnceLock::new();
    let mut servers = SERVERS.lock().unwrap();
    servers.entry(flavor.to_owned()).or_insert_with(|| {
        let found = flavors().into_iter().find(|found| found.name == flavor).unwrap_or_else(|| {
            WARNED.get_or_init(|| {
                eprintln!("no {flavor} on this machine (`cargo xtask test` fetches it); using redis")
            });
            flavors().remove(0)
        });
        Box::leak(Box::new(RedisServer::builder().binary(found.path).start()))
    })
}

impl RedisSubject {
    /// On a server of this flavor.
    pub(crate) async fn on(flavor: &str) -> Self {
        let server = server_of(flavor);
        let namespace = unique_namespace("conformance");
        let connect = async || {
            // The unix socket: as fast as it gets, and one more way that is tested by all of this.
            RedisStore::builder(&server.unix_url()).namespace(&namespace).connect().await.unwrap()
        };
        let (one, other) = (connect().await, connect().await);
        Self { server, namespace, one, other, offset: Mutex::default() }
    }

    fn key(&self, rest: &str) -> String {
        format!("{}:{rest}", self.namespace)
    }

    fn dump(&self) -> BTreeMap<String, Value> {
        let prefix = self.key("");
        let dump = self.server.dump(&prefix);
        dump.into_iter().map(|(key, value)| (key[prefix.len()..].to_owned(), value)).collect()
    }
}

impl Subject for RedisSubject {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.one.clone())
    }

    fn another(&self) -> Arc<dyn Store> {
        Arc::new(self.other.clone())
    }

    fn snapshot(&self) -> Control<'_, Snapshot> {
        Box::pin(async { snapshot(self.dump()) })
    }

    fn set_paused<'a>(&'a self, queue: &'a JobName, paused: bool) -> Control<'a> {
        Box::pin(async move {
            let key = self.key(&format!("jobs:{queue}:paused"));
            // Its existence counts, not its value.
            let _ =
                if paused { self.server.run(&["SET", &key, ""]) } else { self.server.run(&["DEL", &key]) };
        })
    }

    fn set_max_concurrency<'a>(&'a self, queue: &'a JobName, limit: Option<u32>) -> Control<'a> {
        Box::pin(async move {
            let key = self.key(&format!("jobs:{queue}:max_concurrency"));
            let _ = match limit {
                Some(limit) => self.server.run(&["SET", &key, &limit.to_string()]),
                None => self.server.run(&["DEL", &key]),
            };
        })
    }

    fn plant<'a>(&'a self, place: Place<'a>, job: &'a [u8]) -> Control<'a> {
        Box::pin(async move {
            let (set, at) = match place {
                Place::Queue(queue) => {
                    let key = self.key(&format!("jobs:{queue}"));
                    self.server.run(&[b"LPUSH".as_slice(), key.as_bytes(), job]).int();
                    return;
                }
                Place::Scheduled(at) => ("scheduled", at),
                Place::Retry(at) => ("retry", at),
            };
            self.server
                .run(&[b"ZADD".as_slice(), self.key(set).as_bytes(), at.to_string().as_bytes(), job])
                .int();
        })
    }

    fn set_unique<'a>(&'a self, key: &'a str, owner: &'a str) -> Control<'a> {
        Box::pin(async move {
            self.server.run(&["SET", &self.key(&format!("unique:{key}")), owner, "EX", "86400"]).text();
        })
    }

    fn advance(&self, by: Duration) {
        let mut offset = self.offset.lock().unwrap();
        *offset += by;
        self.one.set_clock_offset(*offset);
        self.other.set_clock_offset(*offset);
    }
}

/// What the keys mean; and that lock, lock_info and the in-progress lists agree.
fn snapshot(dump: BTreeMap<String, Value>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut locks: BTreeMap<JobName, i64> = BTreeMap::new();
    let mut infos: BTreeMap<JobName, BTreeMap<String, i64>> = BTreeMap::new();
    for (key, value) in dump {
        match (key.as_str(), value) {
            ("known_jobs", Value::Set(names)) => {
                snapshot.known = names.iter().map(|member| name(&text(member))).collect();
            }
            ("worker_pools", Value::Set(ids)) => {
                snapshot.pools = ids.iter().map(|id| PoolId::from(text(id).as_str())).collect();
            }
            ("scheduled", Value::SortedSet(members)) => snapshot.scheduled = due_set(members),
            ("retry", Value::SortedSet(members)) => snapshot.retry = due_set(members),
            ("dead", Value::SortedSet(members)) => snapshot.dead = due_set(members),
            (key, Value::String(owner)) if key.starts_with("unique:") => {
                snapshot.unique.insert(key["unique:".len()..].to_owned(), text(&owner));
            }
            (key, Value::Hash(_)) if key.starts_with("worker_pools:") => {}
            ("beats", Value::SortedSet(_)) => {}
            (key, _) if key.starts_with("periodic") => {}
            (key, _) if key.starts_with("reaper:") || key == "reaper_lock" => {}
            (key, Value::List(records)) if key.starts_with("crashes:") => {
                let records = records.iter().map(|record| text(record)).collect();
                snapshot.crashes.insert(key["crashes:".len()..].to_owned(), records);
            }
            (key, Value::Hash(fields)) if key.starts_with("worker:") => {
                snapshot.workers.insert(key["worker:".len()..].to_owned(), observed(fields));
            }
            (key, value) => {
                let rest =
                    key.strip_prefix("jobs:").unwrap_or_else(|| panic!("unexpected key {key}: {value:?}"));
                if let Some((queue, pool)) =
                    rest.strip_suffix(":inprogress").and_then(|rest| rest.rsplit_once(':'))
                {
                    let claims = jobs(value);
                    queue_of(&mut snapshot, queue).claims.insert(PoolId::from(pool), claims);
                } else if let Some(queue) = rest.strip_suffix(":paused") {
                    queue_of(&mut snapshot, queue).paused = true;
                } else if let Some(queue) = rest.strip_suffix(":max_concurrency") {
                    queue_of(&mut snapshot, queue).max_concurrency =
                        Some(u32::try_from(number(&value)).unwrap());
                } else if let Some(queue) = rest.strip_suffix(":lock") {
                    locks.insert(name(queue), number(&value));
                } else if let Some(queue) = rest.strip_suffix(":lock_info") {
                    let Value::Hash(fields) = value else { panic!("{key} is {value:?}") };
                    let counts =
                        fields.iter().map(|(pool, count)| (text(pool), text(count).parse().unwrap()));
                    infos.insert(name(queue), counts.collect());
                } else {
                    queue_of(&mut snapshot, rest).jobs = jobs(value);
                }
            }
        }
    }
    let names: BTreeSet<JobName> =
        snapshot.queues.keys().chain(locks.keys()).chain(infos.keys()).cloned().collect();
    for queue in names {
        let lock = locks.get(&queue).copied().unwrap_or(0);
        let info = infos.get(&queue).cloned().unwrap_or_default();
        let claims = snapshot.queue(&queue).claims;
        assert_eq!(lock, info.values().sum::<i64>(), "lock and lock_info of {queue} differ");
        for (pool, count) in info {
            let held = claims.get(&PoolId::from(pool.as_str())).map_or(0, Vec::len);
            assert_eq!(
                count,
                i64::try_from(held).unwrap(),
                "lock_info of {queue} for {pool} is not its list's length"
            );
        }
        let held: usize = claims.values().map(Vec::len).sum();
        assert_eq!(lock, i64::try_from(held).unwrap(), "lock of {queue} is not what is in progress");
    }
    snapshot
}

fn observed(fields: BTreeMap<Vec<u8>, Vec<u8>>) -> ObservedJob {
    let field = |name: &str| fields.get(name.as_bytes()).map(|value| text(value));
    ObservedJob {
        name: field("job_name").unwrap(),
        id: field("job_id").unwrap(),
        started_at: field("started_at").unwrap().parse().unwrap(),
        args: fields["args".as_bytes()].as_slice().into(),
        checkin: field("checkin").map(|text| (text, field("checkin_at").unwrap().parse().unwrap())),
    }
}

fn queue_of<'a>(snapshot: &'a mut Snapshot, queue: &str) -> &'a mut QueueSnapshot {
    snapshot.queues.entry(name(queue)).or_default()
}

/// From the right end, which is next.
fn jobs(value: Value) -> Vec<JobBytes> {
    let Value::List(items) = value else { panic!("not a list: {value:?}") };
    items.into_iter().rev().map(JobBytes::from).collect()
}

fn due_set(members: Vec<(Vec<u8>, f64)>) -> Vec<(i64, JobBytes)> {
    let mut jobs: Vec<_> = members
        .into_iter()
        .map(|(member, score)| {
            assert_eq!(score.fract(), 0.0, "a Go client fails on fractions");
            (score as i64, JobBytes::from(member))
        })
        .collect();
    jobs.sort();
    jobs
}

fn number(value: &Value) -> i64 {
    let Value::String(text) = value else { panic!("not a number: {value:?}") };
    self::text(text).parse().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn name(name: &str) -> JobName {
    JobName::new(name).unwrap()
}
