//! URLs, credentials, TLS, old servers.

use shiftwork_core::store::Store;
use shiftwork_redis::RedisStore;
use test_servers::{RedisServer, flavors};

#[tokio::test]
async fn every_way_in_works() {
    let server = RedisServer::builder().password("s3:cr/et").start();
    for url in [server.url(), server.url_with_db(3), server.unix_url()] {
        let store = RedisStore::connect(&url).await.unwrap();
        store.time().await.unwrap();
        let shown = format!("{store:?} {}", store.describe());
        assert!(
            !shown.contains("s3:cr") && !shown.contains("s3%3Acr") && !shown.contains("cr/et"),
            "{shown}"
        );
    }
    server.run(&["ACL", "SETUSER", "ada", "on", ">pass word", "~work:*", "+@all"]);
    let url = format!("redis://ada:pass%20word@127.0.0.1:{}/0", server.port());
    RedisStore::connect(&url).await.unwrap().time().await.unwrap();
}

#[tokio::test]
async fn a_wrong_password_is_named_without_being_shown() {
    let server = RedisServer::builder().password("right").start();
    for url in [
        format!("redis://:wr0ng@127.0.0.1:{}", server.port()),
        format!("redis://127.0.0.1:{}", server.port()),
    ] {
        let error = RedisStore::connect(&url).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("wr0ng"), "{text}");
        assert!(text.contains("user name or password") || text.contains("NOAUTH"), "{text}");
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_real_handshake_over_tls() {
    let server = RedisServer::builder().tls().start();
    let pem = std::fs::read(server.ca_pem().unwrap()).unwrap();
    let store = RedisStore::builder(&server.url()).ca_certificate(pem).connect().await.unwrap();
    store.push(&[super::push("a", "1")]).await.unwrap();
    assert_eq!(super::claim(&store, "a", 1).await.len(), 1);
    assert!(store.describe().starts_with("rediss://"), "{}", store.describe());
    let error = RedisStore::connect(&server.url()).await.unwrap_err();
    assert!(error.is_unavailable(), "a certificate of an unknown authority is not trusted: {error}");
}

#[tokio::test]
async fn a_server_that_is_away_or_silent_is_an_error_in_time() {
    let server = RedisServer::start();
    let url = server.url();
    drop(server);
    assert!(RedisStore::connect(&url).await.unwrap_err().is_unavailable());
    let server = RedisServer::start();
    let patience = std::time::Duration::from_millis(300);
    let builder = RedisStore::builder(&server.url()).connect_timeout(patience).response_timeout(patience);
    let store = builder.clone().connect().await.unwrap();
    server.pause();
    let error = store.time().await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("did not answer in time"), "{error}");
    assert!(builder.connect().await.unwrap_err().is_unavailable());
    server.resume();
    store.time().await.unwrap();
}

#[tokio::test]
async fn a_user_without_permission_is_told_so() {
    let server = RedisServer::start();
    server.run(&["ACL", "SETUSER", "weak", "on", ">x", "~*", "+info", "+ping", "+select", "+client"]);
    let url = format!("redis://weak:x@127.0.0.1:{}/0", server.port());
    let store = RedisStore::connect(&url).await.unwrap();
    let error = store.push(&[super::push("a", "1")]).await.unwrap_err();
    assert!(error.is_rejected() && error.to_string().contains("permissions"), "{error}");
}

#[tokio::test]
async fn a_cluster_node_wants_a_hash_tag() {
    let server = RedisServer::builder().arg("cluster-enabled", "yes").start();
    let error = RedisStore::builder(&server.url()).namespace("app").connect().await.unwrap_err();
    assert!(error.is_config());
    assert_eq!(error.to_string(), "namespace \"app\" has no hash tag; on Redis Cluster write \"{app}\"");
}

#[tokio::test]
async fn a32_every_verb_stays_within_one_slot_of_a_cluster() {
    for flavor in flavors() {
        let server = RedisServer::builder().binary(&flavor.path).arg("cluster-enabled", "yes").start();
        // A cluster of one node that holds all slots.
        server.run(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        if server.run(&["CLUSTER", "INFO"]).text().contains("cluster_slots_assigned:0") {
            let slots: Vec<String> = ["CLUSTER".to_owned(), "ADDSLOTS".to_owned()]
                .into_iter()
                .chain((0..16384).map(|n| n.to_string()))
                .collect();
            server.run(&slots);
        }
        while !server.run(&["CLUSTER", "INFO"]).text().contains("cluster_state:ok") {
            std::thread::yield_now();
        }
        let store = RedisStore::builder(&server.url()).namespace("{app}").connect().await.unwrap();
        super::layout::every_verb_once(&store).await;
    }
}
