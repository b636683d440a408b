//! A namespace in a file as the conformance suite sees it: read and changed by plain SQL.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, params};
use shiftwork_core::conformance::{Control, Place, Subject};
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::memory::{QueueSnapshot, Snapshot};
use shiftwork_core::store::{JobBytes, ObservedJob, Push, Store};
use shiftwork_sqlite::SqliteStore;

/// A fresh file, or a fresh store in memory.
pub(crate) struct SqliteSubject {
    one: SqliteStore,
    other: SqliteStore,
    ahead: Mutex<Duration>,
    _directory: Option<tempfile::TempDir>,
}

impl SqliteSubject {
    /// On disk, in two handles that share a writer, as two pools of one process do.
    pub(crate) async fn on_disk() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.db");
        let (one, other) = (SqliteStore::open(&path).await.unwrap(), SqliteStore::open(&path).await.unwrap());
        // Something in another namespace, which must not be seen.
        let elsewhere = SqliteStore::builder(&path).namespace("elsewhere").open().await.unwrap();
        let stranger = Push {
            queue: JobName::new("a").unwrap(),
            job: b"{\"name\":\"a\",\"id\":\"stranger\"}".as_slice().into(),
            run_at: None,
            unique: None,
        };
        elsewhere.push(&[stranger.clone(), Push { run_at: Some(1), ..stranger }]).await.unwrap();
        Self { one, other, ahead: Mutex::default(), _directory: Some(directory) }
    }

    pub(crate) async fn in_memory() -> Self {
        let one = SqliteStore::in_memory().await.unwrap();
        Self { other: one.clone(), one, ahead: Mutex::default(), _directory: None }
    }

    async fn queue_row(&self, queue: &JobName, change: &'static str, value: Option<i64>) {
        let queue = queue.to_string();
        self.one
            .with_connection(move |connection, namespace| {
                connection.execute(
                    "INSERT OR IGNORE INTO queue (namespace, name) VALUES (?1, ?2)",
                    params![namespace, queue],
                )?;
                let sql = format!("UPDATE queue SET {change} WHERE namespace = ?1 AND name = ?2");
                connection.execute(&sql, params![namespace, queue, value])
            })
            .await
            .unwrap();
    }
}

impl Subject for SqliteSubject {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.one.clone())
    }

    fn another(&self) -> Arc<dyn Store> {
        Arc::new(self.other.clone())
    }

    fn snapshot(&self) -> Control<'_, Snapshot> {
        Box::pin(async {
            let now = self.one.time().await.unwrap().now.as_second();
            self.one
                .with_connection(move |connection, namespace| snapshot(connection, namespace, now))
                .await
                .unwrap()
        })
    }

    fn set_paused<'a>(&'a self, queue: &'a JobName, paused: bool) -> Control<'a> {
        Box::pin(self.queue_row(queue, "paused = ?3", Some(i64::from(paused))))
    }

    fn set_max_concurrency<'a>(&'a self, queue: &'a JobName, limit: Option<u32>) -> Control<'a> {
        Box::pin(self.queue_row(queue, "max_concurrency = ?3", limit.map(i64::from)))
    }

    fn plant<'a>(&'a self, place: Place<'a>, job: &'a [u8]) -> Control<'a> {
        Box::pin(async move {
            let (state, at) = match place {
                Place::Queue(queue) => {
                    let known = known(self, queue).await;
                    let push = Push { queue: queue.clone(), job: job.into(), run_at: None, unique: None };
                    self.one.push(&[push]).await.unwrap();
                    // A foreign hand does not register the name.
                    return self.queue_row(queue, "known = ?3", Some(known)).await;
                }
                Place::Scheduled(at) => ("scheduled", at),
                Place::Retry(at) => ("retry", at),
            };
            let job = job.to_vec();
            self.one
                .with_connection(move |connection, namespace| {
                    let there: i64 = connection.query_row(
                        "SELECT count(*) FROM due WHERE namespace = ?1 AND state = ?2 AND job = ?3",
                        params![namespace, state, job],
                        |row| row.get(0),
                    )?;
                    if there > 0 {
                        return Ok(());
                    }
                    connection.execute(
                        "INSERT INTO due VALUES (?1, ?2, ?3, ?4)",
                        params![namespace, state, at, job],
                    )?;
                    let count = format!("UPDATE namespace SET {state} = {state} + 1 WHERE id = ?1");
                    connection.execute(&count, [namespace]).map(drop)
                })
                .await
                .unwrap();
        })
    }

    fn set_unique<'a>(&'a self, key: &'a str, owner: &'a str) -> Control<'a> {
        Box::pin(async move {
            let (key, owner) = (key.to_owned(), owner.to_owned());
            self.one
                .with_connection(move |connection, namespace| {
                    let sql = "INSERT OR REPLACE INTO unique_key VALUES (?1, ?2, ?3, 4000000000)";
                    connection.execute(sql, params![namespace, key, owner])
                })
                .await
                .unwrap();
        })
    }

    fn advance(&self, by: Duration) {
        let mut ahead = self.ahead.lock().unwrap();
        *ahead += by;
        self.one.set_clock_offset(*ahead);
        self.other.set_clock_offset(*ahead);
    }
}

