//! What the suite does not ask of every store: connections, scripts, damaged keys, and the bytes that Go services see.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

mod connecting;
mod damage;
mod layout;
mod outages;
mod waking;

use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{Claim, ClaimRequest, JobBytes, Push, QueueShare, Store};
use shiftwork_redis::RedisStore;
use test_servers::RedisServer;

fn name(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

fn pool() -> PoolId {
    PoolId::from("pool")
}

async fn connect(server: &RedisServer) -> RedisStore {
    RedisStore::connect(&server.url()).await.unwrap()
}

fn job(queue: &str, id: &str) -> JobBytes {
    format!(r#"{{"name":"{queue}","id":"{id}","t":1700000000,"args":null}}"#).into_bytes().into()
}

fn push(queue: &str, id: &str) -> Push {
    Push { queue: name(queue), job: job(queue, id), run_at: None, unique: None }
}

fn claim_request(queues: &[&str], limit: usize) -> ClaimRequest {
    let queues = queues.iter().map(|queue| QueueShare { queue: name(queue), weight: 1 }).collect();
    ClaimRequest { limit, queues, draw: 0.0 }
}

async fn claim(store: &RedisStore, queue: &str, limit: usize) -> Vec<Claim> {
    store.claim(&pool(), claim_request(&[queue], limit)).await.unwrap().value
}
