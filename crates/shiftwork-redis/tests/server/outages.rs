//! Scripts that are forgotten, servers that restart, networks that cut, replicas that refuse.

use std::time::Duration;

use shiftwork_core::store::{Destination, Finish, Store};
use test_servers::{FaultProxy, RedisServer, flavors};

use super::*;

#[tokio::test]
async fn a_server_that_has_forgotten_the_scripts_is_told_them_again() {
    for flavor in flavors() {
        let server = RedisServer::builder().binary(&flavor.path).start();
        let store = connect(&server).await;
        for id in ["1", "2", "3"] {
            server.run(&["SCRIPT", "FLUSH"]);
            store.push(&[push("a", id)]).await.unwrap();
            assert_eq!(claim(&store, "a", 1).await.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_store_comes_back_after_its_server_has() {
    let mut server = RedisServer::builder().arg("appendonly", "yes").arg("appendfsync", "always").start();
    let store = connect(&server).await;
    store.push(&[push("a", "1")]).await.unwrap();
    server.kill();
    for _ in 0..3 {
        assert!(store.time().await.unwrap_err().is_unavailable());
    }
    server.restart();
    store.time().await.unwrap();
    assert_eq!(claim(&store, "a", 5).await.len(), 1);
}

#[tokio::test]
async fn a_cut_connection_costs_one_call_and_a_hundred_callers_open_one_new_one() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let store = RedisStore::connect(&proxy.url()).await.unwrap();
    let before = proxy.accepted();
    proxy.cut();
    // Whoever calls first may find out.
    let _ = store.time().await;
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.time().await.is_ok() })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap());
    }
    assert_eq!(proxy.accepted() - before, 1);
}

#[tokio::test]
async fn a_lost_reply_is_unavailable_and_repeating_a_finish_does_nothing() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let builder = RedisStore::builder(&proxy.url()).response_timeout(Duration::from_millis(300));
    let store = builder.connect().await.unwrap();
    store.push(&[push("a", "1")]).await.unwrap();
    let claim = claim(&store, "a", 1).await.remove(0);
    let to = Destination::Retry { at: 5, job: job("a", "again") };
    let finish = || vec![Finish { claim: claim.clone(), to: to.clone() }];
    proxy.swallow_replies(true);
    assert!(store.finish(&pool(), finish()).await.unwrap_err().is_unavailable());
    proxy.swallow_replies(false);
    proxy.cut();
    let again = loop {
        if let Ok(reply) = store.finish(&pool(), finish()).await {
            break reply.value;
        }
    };
    assert_eq!(again.lost, [0], "the first one was taken");
    assert_eq!(server.run(&["ZCARD", "work:retry"]).int(), 1);
    assert_eq!(server.run(&["GET", "work:jobs:a:lock"]).int(), 0);
}

#[tokio::test]
async fn a_replica_is_unavailable_not_wrong() {
    let master = RedisServer::start();
    let server = RedisServer::start();
    let store = connect(&server).await;
    server.run(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    let error = store.push(&[push("a", "1")]).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("replica"), "{error}");
    server.run(&["REPLICAOF", "NO", "ONE"]);
    store.push(&[push("a", "1")]).await.unwrap();
}

#[tokio::test]
async fn a_full_server_refuses_jobs_and_still_takes_their_ends() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    store.push(&[push("a", "1"), push("a", "2")]).await.unwrap();
    let held = claim(&store, "a", 1).await;
    server.run(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = store.push(&[push("a", "3")]).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("out of memory"), "{error}");
    let finishes = held.into_iter().map(|claim| Finish { claim, to: Destination::Gone }).collect();
    assert!(store.finish(&pool(), finishes).await.unwrap().value.lost.is_empty());
    server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(claim(&store, "a", 5).await.len(), 1);
}
