//! What a claim and its finish cost when a thousand, a hundred thousand and five million jobs are queued: it has to be the same.
//! `cargo bench -p shiftwork-sqlite --bench backlog`
#![allow(clippy::disallowed_methods, dead_code, reason = "a benchmark measures real time")]

mod support;

use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{ClaimRequest, Destination, Exchange, Finish, QueueShare, Store};
use shiftwork_sqlite::Durability;
use support::{Fresh, fill, names, runtime, timed};

const EXCHANGES: usize = 2_000;
const BATCH: usize = 20;

async fn microseconds_a_job(queued: usize) -> f64 {
    let fresh = Fresh::new();
    let store = fresh.open(Durability::None).await;
    fill(&store, queued).await;
    // What is claimed is pushed again, so that the backlog stays as it is.
    let pool = PoolId::from("pool");
    let queues = names()
        .iter()
        .map(|name| QueueShare { queue: JobName::new(name).expect("a name"), weight: 1 })
        .collect::<Vec<_>>();
    let mut finishes = Vec::new();
    let exchanges = EXCHANGES.min(queued / BATCH / 2);
    let (time, ()) = timed(async {
        for _ in 0..exchanges {
            let claim = ClaimRequest { limit: BATCH, queues: queues.clone(), draw: 0.5 };
            let request = Exchange { pool: pool.clone(), finishes: std::mem::take(&mut finishes), claim };
            let claims = store.exchange(&request).await.expect("an exchange").value.claims;
            assert_eq!(claims.len(), BATCH);
            finishes = claims.into_iter().map(|claim| Finish { claim, to: Destination::Gone }).collect();
        }
    })
    .await;
    time.as_secs_f64() * 1e6 / (exchanges * BATCH) as f64
}

fn main() {
    runtime().block_on(async {
        println!("| queued | claim + finish, µs a job | ratio |\n|---|---|---|");
        let mut first = None;
        for queued in [1_000, 100_000, 5_000_000] {
            let cost = microseconds_a_job(queued).await;
            let first = *first.get_or_insert(cost);
            println!("| {queued} | {cost:.2} | {:.2} |", cost / first);
        }
    });
}
