//! What is measured: one function a table.

use std::time::Duration;

use test_servers::FaultProxy;

use super::document::{Table, count, decimals, ratio};
use super::tools::{Tools, only, server};

/// A part of the document.
#[derive(Debug)]
pub(super) struct Section {
    /// For `--only`.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What was done and what to look at.
    pub(super) text: &'static str,
    pub(super) measure: fn(&Tools<'_>) -> anyhow::Result<Table>,
}

pub(super) const ALL: [Section; 9] = [
    Section {
        name: "drain",
        title: "Draining queues",
        text: "Jobs that do nothing, of ten types, everything on that a pool has by default. The Go way is a loop that works as the Go \
               library does: a connection a worker, a script to fetch each job and one to finish it. Ratios are Shiftwork's rate \
               over the other's.",
        measure: drain,
    },
    Section {
        name: "types",
        title: "Job types",
        text: "100 slots; the same jobs, spread over more and more types and so queues.",
        measure: types,
    },
    Section {
        name: "backlog",
        title: "Backlog",
        text: "100 slots; so many more jobs lie in the queues while 100,000 are done. A flat line is right.",
        measure: backlog,
    },
    Section { name: "payload", title: "Payload", text: "100 slots; args of growing size.", measure: payload },
    Section {
        name: "pools",
        title: "Pools",
        text: "Pools of 20 slots that share the work, in one process, each with connections of its own.",
        measure: pools,
    },
    Section {
        name: "work",
        title: "Jobs that take time",
        text: "100 slots; each job sleeps. Overhead is what a slot spends on a job besides its handler: from one job's end to the \
               next one's start, waiting for the store included.",
        measure: work,
    },
    Section {
        name: "latency",
        title: "Latency",
        text: "From before another client sends a plain LPUSH to the start of the handler in an idle pool, one job at a time after \
               a pause of 5 to 15 ms. The peers enqueue with their own clients, on another connection.",
        measure: latency,
    },
    Section {
        name: "idle",
        title: "Doing nothing",
        text: "Pools with ten types and no jobs. A request is what the server reads from a socket at once; its time is what it counts \
               for commands. Memory and CPU are those of the process with the pools.",
        measure: idle,
    },
    Section {
        name: "sqlite",
        title: "The embedded store",
        text: "The same drain in a file, at the default durability: what enqueues is synced to the disk, what finishes is not. \
               `cargo bench -p shiftwork-sqlite` has more: durabilities, bulk enqueueing, several processes, other embedded job systems.",
        measure: sqlite,
    },
];

const RATE: &str = "jobs_per_second";

fn drain(tools: &Tools<'_>) -> anyhow::Result<Table> {
    let mut heads = vec!["slots", "Shiftwork, jobs/s", "the Go way, jobs/s", "ratio"];
    for peer in &tools.peers {
        heads.extend([peer.name, "ratio"]);
    }
    let jobs = tools.jobs(300_000);
    let command = format!("shiftwork bench --jobs {jobs}");
    let mut table = Table::new(command, &heads);
    for slots in [20, 100, 500] {
        let row = tools.row(&format!("--jobs {jobs} --concurrency {slots}"))?;
        let (ours, reference) = (row.get(RATE)?, row.get("the_Go_way_jobs_per_second")?);
        let mut cells = vec![slots.to_string(), count(ours), count(reference), ratio(ours, reference)];
        for peer in &tools.peers {
            let jobs = tools.jobs(60_000);
            let arguments = format!("--mode drain --jobs {jobs} --concurrency {slots}");
            let theirs = tools.peer(peer, &arguments, &[RATE])?[0];
            cells.extend([count(theirs), ratio(ours, theirs)]);
        }
        table.row(cells);
    }
    Ok(table)
}

/// Rates in rows, each against the first one.
fn rates(
    tools: &Tools<'_>,
    head: &'static str,
    command: &str,
    rows: &[(&str, String)],
) -> anyhow::Result<Table> {
    let mut table = Table::new(format!("shiftwork bench {command}"), &[head, "jobs/s", "ratio"]);
    let mut first = None;
    for (label, arguments) in rows {
        let rate = tools.row(&format!("--no-reference {arguments}"))?.get(RATE)?;
        let first = *first.get_or_insert(rate);
        table.row(vec![(*label).to_owned(), count(rate), ratio(rate, first)]);
    }
    Ok(table)
}

fn types(tools: &Tools<'_>) -> anyhow::Result<Table> {
    let jobs = tools.jobs(300_000);
    let row = |types| format!("--concurrency 100 --jobs {jobs} --types {types}");
    let rows = [("10", row(10)), ("1", row(1)), ("100", row(100)), ("1,000", row(1000))];
    rates(tools, "types", "--no-reference --concurrency 100 --types N", &rows)
}

fn backlog(tools: &Tools<'_>) -> anyhow::Result<Table> {
    let jobs = tools.jobs(100_000);
    let row = |backlog| {
        // The jobs of the largest one take a minute to enqueue.
        let runs = if backlog > 1_000_000 { "--runs 1" } else { "" };
        format!("--concurrency 100 --jobs {jobs} --backlog {} {runs}", tools.jobs(backlog))
    };
    let rows = [
        ("1,000", row(1000)),
        ("100,000", row(100_000)),
        ("1,000,000", row(1_000_000)),
        ("10,000,000", row(10_000_000)),
    ];
    rates(tools, "more jobs queued", "--no-reference --concurrency 100 --jobs 100000 --backlog N", &rows)
}

fn payload(tools: &Tools<'_>) -> anyhow::Result<Table> {
    let row = |bytes, jobs| format!("--concurrency 100 --jobs {} --payload {bytes}", tools.jobs(jobs));
    let rows = [
        ("100", row(100, 200_000)),
        ("1,024", row(1024, 200_000)),
        ("10,240", row(10_240, 50_000)),
        ("102,400", row(102_400, 5_000)),
    ];
    rates(tools, "bytes", "--no-reference --concurrency 100 --payload BYTES", &rows)
}

fn pools(tools: &Tools<'_>) -> anyhow::Result<Table> {
    let jobs = tools.jobs(300_000);
    let row = |pools| format!("--concurrency 20 --jobs {jobs} --pools {pools}");
    let rows = [("1", row(1)), ("10", row(10)), ("50", row(50))];
    rates(tools, "pools", "--no-reference --concurrency 20 --pools N", &rows)
}

fn work(tools: &Tools<'_>) -> anyhow::Result<Table> {
    let command = "shiftwork bench --concurrency 100 --work MS".to_owned();
    let mut table = Table::new(command, &["a job takes", "jobs/s", "of what is possible", "overhead, µs"]);
    for (millis, jobs) in [(1_u32, 200_000), (50, 20_000)] {
        let jobs = tools.jobs(jobs);
        let row = tools.row(&format!("--concurrency 100 --work {millis} --jobs {jobs}"))?;
        let (rate, overhead) = (row.get(RATE)?, row.get("overhead_of_a_slot_us_a_job")?);
        // A slot could start the next job at once; the time that jobs really take is the timer's.
        let share = 1.0 - rate * overhead / 100e6;
        let share = format!("{:.0} %", share * 100.0);
        table.row(vec![format!("{millis} ms"), count(rate), share, count(overhead)]);
    }
    Ok(table)
}

fn latency(tools: &Tools<'_>) -> anyhow::Result<Table> {
    const TIMES: [&str; 3] = ["p50_us", "p99_us", "highest_us"];
    let command = "shiftwork bench --latency [--pools 50]".to_owned();
    let mut table = Table::new(command, &["", "p50, µs", "ratio", "p99, µs", "ratio", "highest, µs"]);
    let jobs = tools.jobs(1000);
    let server = server();
    let proxy = FaultProxy::to(server.port());
    proxy.delay(Duration::from_millis(1));
    let ours = format!("--latency --jobs {jobs}");
    let slow = only(tools.on(&proxy.url(), &ours)?)?;
    let mut rows = Vec::new();
    for (label, row) in [
        ("one idle pool", tools.row(&ours)?),
        ("50 idle pools", tools.row(&format!("{ours} --pools 50 --concurrency 20"))?),
        ("one, 1 ms away", slow),
    ] {
        let times = TIMES.iter().map(|time| row.get(time)).collect::<anyhow::Result<Vec<_>>>()?;
        rows.push((label, times));
    }
    for peer in &tools.peers {
        let arguments = format!("--mode latency --jobs {jobs} --concurrency 100");
        rows.push((peer.name, tools.peer(peer, &arguments, &TIMES)?));
    }
    let first = rows[0].1.clone();
    for (label, times) in rows {
        let mut cells = vec![label.to_owned()];
        for (time, first) in times.iter().zip(&first).take(2) {
            cells.extend([count(*time), ratio(*time, *first)]);
        }
        cells.push(count(times[2]));
        table.row(cells);
    }
    Ok(table)
}

fn idle(tools: &Tools<'_>) -> anyhow::Result<Table> {
    let heads = ["pools", "slots of each", "requests/s", "server, µs/s", "CPU, % of a core", "memory, MiB"];
    let mut table = Table::new("shiftwork bench --idle --pools N --concurrency SLOTS".to_owned(), &heads);
    let seconds = tools.jobs(60);
    for (pools, slots) in [(1, 100), (100, 100), (1, 1000), (1, 10_000)] {
        let row = tools.row(&format!("--idle --seconds {seconds} --pools {pools} --concurrency {slots}"))?;
        table.row(vec![
            pools.to_string(),
            count(f64::from(slots)),
            decimals(row.get("requests_per_second")?, 2),
            count(row.get("server_us_per_second")?),
            decimals(row.get("own_CPU_%")?, 3),
            decimals(row.get("own_memory_MiB")?, 1),
        ]);
    }
    Ok(table)
}

fn sqlite(tools: &Tools<'_>) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "shiftwork bench --store sqlite:PATH --concurrency 1,20,100,500".to_owned(),
        &["slots", "jobs/s", "ratio"],
    );
    let folder = tools.folder()?;
    let store = format!("sqlite:{}", folder.path().join("jobs.db").display());
    let jobs = tools.jobs(200_000);
    let mut first = None;
    for slots in [1, 20, 100, 500] {
        let jobs = if slots == 1 { tools.jobs(20_000) } else { jobs.clone() };
        let row = only(tools.on(&store, &format!("--concurrency {slots} --jobs {jobs}"))?)?;
        let rate = row.get(RATE)?;
        let first = *first.get_or_insert(rate);
        table.row(vec![slots.to_string(), count(rate), ratio(rate, first)]);
    }
    Ok(table)
}
