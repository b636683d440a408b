//! Starting, breaking and ending servers, on every server program of this machine.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "deadlines of the real machine")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use test_servers::{Client, RedisServer, Reply, flavors, unique_namespace};

/// Waits for something that another process is about to do.
#[track_caller]
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "did not happen within 10 s: {what}");
        std::thread::yield_now();
    }
}

fn process_exists(pid: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("kill -0 {pid}")])
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

#[test]
fn every_flavor_starts_obeys_and_restarts() {
    for flavor in flavors() {
        let mut server = RedisServer::builder().binary(&flavor.path).password("p w\"ö").start();
        assert_eq!(server.run(&["SET", "k", "v"]), Reply::Status("OK".into()), "{flavor:?}");
        assert_eq!(server.run(&["GET", "k"]).text(), "v", "{flavor:?}");
        server.restart();
        assert!(server.run(&["GET", "k"]).is_nil(), "{flavor:?} persists nothing unless told to");
    }
}

#[test]
fn the_port_is_ours_and_speaks_plain_resp() {
    let server = RedisServer::start();
    let mut client = Client::tcp(("127.0.0.1", server.port())).unwrap();
    let info = client.run(&["INFO", "server"]);
    assert!(info.text().contains(&format!("process_id:{}\r\n", server.pid())));
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    assert_eq!(server.url_with_db(3), format!("redis://127.0.0.1:{}/3", server.port()));
}

#[test]
fn the_unix_socket_is_named_by_its_url() {
    let server = RedisServer::start();
    let url = server.unix_url();
    let mut client = Client::unix(Path::new(url.strip_prefix("redis+unix://").unwrap())).unwrap();
    assert_eq!(client.run(&["PING"]).text(), "PONG");
}

#[test]
fn a_password_is_required_and_encoded_in_urls() {
    let server = RedisServer::builder().password("a:b@c/d").start();
    let mut stranger = Client::unix(&server.socket()).unwrap();
    assert!(stranger.run(&["PING"]).error().unwrap().starts_with("NOAUTH"));
    assert_eq!(server.run(&["PING"]).text(), "PONG");
    assert_eq!(server.url(), format!("redis://:a%3Ab%40c%2Fd@127.0.0.1:{}", server.port()));
    assert!(server.unix_url().ends_with("redis.sock?pass=a%3Ab%40c%2Fd"));
}

#[test]
fn what_was_persisted_survives_a_kill() {
    let mut server = RedisServer::builder().arg("appendonly", "yes").arg("appendfsync", "always").start();
    server.run(&["LPUSH", "jobs", "1"]);
    let (port, pid) = (server.port(), server.pid());
    server.kill();
    assert!(!server.is_running());
    assert!(Client::tcp(("127.0.0.1", port)).is_err(), "a killed server refuses connections");
    server.restart();
    assert!(server.is_running());
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.run(&["LRANGE", "jobs", "0", "-1"]), Reply::List(vec![Reply::Bytes(b"1".to_vec())]));
}

#[test]
fn a_paused_server_answers_once_it_is_resumed() {
    let server = RedisServer::start();
    let mut client = server.connect();
    server.pause();
    let answer = std::thread::spawn(move || client.run(&["PING"]));
    eventually("the process is stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid()));
        // Elsewhere than on Linux there is no such file, and the reply below must do.
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") T "))
    });
    assert!(!answer.is_finished());
    assert!(server.is_running(), "a paused server counts as running");
    server.resume();
    assert_eq!(answer.join().unwrap().text(), "PONG");
}

#[test]
fn a_paused_server_can_be_killed() {
    let mut server = RedisServer::start();
    server.pause();
    server.kill();
    assert!(!server.is_running());
}

#[test]
fn settings_of_several_words_reach_the_server() {
    let server = RedisServer::builder().arg("save", "60 1000").arg("maxmemory-policy", "noeviction").start();
    assert_eq!(server.run(&["CONFIG", "GET", "save"]).list()[1].text(), "60 1000");
}

#[test]
fn dropping_a_server_ends_its_process_and_deletes_its_folder() {
    let server = RedisServer::start();
    let (pid, folder) = (server.pid().to_string(), server.socket().parent().unwrap().to_owned());
    assert!(process_exists(&pid) && folder.exists());
    drop(server);
    assert!(!process_exists(&pid) && !folder.exists());
}

#[test]
fn a_server_dies_with_a_test_process_that_was_killed() {
    const ROLE: &str = "TEST_SERVERS_VICTIM";
    const NAME: &str = "a_server_dies_with_a_test_process_that_was_killed";
    if std::env::var_os(ROLE).is_some() {
        let server = RedisServer::start();
        println!("server {} {}", server.pid(), server.socket().display());
        // Until the other end kills this process.
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(ROLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.into_iter().find(|line| line.contains("server ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let [pid, socket] = words[words.len() - 2..] else { panic!("{line}") };
    let folder = Path::new(socket).parent().unwrap();
    assert!(process_exists(pid) && folder.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually("the server ends with its test process", || !process_exists(pid));
    eventually("its folder is deleted", || !folder.exists());
}

#[test]
#[should_panic(expected = "run `cargo xtask test`, which installs it")]
fn a_missing_program_says_what_to_run() {
    let _ = RedisServer::builder().binary("redis-server-that-nobody-has").start();
}

#[test]
#[should_panic(expected = "no-such-setting")]
fn a_server_that_cannot_start_shows_its_output() {
    let _ = RedisServer::builder().arg("no-such-setting", "1").start();
}

#[test]
fn many_servers_start_at_once() {
    let starts: Vec<_> = (0..8).map(|_| std::thread::spawn(RedisServer::start)).collect();
    let servers: Vec<RedisServer> = starts.into_iter().map(|start| start.join().unwrap()).collect();
    for server in &servers {
        let info = Client::tcp(("127.0.0.1", server.port())).unwrap().run(&["INFO", "server"]);
        assert!(info.text().contains(&format!("process_id:{}\r\n", server.pid())));
    }
}

#[test]
fn namespaces_are_unique() {
    let names: std::collections::BTreeSet<String> = (0..100).map(|_| unique_namespace("test")).collect();
    assert_eq!(names.len(), 100);
    assert!(names.iter().all(|name| name.starts_with("test-")));
}
