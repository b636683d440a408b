//! Files: what is refused, what survives, and what several processes do with one.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

mod processes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{
    ClaimRequest, Destination, Exchange, Finish, Push, Pushed, QueueShare, Store, WaitFor,
};
use shiftwork_sqlite::{Durability, SqliteStore};

fn name(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

fn push(queue: &str, id: usize) -> Push {
    let job = format!(r#"{{"name":"{queue}","id":"{id}","t":1,"args":null}}"#);
    Push { queue: name(queue), job: job.into_bytes().into(), run_at: None, unique: None }
}

fn all_of(queue: &str, limit: usize) -> ClaimRequest {
    ClaimRequest { limit, queues: vec![QueueShare { queue: name(queue), weight: 1 }], draw: 0.5 }
}

async fn refusal(path: &Path) -> String {
    let error = SqliteStore::open(path).await.unwrap_err();
    assert!(error.is_config(), "{error}");
    error.to_string()
}

#[tokio::test]
async fn what_is_no_file_of_ours_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "not a database, but long enough to have a header, if it were one: ".repeat(20))
        .unwrap();
    assert!(refusal(&text).await.contains("no SQLite file"));
    assert!(std::fs::read_to_string(&text).unwrap().starts_with("not a database"));

    let foreign = directory.path().join("foreign.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)")
        .unwrap();
    assert!(refusal(&foreign).await.contains("some other program"));
    let rows: i64 = Connection::open(&foreign)
        .unwrap()
        .query_row("SELECT count(*) FROM mine", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
    assert!(refusal(&directory.path().join("no/such/directory/jobs.db")).await.contains("make it first"));
    assert!(refusal(directory.path()).await.contains("is a directory"));
}

#[tokio::test]
async fn a_file_of_a_newer_program_is_refused_with_both_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    drop(SqliteStore::open(&path).await.unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let message = loop {
        // The threads of the store that was just dropped may still have the file.
        match SqliteStore::open(&path).await {
            Ok(store) => drop(store),
            Err(error) => break error.to_string(),
        }
        tokio::task::yield_now().await;
    };
    assert!(message.contains("format 99") && message.contains("update this program"), "{message}");
}

#[tokio::test]
async fn one_process_cannot_open_a_file_with_two_durabilities() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let _store = SqliteStore::open(&path).await.unwrap();
    let error = SqliteStore::builder(&path).durability(Durability::None).open().await.unwrap_err();
    assert!(error.is_config() && error.to_string().contains("durability"), "{error}");
}

#[tokio::test]
async fn jobs_are_there_when_the_file_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.push(&[push("a", 1), push("a", 2)]).await.unwrap();
    let claims = store.claim(&PoolId::from("p"), all_of("a", 1)).await.unwrap().value;
    drop(store);
    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(store.own_claims(&PoolId::from("p"), &[name("a")]).await.unwrap().value, claims);
    assert_eq!(store.claim(&PoolId::from("q"), all_of("a", 9)).await.unwrap().value.len(), 1);
}

/// A full disk fails calls as an outage does, loses nothing, and is over when there is room again.
#[tokio::test]
async fn a_full_disk_is_an_outage_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("jobs.db")).await.unwrap();
    store.push(&[push("a", 0)]).await.unwrap();
    let limit = |pages: i64| {
        store.with_connection(move |connection, _| {
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get::<_, i64>(0))
        })
    };
    let pages = limit(1).await.unwrap();
    let many: Vec<_> = (1..5000).map(|id| push("a", id)).collect();
    let error = store.push(&many).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("disk"), "{pages} pages: {error}");
    assert_eq!(store.backlog(&[name("a")]).await.unwrap().value.queued, [(name("a"), 1)]);
    limit(1_000_000).await.unwrap();
    assert_eq!(store.push(&many).await.unwrap().value, vec![Pushed::Enqueued; many.len()]);
    assert_eq!(store.backlog(&[name("a")]).await.unwrap().value.queued, [(name("a"), many.len() + 1)]);
}

