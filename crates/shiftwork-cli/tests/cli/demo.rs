//! `shiftwork demo`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use test_servers::RedisServer;

use super::work::signal;
use super::*;

#[test]
fn the_demo_needs_no_server_and_goes_on_with_what_was_left() {
    let home = tempfile::tempdir().unwrap();
    let demo = || {
        let output = Command::new(env!("CARGO_BIN_EXE_shiftwork"))
            .env_remove("SHIFTWORK_STORE")
            .env("XDG_DATA_HOME", home.path())
            .args(["demo", "--seconds", "3"])
            .output()
            .unwrap();
        assert_eq!(exit_code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let text = demo();
    let file = home.path().join("shiftwork/jobs.db");
    let place = format!("a worker pool of 8 slots on sqlite:{}", file.display());
    assert!(text.starts_with(&place), "{text}");
    assert!(file.exists());
    assert!(
        text.lines().filter(|line| line.contains(" done ") && line.contains(" queued ")).count() >= 2,
        "{text}"
    );
    let last = text.lines().last().unwrap();
    let done: u32 = last.strip_prefix("stopped: ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(done > 5, "{text}");
    // Reminders and retries were left; they are there again before anything new was put off.
    let first = demo().lines().find(|line| line.contains("put off")).map(str::to_owned).unwrap();
    let left: u32 = first.split(" put off").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(left >= 1, "{first}");
}

/// The default is the same file for every command.
#[test]
fn what_one_command_enqueues_another_one_works_on_without_a_server() {
    let home = tempfile::tempdir().unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
        command.env_remove("SHIFTWORK_STORE").env("XDG_DATA_HOME", home.path());
        command
    };
    let enqueued = command().args(["enqueue", "greet", "--args", r#"{"name":"Ada"}"#]).output().unwrap();
    assert_eq!(exit_code(&enqueued), 0, "{}", stderr(&enqueued));
    let worked = command().args(["work", "--exec", "greet=cat", "--drain"]).output().unwrap();
    assert_eq!(exit_code(&worked), 0, "{}", stderr(&worked));
    assert_eq!(stdout(&worked).trim(), r#"{"name":"Ada"}"#);
    // By its URL, it is the same file.
    let url = format!("sqlite:{}", home.path().join("shiftwork/jobs.db").display());
    let none_left =
        command().args(["--store", &url, "work", "--exec", "greet=cat", "--drain"]).output().unwrap();
    assert_eq!((exit_code(&none_left), stdout(&none_left)), (0, String::new()));
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
        let reminders = members.list().iter().map(|member| member.text().to_owned());
        // Ticks of the periodic job are there ahead of their time.
        reminders.filter(|member| member.contains("reminder")).collect()
    };
    let left = scheduled();
    assert!(!left.is_empty(), "reminders wait for the next time");
    let output = shiftwork(&server).args(["demo", "--seconds", "5"]).output().unwrap();
    assert_eq!(exit_code(&output), 0);
    let after = scheduled();
    assert!(left.iter().all(|reminder| !after.contains(reminder)), "their time came, and they were run");
}
