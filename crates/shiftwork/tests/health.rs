//! Liveness and readiness, as an orchestrator asks for them.
#![cfg(all(feature = "health", feature = "redis"))]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use shiftwork::{Client, Context, Enqueue, JobOptions, RedisStore, WorkerPool};
use test_servers::RedisServer;

/// The status and the text of a GET, by hand: nothing of ours but the server is in it.
fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text.split("\r\n\r\n").nth(1).unwrap().to_owned())
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn pool(server: &RedisServer, work: Duration) -> (Client, WorkerPool) {
    let client = Client::from(RedisStore::connect(&server.url()).await.unwrap());
    let pool =
        WorkerPool::new(client.clone()).raw("job", JobOptions::new(), move |_, _: Context| async move {
            // The mistake that users make.
            // sleep: it is the mistake that is tested.
            std::thread::sleep(work);
        });
    (client, pool)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_ready_while_its_store_answers_and_live_even_if_not() {
    let server = RedisServer::start();
    let (_, pool) = pool(&server, Duration::ZERO).await;
    let pool = pool.start().await.unwrap();
    let address = pool.serve_health(anywhere()).unwrap();
    assert_eq!(
        (get(address, "/healthz"), get(address, "/readyz")),
        ((200, "ok\n".into()), (200, "ok\n".into()))
    );
    assert_eq!(get(address, "/other").0, 404);

    server.pause();
    let (status, text) = get(address, "/readyz");
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("store"), "{text}");
    assert_eq!(get(address, "/healthz").0, 200, "restarting the process would not bring the store back");
    server.resume();
    assert_eq!(get(address, "/readyz").0, 200);

    pool.quiet();
    let health = pool.health().await;
    assert!(health.live && !health.ready && health.problems[0].contains("stopping"), "{health:?}");
    pool.stop().await;
}

/// The server answers from a thread of its own.
#[test]
fn a_pool_whose_runtime_is_blocked_is_not_live() {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (pool, address) = runtime.block_on(async {
        let (client, pool) = pool(&server, Duration::from_secs(5)).await;
        let pool = pool.start().await.unwrap();
        let address = pool.serve_health(anywhere()).unwrap();
        assert_eq!(get(address, "/healthz").0, 200);
        client.enqueue(Enqueue::json("job", "{}")).await.unwrap();
        (pool, address)
    });
    // Until the job runs, and for some seconds from then on.
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while get(address, "/healthz").0 == 200 {
        assert!(std::time::Instant::now() < deadline, "it never showed");
    }
    let tally = runtime.block_on(pool.stop());
    assert_eq!(tally.done, 1);
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error_that_names_it() {
    let server = RedisServer::start();
    let taken = std::net::TcpListener::bind(anywhere()).unwrap();
    let address = taken.local_addr().unwrap();
    let (_, pool) = pool(&server, Duration::ZERO).await;
    let error = pool.health_address(address).start().await.unwrap_err();
    assert!(error.is_config() && error.to_string().contains(&address.to_string()), "{error}");
    assert_eq!(server.run(&["SCARD", "work:worker_pools"]).int(), 0, "the pool is not left running");
}
