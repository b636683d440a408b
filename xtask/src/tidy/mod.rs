//! `cargo xtask tidy`: what no other tool checks.
//!
//! The architecture's invariants are stated as absences, and this is the program that finds what should be absent.

mod rules;

use std::path::PathBuf;

use anyhow::{bail, ensure};
use xshell::{Shell, cmd};

/// The engine must stay cheap to build.
const MOST_DEPENDENCIES_OF_CORE: usize = 60;

/// A tracked file.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let mut findings = Vec::new();
    let files = files(shell)?;
    ensure!(files.len() > 50, "git lists {} files; run this in a checkout", files.len());
    for file in &files {
        rules::check(file, &mut findings);
    }
    let tree =
        cmd!(shell, "cargo tree --package shiftwork-core --edges normal --prefix none").quiet().read()?;
    let mut crates: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    crates.sort_unstable();
    crates.dedup();
    if crates.len() > MOST_DEPENDENCIES_OF_CORE {
        let count = crates.len();
        findings.push(format!(
            "crates/shiftwork-core/Cargo.toml: {count} crates are built for core; the limit is {MOST_DEPENDENCIES_OF_CORE}: \
             leave one out"
        ));
    }
    if findings.is_empty() {
        println!("tidy: {} files are in order", files.len());
        return Ok(());
    }
    for finding in &findings {
        eprintln!("{finding}");
    }
    bail!("tidy has {} findings", findings.len())
}

/// All files that git tracks and that are text.
fn files(shell: &Shell) -> anyhow::Result<Vec<SourceFile>> {
    let list = cmd!(shell, "git ls-files --cached --others --exclude-standard").quiet().read()?;
    let paths = list.lines().filter(|path| {
        let kinds = [".rs", ".lua", ".sql", ".md", ".toml", ".sh", ".yml"];
        kinds.iter().any(|kind| path.ends_with(kind)) || *path == ".ci/run"
    });
    let read = |path: &str| {
        let text = std::fs::read_to_string(shell.current_dir().join(PathBuf::from(path))).ok()?;
        Some(SourceFile { path: path.to_owned(), text })
    };
    Ok(paths.filter_map(read).collect())
}