/// One request that fails takes no other with it, though they shared a transaction.
#[tokio::test]
async fn requests_of_a_group_fail_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(directory.path().join("jobs.db")).await.unwrap());
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let blocker = tokio::spawn({
        let store = store.clone();
        // The writer waits in this request until all the others have arrived.
        async move { store.with_connection(move |_, _| Ok(held.lock().unwrap().recv().is_err())).await }
    });
    let calls: Vec<_> = (0..10)
        .map(|id| {
            let store = store.clone();
            tokio::spawn(async move {
                match id {
                    5 => store
                        .with_connection(|connection, _| connection.execute("NONSENSE", []))
                        .await
                        .is_ok(),
                    _ => store.push(&[push("a", id)]).await.is_ok(),
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    drop(hold);
    assert!(blocker.await.unwrap().unwrap());
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    assert_eq!(results, (0..10).map(|id| id != 5).collect::<Vec<_>>());
    assert_eq!(store.backlog(&[name("a")]).await.unwrap().value.queued, [(name("a"), 9)]);
}

/// Old rows below the head are swept away; the file does not grow with the jobs that went through.
#[tokio::test]
async fn the_file_does_not_grow_with_the_jobs_that_went_through() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("jobs.db")).await.unwrap();
    let pool = PoolId::from("p");
    let mut finishes = Vec::new();
    for round in 0..200 {
        let jobs: Vec<_> = (0..50).map(|n| push("a", round * 50 + n)).collect();
        store.push(&jobs).await.unwrap();
        let request = Exchange { pool: pool.clone(), finishes, claim: all_of("a", 50) };
        let claims = store.exchange(&request).await.unwrap().value.claims;
        assert_eq!(claims.len(), 50);
        finishes = claims.into_iter().map(|claim| Finish { claim, to: Destination::Gone }).collect();
    }
    let rows: i64 = store
        .with_connection(|connection, _| {
            connection.query_row("SELECT count(*) FROM job", [], |row| row.get(0))
        })
        .await
        .unwrap();
    assert!(rows <= 150, "{rows} rows are left of 10,000 jobs");
}

#[tokio::test]
async fn a_push_by_another_process_wakes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.wait(WaitFor::Work { queues: [name("a")].into() }).await.unwrap() }
    });
    let pushed = processes::run("push", &path);
    assert_eq!(pushed, "pushed");
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it is woken").unwrap();
}

#[tokio::test]
async fn three_processes_share_a_file_fairly_and_lose_nothing() {
    const JOBS: usize = 30_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.push(&(0..JOBS).map(|id| push("a", id)).collect::<Vec<_>>()).await.unwrap();
    let children: Vec<_> = (0..3).map(|_| processes::start("drain", &path)).collect();
    let done: Vec<usize> =
        children.into_iter().map(|child| processes::output(child).parse().unwrap()).collect();
    assert_eq!(done.iter().sum::<usize>(), JOBS, "{done:?}");
    // The first may have a head start of some milliseconds while the others are started.
    assert!(done.iter().all(|done| *done >= JOBS / 8), "{done:?}");
    assert_eq!(store.backlog(&[name("a")]).await.unwrap().value.queued, []);
}

/// SIGKILL in the middle of transactions: the file is whole, every job is waiting or claimed, the counters are right.
#[tokio::test]
async fn a_process_that_is_killed_leaves_a_whole_file() {
    const JOBS: usize = 20_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.push(&(0..JOBS).map(|id| push("a", id)).collect::<Vec<_>>()).await.unwrap();
    let waiting =
        || async { store.backlog(&[name("a")]).await.unwrap().value.queued.first().map_or(0, |(_, n)| *n) };
    for _ in 0..5 {
        let before = waiting().await;
        let mut child = processes::start("claim", &path);
        while waiting().await == before {
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (counted, rows, claims, check) = store
        .with_connection(|connection, _| {
            Ok((
                connection.query_row("SELECT waiting, running FROM queue WHERE name = 'a'", [], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                })?,
                connection.query_row(
                    "SELECT count(*) FROM job WHERE position >= (SELECT head FROM queue WHERE name = 'a')",
                    [],
                    |row| row.get::<_, i64>(0),
                )?,
                connection.query_row("SELECT count(*) FROM claim", [], |row| row.get::<_, i64>(0))?,
                connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))?,
            ))
        })
        .await
        .unwrap();
    assert_eq!(check, "ok");
    assert_eq!(counted, (rows, claims));
    assert_eq!(rows + claims, JOBS as i64);
}
