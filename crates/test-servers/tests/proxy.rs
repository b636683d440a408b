//! The faults of the proxy, one by one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a delay is measured on the real clock")]

use std::time::{Duration, Instant};

use test_servers::{Client, FaultProxy, RedisServer};

fn through(proxy: &FaultProxy) -> Client {
    Client::tcp(("127.0.0.1", proxy.port())).unwrap()
}

#[test]
fn without_faults_it_is_transparent() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let large = vec![b'x'; 1_000_000];
    let mut client = through(&proxy);
    client.run(&[b"SET".as_slice(), b"k", &large]);
    assert_eq!(client.run(&["GET", "k"]).bytes(), large);
    assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}", proxy.port()));
    assert_eq!((proxy.accepted(), proxy.open()), (1, 1));
}

#[test]
fn a_cut_ends_open_connections_and_lets_new_ones_in() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut clients = [through(&proxy), through(&proxy)];
    for client in &mut clients {
        client.run(&["PING"]);
    }
    proxy.cut();
    for client in &mut clients {
        assert!(client.try_run(&["PING"]).is_err());
    }
    assert_eq!(proxy.open(), 0);
    assert_eq!(through(&proxy).run(&["PING"]).text(), "PONG");
}

#[test]
fn a_cut_ends_a_connection_that_waits_for_a_reply() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut client = through(&proxy);
    client.run(&["PING"]);
    let waiting = std::thread::spawn(move || client.try_run(&["BRPOP", "nothing", "0"]));
    let blocked = || server.run(&["INFO", "clients"]).text().contains("blocked_clients:1");
    while !blocked() {
        assert!(!waiting.is_finished());
    }
    proxy.cut();
    assert!(waiting.join().unwrap().is_err());
}

#[test]
fn refusing_spares_open_connections() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut open = through(&proxy);
    open.run(&["PING"]);
    proxy.refuse(true);
    assert!(
        Client::tcp(("127.0.0.1", proxy.port())).and_then(|mut client| client.try_run(&["PING"])).is_err()
    );
    assert_eq!(open.run(&["PING"]).text(), "PONG");
    proxy.refuse(false);
    assert_eq!(through(&proxy).run(&["PING"]).text(), "PONG");
}

#[test]
fn a_swallowed_reply_belongs_to_a_command_that_was_obeyed() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut client = through(&proxy);
    client.run(&["PING"]);
    proxy.swallow_replies(true);
    let lost = std::thread::spawn(move || client.try_run(&["INCR", "n"]));
    while proxy.swallowed_bytes() == 0 {
        assert!(!lost.is_finished());
        std::thread::yield_now();
    }
    proxy.cut();
    assert!(lost.join().unwrap().is_err());
    assert_eq!(server.run(&["GET", "n"]).text(), "1");
    proxy.swallow_replies(false);
    assert_eq!(through(&proxy).run(&["INCR", "n"]).int(), 2);
}

#[test]
fn a_delay_holds_replies_back() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut client = through(&proxy);
    proxy.delay(Duration::from_millis(80));
    let start = Instant::now();
    assert_eq!(client.run(&["PING"]).text(), "PONG");
    assert!(start.elapsed() >= Duration::from_millis(80));
    proxy.delay(Duration::ZERO);
    assert_eq!(client.run(&["PING"]).text(), "PONG");
}

#[test]
fn a_server_that_is_down_closes_the_connection() {
    let mut server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    server.kill();
    assert!(
        Client::tcp(("127.0.0.1", proxy.port())).and_then(|mut client| client.try_run(&["PING"])).is_err()
    );
    server.restart();
    assert_eq!(through(&proxy).run(&["PING"]).text(), "PONG");
}
