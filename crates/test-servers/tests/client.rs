//! The RESP2 client, and the dump of a server's state.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

use std::collections::BTreeMap;

use test_servers::{RedisServer, Reply, Value, flavors};

#[test]
fn every_kind_of_reply_is_read() {
    let server = RedisServer::start();
    let mut client = server.connect();
    assert_eq!(client.run(&["SET", "k", "v"]), Reply::Status("OK".into()));
    assert_eq!(client.run(&["INCR", "n"]).int(), 1);
    assert_eq!(client.run(&["GET", "missing"]), Reply::Nil);
    assert_eq!(client.run(&["GET", "k"]).bytes(), b"v");
    assert!(client.run(&["LPUSH", "k", "v"]).error().unwrap().starts_with("WRONGTYPE"));
    let nested = client.run(&["EVAL", "return {1, {'a', {}}, false}", "0"]);
    let inner = Reply::List(vec![Reply::Bytes(b"a".to_vec()), Reply::List(vec![])]);
    assert_eq!(nested.list(), [Reply::Int(1), inner, Reply::Nil]);
}

#[test]
fn bytes_of_every_value_and_large_ones_pass_unchanged() {
    let server = RedisServer::start();
    let every: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    server.run(&[b"SET".as_slice(), b"k", &every]);
    assert_eq!(server.run(&["GET", "k"]).bytes(), every);
}

#[test]
#[should_panic(expected = "expected an integer, the server replied error \"ERR unknown command")]
fn a_wrong_expectation_shows_the_reply() {
    RedisServer::start().run(&["NO-SUCH-COMMAND"]).int();
}

#[test]
fn a_dump_is_the_exact_state_below_a_prefix() {
    for flavor in flavors() {
        let server = RedisServer::builder().binary(&flavor.path).start();
        let mut client = server.connect();
        client.run(&["SET", "ns[1]:string", "text"]);
        client.run(&[b"RPUSH".as_slice(), b"ns[1]:list", b"head", b"\xff\x00"]);
        client.run(&["SADD", "ns[1]:set", "b", "a"]);
        client.run(&["ZADD", "ns[1]:zset", "1700000000.25", "late", "-inf", "first"]);
        client.run(&["HSET", "ns[1]:hash", "field", "value"]);
        client.run(&["SET", "ns1:other", "not in the dump"]);
        let expected = BTreeMap::from([
            ("ns[1]:string".to_owned(), Value::string("text")),
            ("ns[1]:list".to_owned(), Value::list([b"head".as_slice(), b"\xff\x00"])),
            ("ns[1]:set".to_owned(), Value::set(["a", "b"])),
            (
                "ns[1]:zset".to_owned(),
                Value::sorted_set([("first", f64::NEG_INFINITY), ("late", 1_700_000_000.25)]),
            ),
            ("ns[1]:hash".to_owned(), Value::hash([("field", "value")])),
        ]);
        assert_eq!(server.dump("ns[1]:"), expected, "{flavor:?}");
        assert_eq!(server.dump("").len(), 6, "{flavor:?}");
        assert_eq!(server.dump_db(1, ""), BTreeMap::new(), "{flavor:?}");
    }
}

#[test]
fn a_dump_reads_well_in_a_failed_assertion() {
    let server = RedisServer::start();
    server.run(&[b"RPUSH".as_slice(), b"k", b"text", b"\xff"]);
    assert_eq!(format!("{:?}", server.dump("")), r#"{"k": list ["text", b"\xff"]}"#);
}

#[test]
#[should_panic(expected = "key \"s\" is a stream")]
fn a_dump_does_not_pass_over_a_type_that_it_cannot_read() {
    let server = RedisServer::start();
    server.run(&["XADD", "s", "*", "f", "v"]);
    server.dump("");
}
