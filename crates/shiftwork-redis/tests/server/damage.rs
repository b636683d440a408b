//! Keys of the wrong type and worse: what is bad is named, and the rest goes on.

use shiftwork_core::store::{Destination, Exchange, Finish, Store};
use test_servers::RedisServer;

use super::*;

async fn claims_and_refusals(store: &RedisStore, queues: &[&str]) -> (Vec<String>, Vec<String>) {
    let request = Exchange { pool: pool(), finishes: vec![], claim: claim_request(queues, 10) };
    let reply = store.exchange(&request).await.unwrap().value;
    let names = |names: Vec<JobName>| names.iter().map(|name| name.to_string()).collect();
    (
        names(reply.claims.into_iter().map(|claim| claim.queue).collect()),
        names(reply.refused.into_iter().map(|(queue, _)| queue).collect()),
    )
}

#[tokio::test]
async fn a52_a_queue_of_the_wrong_type_does_not_stop_the_others() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    for (bad, command) in [
        ("queue", ["SET", "work:jobs:queue", "x", "EX"]),
        ("list", ["SET", "work:jobs:list:pool:inprogress", "x", "EX"]),
        ("info", ["SET", "work:jobs:info:lock_info", "x", "EX"]),
        ("lock", ["SET", "work:jobs:lock:lock", "many", "EX"]),
    ] {
        if bad != "queue" && bad != "lock" {
            store.push(&[push(bad, "1")]).await.unwrap();
        }
        if bad == "lock" {
            // The name "lock" is fine; only endings with a colon are the layout's.
            store.push(&[push("lock", "1")]).await.unwrap();
        }
        server.run(&[command[0], command[1], command[2], command[3], "1000"]);
        store.push(&[push("good", bad)]).await.unwrap();
        let (claimed, refused) = claims_and_refusals(&store, &[bad, "good"]).await;
        assert_eq!((claimed, refused), (vec!["good".to_owned()], vec![bad.to_owned()]));
        if bad != "queue" {
            assert_eq!(
                server.run(&["LLEN", &format!("work:jobs:{bad}")]).int(),
                1,
                "its job is where it was"
            );
            assert_eq!(
                server.run(&["HGET", "work:jobs:good:lock_info", "pool"]).text(),
                server.run(&["GET", "work:jobs:good:lock"]).text()
            );
        }
    }
    // Nothing is counted that is not claimed.
    assert_eq!(
        server.run(&["EXISTS", "work:jobs:list:lock"]).int()
            * server.run(&["GET", "work:jobs:list:lock"]).int(),
        0
    );
}

#[tokio::test]
async fn a_damaged_dead_set_fails_the_call_before_anything_is_written() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    store.push(&[push("a", "1"), push("a", "2")]).await.unwrap();
    let claims = claim(&store, "a", 2).await;
    server.run(&["SET", "work:dead", "x"]);
    let before = server.dump("work:");
    let to = |claim: &Claim| Destination::Dead { at: 1, job: claim.job.clone() };
    let finishes = vec![
        Finish { claim: claims[0].clone(), to: Destination::Gone },
        Finish { claim: claims[1].clone(), to: to(&claims[1]) },
    ];
    let error = store.finish(&pool(), finishes.clone()).await.unwrap_err();
    assert!(error.is_rejected() && error.to_string().contains("WRONGTYPE"), "{error}");
    assert_eq!(server.dump("work:"), before);
    server.run(&["DEL", "work:dead"]);
    assert!(store.finish(&pool(), finishes).await.unwrap().value.lost.is_empty());
}

#[tokio::test]
async fn a_push_that_fails_in_part_says_what_went_in() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    server.run(&["SET", "work:jobs:bad", "x"]);
    let error = store.push(&[push("a", "1"), push("bad", "1"), push("a", "2")]).await.unwrap_err();
    assert!(error.is_rejected() && error.to_string().starts_with("2 of 3 jobs were stored"), "{error}");
    assert_eq!(server.run(&["LLEN", "work:jobs:a"]).int(), 2);
}

#[tokio::test]
async fn a36_a_damaged_known_jobs_set_does_not_make_a_push_fail() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    server.run(&["SET", "work:known_jobs", "x"]);
    store.push(&[push("a", "1")]).await.unwrap();
    assert_eq!(server.run(&["LLEN", "work:jobs:a"]).int(), 1);
}

#[tokio::test]
async fn a60_known_jobs_are_registered_again_after_the_server_was_away() {
    let mut server = RedisServer::start();
    let store = connect(&server).await;
    store.push(&[push("a", "1")]).await.unwrap();
    server.restart();
    while store.push(&[push("a", "2")]).await.is_err() {}
    assert_eq!(server.run(&["SMEMBERS", "work:known_jobs"]).list()[0].text(), "a");
}

#[tokio::test]
async fn a21_a30_bookkeeping_never_goes_below_zero_and_stays_equal() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    store.push(&[push("a", "1"), push("a", "2")]).await.unwrap();
    let claims = claim(&store, "a", 2).await;
    // As after a Go reaper's clean: this pool's count is gone, its claims are not.
    server.run(&["HDEL", "work:jobs:a:lock_info", "pool"]);
    server.run(&["HSET", "work:jobs:a:lock_info", "other", "3"]);
    server.run(&["SET", "work:jobs:a:lock", "3"]);
    let finishes = claims.into_iter().map(|claim| Finish { claim, to: Destination::Gone }).collect();
    store.finish(&pool(), finishes).await.unwrap();
    assert_eq!(server.run(&["HGET", "work:jobs:a:lock_info", "pool"]).text(), "0");
    assert_eq!(server.run(&["GET", "work:jobs:a:lock"]).text(), "3");
}

#[tokio::test]
async fn garbage_in_max_concurrency_is_no_limit() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    for garbage in ["lots", "-3", "", "0"] {
        store.push(&[push("a", garbage)]).await.unwrap();
        server.run(&["SET", "work:jobs:a:max_concurrency", garbage]);
        assert_eq!(claim(&store, "a", 1).await.len(), 1, "{garbage:?}");
    }
}