async fn known(subject: &SqliteSubject, queue: &JobName) -> i64 {
    let snapshot = subject.snapshot().await;
    i64::from(snapshot.known.contains(queue))
}

/// What the tables mean; and that the counters in them are right.
fn snapshot(connection: &Connection, namespace: i64, now: i64) -> rusqlite::Result<Snapshot> {
    let mut snapshot = Snapshot::default();
    let mut queues = connection.prepare(
        "SELECT id, name, known, paused, max_concurrency, waiting, running FROM queue WHERE namespace = ?1",
    )?;
    let mut rows = queues.query([namespace])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let name = JobName::new(row.get::<_, String>(1)?).unwrap();
        if row.get(2)? {
            snapshot.known.insert(name.clone());
        }
        let mut claims: BTreeMap<PoolId, Vec<JobBytes>> = BTreeMap::new();
        for (pool, job) in
            pairs::<String>(connection, "SELECT pool, job FROM claim WHERE queue = ?1 ORDER BY sequence", id)?
        {
            claims.entry(PoolId::from(pool.as_str())).or_default().push(job);
        }
        let jobs =
            pairs::<i64>(connection, "SELECT position, job FROM job WHERE queue = ?1 AND position >= (SELECT head FROM queue WHERE id = ?1)
                ORDER BY position", id)?;
        let queue = QueueSnapshot {
            jobs: jobs.into_iter().map(|(_, job)| job).collect(),
            paused: row.get(3)?,
            max_concurrency: row.get(4)?,
            claims,
        };
        assert_eq!(
            row.get::<_, i64>(5)?,
            queue.jobs.len() as i64,
            "the counter of waiting jobs of {name} is wrong"
        );
        assert_eq!(
            row.get::<_, i64>(6)?,
            queue.running() as i64,
            "the counter of running jobs of {name} is wrong"
        );
        if queue != QueueSnapshot::default() {
            snapshot.queues.insert(name, queue);
        }
    }
    for (state, set) in
        [("scheduled", &mut snapshot.scheduled), ("retry", &mut snapshot.retry), ("dead", &mut snapshot.dead)]
    {
        let sql =
            format!("SELECT at, job FROM due WHERE namespace = ?1 AND state = '{state}' ORDER BY at, job");
        *set = pairs(connection, &sql, namespace)?;
        let sql = format!("SELECT {state} FROM namespace WHERE id = ?1");
        let counted: i64 = connection.query_row(&sql, [namespace], |row| row.get(0))?;
        assert_eq!(counted, set.len() as i64, "the size of the {state} set is wrong");
    }
    let mut keys =
        connection.prepare("SELECT key, owner FROM unique_key WHERE namespace = ?1 AND expires_at > ?2")?;
    let keys = keys.query_map([namespace, now], |row| Ok((row.get(0)?, row.get(1)?)))?;
    snapshot.unique = keys.collect::<rusqlite::Result<_>>()?;
    let mut crashes =
        connection.prepare("SELECT job_id, record FROM crash WHERE namespace = ?1 ORDER BY id")?;
    let mut rows = crashes.query([namespace])?;
    while let Some(row) = rows.next()? {
        snapshot.crashes.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    let mut workers = connection.prepare("SELECT * FROM worker WHERE namespace = ?1 AND expires_at > ?2")?;
    let mut rows = workers.query([namespace, now])?;
    while let Some(row) = rows.next()? {
        let (text, at): (Option<String>, Option<i64>) = (row.get("checkin")?, row.get("checkin_at")?);
        let job = ObservedJob {
            name: row.get("job_name")?,
            id: row.get("job_id")?,
            started_at: row.get("started_at")?,
            args: row.get_ref("args")?.as_blob()?.into(),
            checkin: text.zip(at),
        };
        snapshot.workers.insert(row.get("id")?, job);
    }
    let mut pools = connection.prepare("SELECT id FROM pool WHERE namespace = ?1")?;
    let pools = pools.query_map([namespace], |row| Ok(PoolId::from(row.get::<_, String>(0)?.as_str())))?;
    snapshot.pools = pools.collect::<rusqlite::Result<_>>()?;
    Ok(snapshot)
}

fn pairs<T: rusqlite::types::FromSql>(
    connection: &Connection,
    sql: &str,
    key: i64,
) -> rusqlite::Result<Vec<(T, JobBytes)>> {
    let mut statement = connection.prepare(sql)?;
    let rows =
        statement.query_map([key], |row| Ok((row.get(0)?, JobBytes::from(row.get_ref(1)?.as_blob()?))))?;
    rows.collect()
}
