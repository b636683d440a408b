//! `cargo xtask bench`: measures everything that docs/benchmarks.md tells, and writes it.
//!
//! What is measured is in [`sections`], one function each; [`tools`] runs `shiftwork bench` and the peers, and [`document`]
//! puts the tables together.

mod document;
mod sections;
mod tools;

use std::num::NonZeroUsize;

use anyhow::ensure;
use clap::Args;
use xshell::Shell;

use self::tools::Tools;
use crate::servers;

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// How often to measure; the median counts
    #[arg(long, default_value_t = NonZeroUsize::MIN.saturating_add(2), value_name = "N")]
    runs: NonZeroUsize,

    /// A tenth of the jobs: to see that everything works, not to learn from
    #[arg(long)]
    quick: bool,

    /// Measure only these, and print them instead of writing docs/benchmarks.md
    #[arg(long, value_delimiter = ',', value_name = "SECTION")]
    only: Vec<String>,

    /// Leave out rusty-sidekiq and BullMQ
    #[arg(long)]
    no_peers: bool,
}

pub(crate) fn run(shell: &Shell, bench: &Bench) -> anyhow::Result<()> {
    let names: Vec<&str> = sections::ALL.iter().map(|section| section.name).collect();
    for name in &bench.only {
        ensure!(
            names.contains(&name.as_str()),
            "there is no section {name:?}; there are {}",
            names.join(", ")
        );
    }
    servers::install(shell)?;
    let tools = Tools::build(shell, bench)?;
    let mut tables = Vec::new();
    for section in &sections::ALL {
        if bench.only.is_empty() || bench.only.iter().any(|name| name == section.name) {
            println!("measuring {}", section.name);
            tables.push((section, (section.measure)(&tools)?));
        }
    }
    let document = document::document(shell, bench, &tables)?;
    if bench.only.is_empty() && !bench.quick {
        shell.write_file("docs/benchmarks.md", document)?;
        println!("written to docs/benchmarks.md");
    } else {
        println!("{document}");
    }
    Ok(())
}
