//! The main job on real input: the checksum of every file of a source tree, by three workers, one of which is stopped half-way.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use test_servers::RedisServer;

use super::work::signal;
use super::*;

/// Files to take.
const FILES: usize = 3000;

/// Source files of the packages that this workspace depends on.
fn source_files() -> Vec<PathBuf> {
    // Packages of other platforms may not be on this machine.
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let platform = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--filter-platform",
            platform,
            "--manifest-path",
        ])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut files = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        if !package["source"].is_null() {
            collect(Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap(), &mut files);
        }
        if files.len() >= FILES {
            files.truncate(FILES);
            return files;
        }
    }
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            collect(&path, files);
        } else if kind.is_file() && path.to_str().is_some_and(|path| !path.contains(['"', '\\', '\n'])) {
            files.push(path);
        }
    }
}

/// Path to checksum, from the output of `sha256sum`.
fn sums(output: &str) -> BTreeMap<String, Vec<String>> {
    let mut sums: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in output.lines() {
        let (sum, path) = line.split_once("  ").unwrap_or_else(|| panic!("{line:?}"));
        sums.entry(path.to_owned()).or_default().push(sum.to_owned());
    }
    sums
}

#[test]
fn every_file_is_summed_once_though_a_worker_is_stopped_half_way() {
    let files = source_files();
    assert!(files.len() >= 2000, "only {} files", files.len());
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let jobs = folder.path().join("jobs.jsonl");
    let mut lines = File::create(&jobs).unwrap();
    for file in &files {
        writeln!(lines, "{}", serde_json::json!({ "args": { "path": file } })).unwrap();
    }
    drop(lines);
    let output = run(&server, &["enqueue", "checksum", "--from", jobs.to_str().unwrap()]);
    assert_eq!(stdout(&output).trim(), format!("{} enqueued", files.len()), "{}", stderr(&output));

    let results = folder.path().join("sums");
    let append = || OpenOptions::new().create(true).append(true).open(&results).unwrap();
    let worker = || -> Running {
        let command = r#"checksum=sed 's/^{"path":"//; s/"}$//' | xargs -d '\n' sha256sum"#;
        let worker = shiftwork(&server)
            .args(["work", "--exec", command, "--concurrency", "4", "--drain"])
            .env("RUST_LOG", "error")
            .stdout(append())
            .stderr(Stdio::inherit())
            .spawn();
        Running(worker.unwrap())
    };
    let mut workers = [worker(), worker(), worker()];
    let done = || std::fs::read_to_string(&results).unwrap_or_default().lines().count();
    let deadline = Instant::now() + Duration::from_secs(100);
    while done() < files.len() / 2 {
        assert!(Instant::now() < deadline, "{} of {} in 100 s", done(), files.len());
        // sleep: the workers are processes of their own, and their output is all there is to look at.
        std::thread::sleep(Duration::from_millis(20));
    }
    signal("TERM", workers[1].id());
    for worker in &mut workers {
        assert!(worker.wait().unwrap().success());
    }

    let ours = sums(&std::fs::read_to_string(&results).unwrap());
    let mut direct = Command::new("xargs");
    let list = folder.path().join("list");
    let paths: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    std::fs::write(&list, paths.join("\n")).unwrap();
    let direct = direct.args(["-d", "\\n", "sha256sum"]).stdin(File::open(&list).unwrap()).output().unwrap();
    let wanted = sums(&String::from_utf8(direct.stdout).unwrap());
    assert_eq!(wanted.len(), files.len());
    assert_eq!(ours, wanted, "each file once, with the right sum");
    for (key, value) in server.dump("work:") {
        assert!(
            matches!(key.as_str(), "work:known_jobs")
                // When somebody last looked for dead pools.
                || key.starts_with("work:reaper:")
                || (key.ends_with(":lock") && value == test_servers::Value::string("0")),
            "left behind: {key} = {value:?}"
        );
    }
}
