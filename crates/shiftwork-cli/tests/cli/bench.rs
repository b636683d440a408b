//! `shiftwork bench`: what it measures is not judged here, but that it measures, and leaves nothing behind.

use super::*;

/// The rows of `--json`, one object a line.
fn rows(output: &Output) -> Vec<serde_json::Map<String, serde_json::Value>> {
    assert_eq!(exit_code(output), 0, "{}", stderr(output));
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_drain_is_measured_beside_the_go_way_and_leaves_no_key() {
    let server = RedisServer::start();
    server.run(&["SET", "mine", "untouched"]);
    let arguments =
        ["bench", "--jobs", "500", "--types", "3", "--concurrency", "2,10", "--runs", "1", "--json"];
    let rows = rows(&run(&server, &arguments));
    let slots: Vec<_> = rows.iter().map(|row| row["slots"].as_u64().unwrap()).collect();
    assert_eq!(slots, [2, 10]);
    for row in &rows {
        let (ours, reference) = (&row["jobs_per_second"], &row["the_Go_way_jobs_per_second"]);
        let ratio = ours.as_f64().unwrap() / reference.as_f64().unwrap();
        assert!((row["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9, "{row:?}");
    }
    assert_eq!(server.dump("").into_keys().collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn a_table_is_for_people_and_says_what_was_measured() {
    let server = RedisServer::start();
    let output =
        run(&server, &["bench", "--jobs", "200", "--concurrency", "5", "--runs", "1", "--no-reference"]);
    assert_eq!(exit_code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("slots") && lines[0].ends_with("   overhead of a slot, µs a job"), "{text}");
    assert_eq!(lines[1].chars().count(), lines[0].chars().count(), "{text}");
    assert!(text.contains("200 jobs of 10 types with 20 bytes of args"), "{text}");
}

#[test]
fn latency_and_idle_cost_are_measured() {
    let server = RedisServer::start();
    let latency = rows(&run(&server, &["bench", "--latency", "--jobs", "20", "--json"]));
    let micros = |name: &str| latency[0][name].as_f64().unwrap();
    assert!(0.0 < micros("p50_us") && micros("p50_us") <= micros("p99_us"), "{latency:?}");
    let idle = rows(&run(&server, &["bench", "--idle", "--seconds", "1", "--json"]));
    assert!(idle[0]["requests_per_second"].as_f64().unwrap() >= 0.0, "{idle:?}");
    assert!(idle[0]["own_memory_MiB"].as_f64().unwrap() > 1.0, "{idle:?}");
}

#[test]
fn the_embedded_file_that_is_named_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let store = format!("sqlite:{}", file.display());
    let bench = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
        command.args(["--store", &store, "bench", "--jobs", "100", "--runs", "1", "--json"]).args(more);
        command.output().unwrap()
    };
    assert_eq!(rows(&bench(&[])).len(), 3);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    let wrong = bench(&["--latency", "--concurrency", "1,2"]);
    assert_eq!(exit_code(&wrong), 2);
    assert!(stderr(&wrong).contains("name one --concurrency"), "{}", stderr(&wrong));
}
