//! Waiting for work: the server reports changes, whoever makes them, and where it does not, the store polls.

use std::time::Duration;

use shiftwork_core::store::{Store, WaitFor};
use test_servers::{Client, FaultProxy, RedisServer, flavors};
use tokio::task::JoinHandle;

use super::*;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads what the server counts.
struct Counts(Client);

impl Counts {
    fn of(server: &RedisServer) -> Self {
        Self(server.connect())
    }

    /// How often a command was called.
    fn calls(&mut self, command: &str) -> usize {
        let stats = self.0.run(&["INFO", "commandstats"]).text().to_owned();
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    }

    fn tracking_clients(&mut self) -> usize {
        let clients = self.0.run(&["INFO", "clients"]).text().to_owned();
        let count = clients.lines().find_map(|line| line.strip_prefix("tracking_clients:"));
        count.unwrap().trim().parse().unwrap()
    }

    /// Until the server has done so much.
    async fn until(&mut self, what: &str, condition: impl Fn(&mut Self) -> bool) {
        let reached = async {
            while !condition(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("never: {what}"));
    }
}

fn work(queues: &[&str]) -> WaitFor {
    WaitFor::Work { queues: queues.iter().map(|queue| name(queue)).collect() }
}

fn wait(store: &RedisStore, queues: &[&str]) -> JoinHandle<()> {
    let (store, wait) = (store.clone(), work(queues));
    tokio::spawn(async move { store.wait(wait).await.unwrap() })
}

async fn woken(waiting: JoinHandle<()>) {
    tokio::time::timeout(PATIENCE, waiting).await.expect("a wake-up").unwrap();
}

/// As any client in any language does.
fn foreign_push(client: &mut Client, queue: &str, id: &str) {
    let key = format!("work:jobs:{queue}");
    client.run(&[b"LPUSH".as_slice(), key.as_bytes(), &job(queue, id)]);
}

#[tokio::test]
async fn a_foreign_push_wakes_and_nobody_polls() {
    const ROUNDS: usize = 50;
    for flavor in flavors() {
        let server = RedisServer::builder().binary(&flavor.path).start();
        let store = connect(&server).await;
        let (mut counts, mut foreign) = (Counts::of(&server), server.connect());
        assert_eq!(counts.tracking_clients(), 0, "who only enqueues has no use for it");
        for round in 0..ROUNDS {
            let before = counts.calls("llen");
            let waiting = wait(&store, &["a"]);
            counts.until("the wait has looked", |counts| counts.calls("llen") > before).await;
            foreign_push(&mut foreign, "a", &round.to_string());
            woken(waiting).await;
            assert_eq!(counts.tracking_clients(), 1);
            assert_eq!(claim(&store, "a", 5).await.len(), 1);
        }
        // One before each sleep, and one by each claim.
        assert_eq!(counts.calls("llen"), 2 * ROUNDS);
    }
}

#[tokio::test]
async fn what_was_not_reported_is_not_read_again() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let queues: Vec<String> = (0..10).map(|number| format!("q{number}")).collect();
    let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
    let (mut counts, mut foreign) = (Counts::of(&server), server.connect());
    for round in 0..5 {
        let before = counts.calls("llen");
        let waiting = wait(&store, &queues);
        counts.until("the wait has looked", |counts| counts.calls("llen") > before).await;
        foreign_push(&mut foreign, "q7", "1");
        woken(waiting).await;
        let looks = counts.calls("llen") - before;
        assert!(if round == 0 { looks >= 10 } else { looks <= 2 }, "{looks} looks in round {round}");
        claim(&store, "q7", 1).await;
    }
}

#[tokio::test]
async fn a_flushed_server_still_wakes() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let (mut counts, mut foreign) = (Counts::of(&server), server.connect());
    let waiting = wait(&store, &["a"]);
    counts.until("the wait has looked", |counts| counts.calls("llen") == 1).await;
    foreign.run(&["FLUSHALL"]);
    woken(waiting).await;
    let waiting = wait(&store, &["a"]);
    counts.until("the wait has looked again", |counts| counts.calls("llen") == 2).await;
    foreign_push(&mut foreign, "a", "1");
    woken(waiting).await;
}

