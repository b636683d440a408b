//! docs/benchmarks.md: the tables, and what has to be said with them.

use std::fmt::Write;

use xshell::{Shell, cmd};

use super::Bench;
use super::sections::Section;

/// One table of the document.
#[derive(Debug)]
pub(super) struct Table {
    /// How to repeat it by hand.
    command: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(command: String, heads: &[&str]) -> Self {
        Self { command, heads: heads.iter().map(|head| (*head).to_owned()).collect(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        println!("  {}", cells.join("  "));
        self.rows.push(cells);
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = format!("|{}\n", "---:|".repeat(self.heads.len()));
        line(&self.heads) + &rule + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }
}

pub(super) fn document(shell: &Shell, bench: &Bench, tables: &[(&Section, Table)]) -> anyhow::Result<String> {
    let server = cmd!(shell, "redis-server --version").quiet().read()?;
    let server = server.split_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap_or("?").to_owned();
    let mut text = format!(
        "# Benchmarks\n\n\
         Written by `cargo xtask bench`, which builds everything, starts a server for each measurement and removes it. Figures of one \
         machine at one time: look at the ratios, and repeat them on yours. Each is the median of {} runs; latencies and idle costs are of one \
         long run.\n\n\
         Machine: {}. Redis {server} without persistence on the same machine, over loopback. `shiftwork bench` runs its jobs on half of the \
         cores (`--threads`), and so does the reference loop; the store has the others.\n",
        bench.runs,
        machine(shell)
    );
    for (section, table) in tables {
        write!(
            text,
            "\n## {}\n\n{}\n\n`{}`\n\n{}",
            section.title,
            section.text,
            table.command,
            table.markdown()
        )?;
    }
    Ok(text)
}

/// What the operating system says of it; nothing that it does not say.
fn machine(shell: &Shell) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = shell.read_file("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown CPU", |(_, model)| model.trim());
    let memory = shell.read_file("/proc/meminfo").unwrap_or_default();
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    let memory = memory.and_then(|kibibytes| kibibytes.trim().parse::<u64>().ok()).unwrap_or(0);
    format!("{cores} cores, {model}, {} GiB, {}", memory >> 20, std::env::consts::OS)
}

/// A whole number, thousands apart.
pub(super) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

pub(super) fn decimals(number: f64, decimals: usize) -> String {
    format!("{number:.decimals$}")
}

pub(super) fn ratio(one: f64, other: f64) -> String {
    format!("{:.2}", one / other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_with_readable_numbers() {
        let mut table = Table::new("command".to_owned(), &["slots", "jobs/s", "ratio"]);
        table.row(vec![count(20.0), count(1_234_567.4), ratio(3.0, 2.0)]);
        assert_eq!(
            table.markdown(),
            "| slots | jobs/s | ratio |\n|---:|---:|---:|\n| 20 | 1,234,567 | 1.50 |\n"
        );
    }
}
