//! `shiftwork enqueue`.

use std::io::Write;

use test_servers::{RedisServer, Value};

use super::*;

#[test]
fn a_job_is_written_as_the_go_library_writes_it_and_its_id_is_printed() {
    let server = RedisServer::start();
    let output = run(&server, &["enqueue", "send_email", "--args", r#"{"to": "ada", "b": 1.0}"#]);
    assert_eq!(exit_code(&output), 0, "{}", stderr(&output));
    let id = stdout(&output).trim().to_owned();
    let dump = server.dump("work:");
    let Value::List(items) = &dump["work:jobs:send_email"] else { panic!("{dump:?}") };
    let job = String::from_utf8(items[0].clone()).unwrap();
    let time = server.run(&["TIME"]).list()[0].int();
    let written =
        |t: i64| format!(r#"{{"name":"send_email","id":"{id}","t":{t},"args":{{"b":1.0,"to":"ada"}}}}"#);
    assert!((time - 5..=time).any(|t| job == written(t)), "{job}");
    assert_eq!(dump["work:known_jobs"], Value::set(["send_email"]));
}

#[test]
fn delays_times_and_uniqueness_do_what_they_say() {
    let server = RedisServer::start();
    assert_eq!(exit_code(&run(&server, &["enqueue", "a", "--in", "1h"])), 0);
    assert_eq!(exit_code(&run(&server, &["enqueue", "a", "--at", "2100-01-01T00:00:00Z"])), 0);
    let scores = server.run(&["ZRANGE", "work:scheduled", "0", "-1", "WITHSCORES"]);
    let now = server.run(&["TIME"]).list()[0].int();
    let in_an_hour = scores.list()[1].int() - now;
    assert!((3595..=3601).contains(&in_an_hour), "{in_an_hour}");
    assert_eq!(scores.list()[3].int(), 4_102_444_800);
    assert_eq!(exit_code(&run(&server, &["enqueue", "b", "--unique"])), 0);
    let duplicate = run(&server, &["enqueue", "b", "--unique"]);
    assert_eq!(exit_code(&duplicate), 1);
    assert!(stdout(&duplicate).starts_with("duplicate"));
    assert_eq!(server.run(&["LLEN", "work:jobs:b"]).int(), 1);
}

#[test]
fn a_file_of_lines_goes_in_and_a_bad_line_stops_with_its_number() {
    let server = RedisServer::start();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for number in 1..=2500 {
        writeln!(file, r#"{{"args":{{"n":{number}}}}}"#).unwrap();
    }
    file.flush().unwrap();
    let path = file.path().to_str().unwrap();
    let output = run(&server, &["enqueue", "many", "--from", path]);
    assert_eq!((stdout(&output).trim(), exit_code(&output)), ("2500 enqueued", 0), "{}", stderr(&output));
    let first = server.run(&["LINDEX", "work:jobs:many", "-1"]).text().to_owned();
    assert!(first.contains(r#""args":{"n":1}"#), "{first}");

    for (bad, reason) in [
        (r#"{"args":[1]}"#, "a list"),
        (r#"{"args":{}, "in": 5, "at": 6}"#, "both"),
        ("not json", "expected"),
        (r#"{"argz":{}}"#, "argz"),
        (r#"{"name":"a,b"}"#, "comma"),
        (r#"{"in":"soon"}"#, "not a delay"),
    ] {
        server.run(&["FLUSHALL"]);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{{\"args\":{{}}}}\n\n{{\"name\":\"other\"}}\n{bad}\n{{\"args\":{{}}}}").unwrap();
        let output = run(&server, &["enqueue", "many", "--from", file.path().to_str().unwrap()]);
        let message = stderr(&output);
        assert_eq!(exit_code(&output), 2, "{bad}: {message}");
        assert!(
            message.contains("2 enqueued") && message.contains("line 4") && message.contains(reason),
            "{message}"
        );
        assert_eq!(server.run(&["LLEN", "work:jobs:many"]).int(), 1);
        assert_eq!(server.run(&["LLEN", "work:jobs:other"]).int(), 1);
    }
}

#[test]
fn exit_codes_tell_usage_from_a_store_that_is_away() {
    let mut server = RedisServer::start();
    assert_eq!(exit_code(&run(&server, &["enqueue"])), 2);
    assert_eq!(exit_code(&run(&server, &["enqueue", "a", "--args", "{"])), 2);
    assert_eq!(exit_code(&run(&server, &["enqueue", "a:lock"])), 2);
    assert_eq!(exit_code(&run(&server, &["enqueue", "x", "--from", "/nonexistent"])), 2);
    assert_eq!(exit_code(&run(&server, &["--store", "mongodb://user:secret@x", "enqueue", "a"])), 2);
    server.kill();
    let away = run(&server, &["enqueue", "a"]);
    assert_eq!(exit_code(&away), 3);
    assert!(stderr(&away).contains("can't be reached"), "{}", stderr(&away));
    assert!(stderr(&away).contains("--store"), "{}", stderr(&away));
}