#[tokio::test]
async fn a_server_that_can_remember_few_keys_still_wakes() {
    let server = RedisServer::builder().arg("tracking-table-max-keys", "1").start();
    let store = connect(&server).await;
    let mut foreign = server.connect();
    for round in 0..20 {
        let waiting = wait(&store, &["a", "b", "c", "d"]);
        foreign_push(&mut foreign, ["a", "b", "c", "d"][round % 4], "1");
        woken(waiting).await;
        foreign.run(&["DEL", "work:jobs:a", "work:jobs:b", "work:jobs:c", "work:jobs:d"]);
    }
}

#[tokio::test]
async fn a_lost_connection_loses_no_push() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let store = RedisStore::connect(&proxy.url()).await.unwrap();
    let (mut counts, mut foreign) = (Counts::of(&server), server.connect());
    for round in 0..5 {
        // As a pool does: an error is followed by a look.
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { while store.wait(work(&["a"])).await.is_err() {} }
        });
        counts.until("the wait is tracked", |counts| counts.tracking_clients() == 1).await;
        proxy.refuse(true);
        proxy.cut();
        counts.until("the connection is gone", |counts| counts.tracking_clients() == 0).await;
        foreign_push(&mut foreign, "a", &round.to_string());
        proxy.refuse(false);
        woken(waiting).await;
        let claims = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Ok(reply) = store.claim(&pool(), claim_request(&["a"], 5)).await {
                    return reply.value;
                }
            }
        });
        assert_eq!(claims.await.unwrap().len(), 1);
    }
}

/// Waits and pushes as long as it takes to be sure that the store polls: a look finds nothing, the next one does.
async fn polls(server: &RedisServer, store: &RedisStore) {
    let (mut counts, mut foreign) = (Counts::of(server), server.connect());
    let before = counts.calls("llen");
    let waiting = wait(store, &["a"]);
    counts.until("it has looked three times", |counts| counts.calls("llen") >= before + 3).await;
    assert_eq!(counts.tracking_clients(), 0);
    foreign_push(&mut foreign, "a", "1");
    woken(waiting).await;
}

#[tokio::test]
async fn a_server_without_resp3_is_polled() {
    let server = RedisServer::builder().arg("rename-command", "HELLO \"\"").start();
    polls(&server, &connect(&server).await).await;
}

#[tokio::test]
async fn a_user_that_may_not_track_polls() {
    let server = RedisServer::start();
    server.run(&["ACL", "SETUSER", "app", "on", ">x", "~*", "&*", "+@all", "-client|tracking"]);
    let url = format!("redis://app:x@127.0.0.1:{}/0", server.port());
    polls(&server, &RedisStore::connect(&url).await.unwrap()).await;
}

#[tokio::test]
async fn reports_that_a_proxy_swallows_are_missed_soon() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.swallow_pushes(true);
    let store = RedisStore::connect(&proxy.url()).await.unwrap();
    polls(&server, &store).await;
    assert!(proxy.swallowed_bytes() > 0);
}

/// Each push is heard by all, and is worth a claim to one of them.
#[tokio::test]
async fn many_idle_pools_do_not_stampede() {
    const POOLS: usize = 20;
    const PUSHES: usize = 100;
    let server = RedisServer::start();
    let (mut counts, mut foreign) = (Counts::of(&server), server.connect());
    let (claimed, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..POOLS {
        let (store, claimed) = (connect(&server).await, claimed.clone());
        tokio::spawn(async move {
            let pool = PoolId::from(format!("pool{number}").as_str());
            loop {
                for _ in store.claim(&pool, claim_request(&["a"], 5)).await.unwrap().value {
                    claimed.send(()).unwrap();
                }
                store.wait(work(&["a"])).await.unwrap();
            }
        });
    }
    counts.until("all wait", |counts| counts.tracking_clients() == POOLS).await;
    for id in 0..PUSHES {
        foreign_push(&mut foreign, "a", &id.to_string());
        tokio::time::timeout(PATIENCE, arrivals.recv()).await.expect("somebody claims it").unwrap();
    }
    let claims = counts.calls("evalsha");
    assert!(claims < PUSHES * POOLS / 3, "{claims} claims for {PUSHES} jobs");
}
