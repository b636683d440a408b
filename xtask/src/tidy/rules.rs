//! The rules, one function each.

use super::SourceFile;

/// A file longer than this is not comfortable to read.
const MOST_LINES: usize = 420;
pub(crate) fn check(file: &SourceFile, findings: &mut Vec<String>) {
    let mut rules: Vec<fn(&SourceFile, &mut Vec<String>)> = vec![no_paths_of_one_machine, nothing_unfinished];
    if file.path.ends_with(".rs") {
        rules.extend(
            [length, begins_with_docs, time, tasks, drivers, no_sleep_in_tests] as [fn(&_, &mut _); 6]
        );
    }
    if file.path.ends_with(".lua") {
        rules.push(script_header);
    }
    for rule in rules {
        rule(file, findings);
    }
}

/// Reports each line that `is_bad`, with its number.
fn lines(file: &SourceFile, findings: &mut Vec<String>, advice: &str, is_bad: impl Fn(&str) -> bool) {
    for (index, line) in file.text.lines().enumerate() {
        if is_bad(line) {
            findings.push(format!("{}:{}: {advice}", file.path, index + 1));
        }
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn length(file: &SourceFile, findings: &mut Vec<String>) {
    let count = file.text.lines().count();
    if count > MOST_LINES {
        findings.push(format!("{}:{count}: longer than {MOST_LINES} lines; divide it", file.path));
    }
}

fn begins_with_docs(file: &SourceFile, findings: &mut Vec<String>) {
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !first.starts_with("//!") && !first.starts_with("#![doc = include_str!") {
        findings.push(format!("{}:1: begin with `//!`: what is in this file, and why", file.path));
    }
}

fn script_header(file: &SourceFile, findings: &mut Vec<String>) {
    let name = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".lua");
    for (wanted, what) in [
        (format!("-- {name}: "), "purpose"),
        ("-- KEYS ".to_owned(), "keys"),
        ("-- ARGV ".to_owned(), "arguments"),
        ("-- Returns ".to_owned(), "reply"),
    ] {
        if !file.text.lines().any(|line| line.starts_with(&wanted)) {
            findings.push(format!("{}:1: the header does not tell the {what}: `{wanted}…`", file.path));
        }
    }
}

/// Invariant 9: only the clock module reads time; benchmarks measure the real one.
fn time(file: &SourceFile, findings: &mut Vec<String>) {
    let benchmark = file.path.contains("/benches/") || file.path.contains("/bench/");
    let library = file.path.starts_with("crates/") && file.path.contains("/src/") && !benchmark;
    if !library || file.path.starts_with("crates/test-servers/") || file.path.ends_with("core/src/clock.rs") {
        return;
    }
    let reads = ["SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now"];
    lines(file, findings, "only core's clock module reads time; call that", |line| {
        !is_comment(line) && reads.iter().any(|read| line.contains(read))
    });
}

/// Invariant 9: only the runtime and the services spawn tasks.
fn tasks(file: &SourceFile, findings: &mut Vec<String>) {
    let may = ["pool/", "service/", "conformance/"];
    let Some(path) = file.path.strip_prefix("crates/shiftwork-core/src/") else { return };
    if may.iter().any(|folder| path.starts_with(folder)) {
        return;
    }
    lines(file, findings, "only pool/ and service/ spawn tasks and threads", |line| {
        !is_comment(line) && (line.contains("tokio::spawn") || line.contains("thread::spawn"))
    });
}

/// No driver in core.
fn drivers(file: &SourceFile, findings: &mut Vec<String>) {
    if !file.path.starts_with("crates/shiftwork-core/src/") {
        return;
    }
    lines(file, findings, "core knows no database; this belongs in a store", |line| {
        !is_comment(line) && (line.contains("redis::") || line.contains("rusqlite"))
    });
}

/// A sleep in a test is a flake that waits, unless time is paused, or there is nothing else to wait on.
fn no_sleep_in_tests(file: &SourceFile, findings: &mut Vec<String>) {
    if !file.path.contains("/tests/")
        || file.text.contains("start_paused")
        || file.path.contains("/tests/pool/")
    {
        return;
    }
    let mut before = "";
    for (index, line) in file.text.lines().enumerate() {
        let sleeps = line.contains("thread::sleep(") || line.contains("time::sleep(");
        if sleeps && !before.contains("// sleep: ") && !line.contains("// sleep: ") {
            let number = index + 1;
            findings.push(format!(
                "{}:{number}: wait for a signal instead, or say why not: `// sleep: …`",
                file.path
            ));
        }
        before = line;
    }
}

fn nothing_unfinished(file: &SourceFile, findings: &mut Vec<String>) {
    let words = ["TO", "FIX"].map(|word| format!("{word}{}", if word == "TO" { "DO" } else { "ME" }));
    let calls = ["todo", "unimplemented"].map(|call| format!("{call}!("));
    let ignore = format!("#[{}", "ignore");
    lines(file, findings, "finish it, or leave it out and say so", |line| {
        // What other processes of a test do is no test.
        let ignored = line.contains(&ignore) && !line.contains("= \"not a test");
        words.iter().chain(&calls).any(|word| line.contains(word.as_str())) || ignored
    });
}

fn no_paths_of_one_machine(file: &SourceFile, findings: &mut Vec<String>) {
    let folders = ["work", "tmp", "root"].map(|folder| format!("/{folder}/"));
    lines(file, findings, "a path of one machine; use a temporary folder or a relative path", |line| {
        folders.iter().any(|folder| {
            line.match_indices(folder.as_str()).any(|(at, _)| {
                // Only where a path begins.
                !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-/}".contains(before))
            })
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&SourceFile { path: path.to_owned(), text: text.to_owned() }, &mut findings);
        findings
    }

    #[test]
    fn each_rule_finds_what_it_is_for() {
        let core = "crates/shiftwork-core/src/job/x.rs";
        let unfinished = format!("//! Docs.\nfn f() {{ {}!() }}", "todo");
        let elsewhere = format!("//! Docs.\nconst P: &str = \"/{}/x\";", "tmp");
        let long = format!("//! Docs.\n{}", "\n".repeat(MOST_LINES));
        for (path, text, wanted) in [
            (core, "fn f() {}", "x.rs:1: begin with"),
            (core, "//! Docs.\nfn f() { Instant::now(); }", "x.rs:2: only core's clock"),
            (core, "//! Docs.\nfn f() { tokio::spawn(g()); }", "x.rs:2: only pool/"),
            (core, "//! Docs.\nuse redis::Cmd;", "x.rs:2: core knows no database"),
            (core, &unfinished, "x.rs:2: finish it"),
            (core, &elsewhere, "x.rs:2: a path of one machine"),
            (core, &long, "divide it"),
            ("a/tests/t.rs", "//! Docs.\nstd::thread::sleep(x);", "t.rs:2: wait for a signal"),
            (
                "a/x.lua",
                "-- x: purpose\n-- KEYS none\n-- ARGV none",
                "x.lua:1: the header does not tell the reply",
            ),
        ] {
            let found = findings(path, text);
            assert!(found.len() == 1 && found[0].contains(wanted), "{wanted}: {found:?}");
        }
    }

    #[test]
    fn what_is_in_order_is_not_found() {
        for (path, text) in [
            ("crates/shiftwork-core/src/clock.rs", "//! Docs.\nfn f() { Instant::now(); }"),
            ("crates/shiftwork-core/src/pool/x.rs", "//! Docs.\nfn f() { tokio::spawn(g()); }"),
            ("a/tests/t.rs", "//! Docs.\n// sleep: nothing to wait on\nstd::thread::sleep(x);"),
            ("a/x.lua", "-- x: purpose\n-- KEYS none\n-- ARGV none\n-- Returns 1"),
            ("a/x.rs", "#![doc = include_str!(\"x.md\")]\n"),
        ] {
            assert_eq!(findings(path, text), Vec::<String>::new(), "{path}");
        }
    }
}
