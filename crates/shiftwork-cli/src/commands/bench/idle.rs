//! What a pool costs that has nothing to do: the server, and the machine it runs on.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use super::report::{Figure, Report};
use super::scratch::{Place, Scratch};
use super::{Bench, drain, process};

/// Pools have begun, connections are made and every service has had its first round.
const WARM_UP: Duration = Duration::from_secs(7);

pub(super) async fn measure(bench: &Bench, scratch: &Scratch, report: &mut Report) -> anyhow::Result<()> {
    let slots = bench.one_concurrency(100)?;
    let mut pools = Vec::new();
    for _ in 0..bench.pools.get() {
        pools.push(bench.start_pool(scratch.client().await?, slots, || std::future::ready(())).await?);
    }
    let mut server = Server::of(scratch).await?;
    tokio::time::sleep(WARM_UP).await;
    let (before, own, begun) = (server.cost().await?, process::cpu_time(), Instant::now());
    let bar = drain::bar(usize::try_from(bench.seconds)?, "idle");
    for _ in 0..bench.seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let seconds = begun.elapsed().as_secs_f64();
    let own = (process::cpu_time() - own).as_secs_f64() / seconds;
    let after = server.cost().await?;
    let per_second = |figure: fn(&ServerCost) -> f64, decimals| match (&before, &after) {
        (Some(before), Some(after)) => Figure::Number((figure(after) - figure(before)) / seconds, decimals),
        _ => Figure::None,
    };
    report.row(vec![
        ("pools", Figure::Count(bench.pools.get())),
        ("slots", Figure::Count(slots)),
        ("requests/s", per_second(|cost| cost.requests, 2)),
        ("server, µs/s", per_second(|cost| cost.micros, 0)),
        ("own CPU, %", Figure::Number(own * 100.0, 3)),
        ("own memory, MiB", Figure::Number(process::resident_mebibytes()?, 1)),
    ]);
    report.note(format!(
        "{} types, over {seconds:.0} s. Requests are those that the server has read from sockets, a pipeline being one; its \
         time is what it counts for commands.",
        bench.types
    ));
    for pool in pools {
        pool.stop().await;
    }
    Ok(())
}

/// What the server has done so far.
struct ServerCost {
    requests: f64,
    micros: f64,
}

/// Asks the server what it has done; on one connection, so that asking is counted alike each time.
struct Server {
    connection: Option<redis::aio::MultiplexedConnection>,
    asked: bool,
}

impl Server {
    async fn of(scratch: &Scratch) -> anyhow::Result<Self> {
        let connection = match &scratch.place {
            Place::Redis(client) => Some(client.get_multiplexed_async_connection().await?),
            _ => None,
        };
        Ok(Self { connection, asked: false })
    }

    /// Nothing where there is no server.
    async fn cost(&mut self) -> anyhow::Result<Option<ServerCost>> {
        let Some(connection) = &mut self.connection else { return Ok(None) };
        let stats: String = redis::cmd("INFO").arg("all").query_async(connection).await?;
        let mut cost = ServerCost { requests: 0.0, micros: 0.0 };
        for line in stats.lines() {
            if let Some(count) = line.strip_prefix("total_reads_processed:") {
                // Each asking is one, too: the second asking sees itself and not the first.
                cost.requests = count.trim().parse::<f64>()? - if self.asked { 1.0 } else { 0.0 };
            }
            let Some((command, figures)) =
                line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':'))
            else {
                continue;
            };
            // What pools call by themselves; other commands are counted within the scripts that call them.
            if matches!(command, "evalsha" | "eval" | "llen" | "exists" | "get" | "zcount" | "set") {
                let figure = figures.split(',').find_map(|figure| figure.strip_prefix("usec="));
                cost.micros += figure.and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0);
            }
        }
        self.asked = true;
        Ok(Some(cost))
    }
}
