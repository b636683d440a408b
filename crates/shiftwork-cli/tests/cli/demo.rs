//! `shiftwork demo`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use test_servers::RedisServer;

use super::work::signal;
use super::*;

#[test]
fn the_demo_needs_no_server_and_says_what_happens() {
    let output = Command::new(env!("CARGO_BIN_EXE_shiftwork"))
        .env_remove("SHIFTWORK_STORE")
        .args(["demo", "--seconds", "3"])
        .output()
        .unwrap();
    assert_eq!(exit_code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("a worker pool of 8 slots on memory"), "{text}");
    assert!(
        text.lines().filter(|line| line.contains(" done ") && line.contains(" queued ")).count() >= 2,
        "{text}"
    );
    let last = text.lines().last().unwrap();
    let done: u32 = last.strip_prefix("stopped: ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(done > 5, "{text}");
}

#[test]
fn the_demo_on_a_server_stops_cleanly_and_goes_on_with_what_was_left() {
    let server = RedisServer::start();
    let demo = shiftwork(&server).arg("demo").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut demo = Running(demo.unwrap());
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let line = lines.by_ref().map(Result::unwrap).find(|line| line.contains("put off")).unwrap();
    assert!(line.contains(" queued "), "{line}");
    signal("INT", demo.id());
    assert!(demo.wait().unwrap().success());
    assert!(lines.map(Result::unwrap).last().unwrap().starts_with("stopped: "));
    assert_eq!(server.run(&["SCARD", "work:worker_pools"]).int(), 0);
    let scheduled = || -> Vec<String> {
        let members = server.run(&["ZRANGE", "work:scheduled", "0", "-1"]);
        members.list().iter().map(|member| member.text().to_owned()).collect()
    };
    let left = scheduled();
    assert!(!left.is_empty(), "reminders wait for the next time");
    let output = shiftwork(&server).args(["demo", "--seconds", "5"]).output().unwrap();
    assert_eq!(exit_code(&output), 0);
    let after = scheduled();
    assert!(left.iter().all(|reminder| !after.contains(reminder)), "their time came, and they were run");
}
