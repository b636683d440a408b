//! The test servers do what the tests believe of them.

use std::time::Duration;

use test_servers::{Client, Content, FaultProxy, RedisServer, Reply, flavors, unique_namespace};

#[test]
fn a_server_of_every_flavor_starts_answers_and_keeps_what_it_is_told() {
    for flavor in flavors() {
        let server = RedisServer::builder().program(&flavor.path).start();
        let namespace = unique_namespace("a[b*");
        server.run(&["LPUSH", &format!("{namespace}:list"), "one", "two"]);
        server.run(&["ZADD", &format!("{namespace}:zset"), "1.5", "member"]);
        server.run(&["SET", "other", "x"]);
        let dump = server.dump(&namespace);
        assert_eq!(dump.len(), 2, "{}", flavor.name);
        assert_eq!(dump[&format!("{namespace}:list")], Content::List(vec![b"two".to_vec(), b"one".to_vec()]));
        let zset = Content::SortedSet(vec![(b"member".to_vec(), "1.5".to_owned())]);
        assert_eq!(dump[&format!("{namespace}:zset")], zset);
    }
}

#[test]
fn a_killed_server_comes_back_with_its_log_and_a_paused_one_goes_on() {
    let mut server =
        RedisServer::builder().option("appendonly", "yes").option("appendfsync", "always").start();
    server.run(&["SET", "kept", "yes"]);
    let pid = server.pid();
    server.kill();
    assert!(Client::connect(server.port()).is_err());
    server.restart();
    assert_ne!(server.pid(), pid);
    assert_eq!(server.run(&["GET", "kept"]).text(), "yes");
    server.pause();
    server.resume();
    assert_eq!(server.run(&["PING"]), Reply::Status("PONG".to_owned()));
}

#[test]
fn a_proxy_passes_on_cuts_refuses_and_loses() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut client = Client::connect(proxy.port()).unwrap();
    proxy.delay(Duration::from_millis(1));
    assert_eq!(client.run(&["INCR", "n"]).int(), 1);
    proxy.cut();
    assert!(client.try_run(&["INCR", "n"]).is_err());
    proxy.refuse(true);
    assert!(Client::connect(proxy.port()).and_then(|mut client| client.try_run(&["PING"])).is_err());
    proxy.refuse(false);
    let mut client = Client::connect(proxy.port()).unwrap();
    proxy.swallow_replies(true);
    let lost = std::thread::spawn(move || client.try_run(&["INCR", "n"]).is_err());
    // The command arrives; its reply does not.
    while server.run(&["GET", "n"]).int() < 2 {
        std::thread::yield_now();
    }
    proxy.cut();
    assert!(lost.join().unwrap());
}
