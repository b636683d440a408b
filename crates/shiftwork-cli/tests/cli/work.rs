//! `shiftwork work`.

use std::process::Stdio;
use std::time::Duration;

use test_servers::RedisServer;

use super::*;

#[test]
fn a_command_gets_args_and_environment_and_its_output_is_passed_on() {
    let server = RedisServer::start();
    let id = stdout(&run(&server, &["enqueue", "show", "--args", r#"{"b":[1,2],"a":"x"}"#]));
    run(&server, &["enqueue", "show"]);
    let command = "show=cat; echo $SHIFTWORK_JOB_NAME $SHIFTWORK_JOB_ID $SHIFTWORK_JOB_ATTEMPT/$SHIFTWORK_JOB_MAX_ATTEMPTS";
    let output =
        run(&server, &["work", "--exec", command, "--drain", "--concurrency", "1", "--max-fails", "7"]);
    assert_eq!(exit_code(&output), 0, "{}", stderr(&output));
    let lines: Vec<_> = stdout(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], r#"{"a":"x","b":[1,2]}"#);
    assert_eq!(lines[1], format!("show {} 1/7", id.trim()));
    assert_eq!(lines[2], "null");
    assert_eq!(server.run(&["GET", "work:jobs:show:lock"]).int(), 0);
}

#[test]
fn a_failing_command_is_a_failed_job_with_the_end_of_its_errors() {
    let server = RedisServer::start();
    run(&server, &["enqueue", "bad"]);
    let command = "bad=yes noise | head -c 100000 >&2; echo the reason >&2; exit 7";
    let output = run(&server, &["work", "--exec", command, "--drain", "--max-fails", "1"]);
    assert_eq!(exit_code(&output), 0, "{}", stderr(&output));
    let dead = server.run(&["ZRANGE", "work:dead", "0", "-1"]);
    let job = dead.list()[0].text().to_owned();
    assert!(job.contains(r#""err":"exit status: 7: "#) && job.contains(r#"the reason""#), "{job}");
    assert!(job.len() < 3000, "only the end of it");
    assert!(stderr(&output).contains("the reason"), "it is passed on, too");
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let server = RedisServer::start();
    run(&server, &["enqueue", "slow"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pid");
    // A grandchild that ignores SIGTERM: only the end of the whole group gets it.
    let command = format!("slow=sh -c 'trap \"\" TERM; echo $$ > {}; sleep 600' & wait", path.display());
    let output =
        run(&server, &["work", "--exec", &command, "--drain", "--timeout", "1s", "--max-fails", "1"]);
    assert_eq!(exit_code(&output), 0, "{}", stderr(&output));
    let dead = server.run(&["ZRANGE", "work:dead", "0", "-1"]);
    assert!(dead.list()[0].text().contains("timed out after 1s"), "{dead:?}");
    let grandchild = std::fs::read_to_string(&path).unwrap();
    let alive = || std::path::Path::new(&format!("/proc/{}/task", grandchild.trim())).exists();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while alive() && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(!alive(), "the grandchild is gone");
}

#[test]
fn a_worker_that_is_stopped_gives_back_what_does_not_end() {
    let server = RedisServer::start();
    run(&server, &["enqueue", "endless"]);
    let worker = shiftwork(&server)
        .args(["work", "--exec", "endless=echo started; sleep 600", "--shutdown-timeout", "1s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut worker = Running(worker.unwrap());
    let mut output = std::io::BufReader::new(worker.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert_eq!(line, "started\n");
    assert_eq!(server.run(&["GET", "work:jobs:endless:lock"]).int(), 1);
    signal("TERM", worker.id());
    assert!(worker.wait().unwrap().success());
    assert_eq!(
        server.run(&["LLEN", "work:jobs:endless"]).int(),
        1,
        "or it failed, if SIGTERM ended the command"
    );
    assert_eq!(server.run(&["GET", "work:jobs:endless:lock"]).int(), 0);
    assert_eq!(server.run(&["SCARD", "work:worker_pools"]).int(), 0);
}

#[test]
fn wrong_usage_is_named() {
    let server = RedisServer::start();
    for (arguments, reason) in [
        (&["work", "--exec", "name"][..], "--exec NAME='COMMAND'"),
        (&["work", "--exec", "a=x", "--exec", "a=y"], "registered twice"),
        (&["work", "--exec", "a,b=x"], "comma"),
        (&["work", "--exec", "a=x", "--concurrency", "0"], "concurrency 0"),
        (&["work", "--exec", "a=x", "--timeout", "soon"], "not a delay"),
    ] {
        let output = run(&server, arguments);
        assert_eq!(exit_code(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

/// Sends a signal to a process that a test has started.
pub(crate) fn signal(name: &str, pid: u32) {
    let status =
        std::process::Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(status.success());
}
