//! Developer commands: `cargo xtask test`, `ci`, `tidy`, `bench`.

mod bench;
mod ci;
mod servers;
mod test;
mod tidy;

use std::path::Path;

use clap::{Parser, Subcommand};
use xshell::Shell;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Developer commands for Shiftwork")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what the tests need where it is missing, then run every test, doc test and example
    Test {
        /// For the test runner; if given, only its tests run: `cargo xtask test -- -E 'test(retry)'`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Everything that has to pass: format, lints, docs, tidy, features, packages, tests
    Ci,
    /// Check what no other tool checks: file sizes, headers, and the architecture's invariants
    Tidy,
    /// Measure everything, the peers too, and write docs/benchmarks.md; benchmarks of single parts are in `cargo bench`
    Bench(bench::Bench),
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let shell = Shell::new()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    shell.change_dir(root);
    match arguments.command {
        Command::Test { arguments } => test::run(&shell, &arguments),
        Command::Ci => ci::run(&shell),
        Command::Tidy => tidy::run(&shell),
        Command::Bench(bench) => bench::run(&shell, &bench),
    }
}
