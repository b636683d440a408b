//! The whole way once: a job type, a handler, one job, one pool.
//!
//! `cargo run -p shiftwork --example quickstart`, with a Redis on this machine or SHIFTWORK_STORE=redis://….
use serde::{Deserialize, Serialize};
use shiftwork::{Context, Job, WorkerPool};

#[derive(Serialize, Deserialize)]
struct Welcome {
    user: u64,
}

impl Job for Welcome {
    const NAME: &str = "welcome";
}

async fn welcome(job: Welcome, ctx: Context) -> shiftwork::Result {
    println!("welcome, user {} (attempt {})", job.user, ctx.attempt());
    Ok(())
}

#[tokio::main]
async fn main() -> shiftwork::Result {
    let url = std::env::var("SHIFTWORK_STORE").unwrap_or("redis://localhost".into());
    let client = shiftwork::connect(&url).await?;
    client.enqueue(Welcome { user: 7 }).await?;
    // `run()` instead of `drain(…)` works until ctrl-c.
    WorkerPool::new(client).job(welcome).drain(std::time::Duration::from_secs(10)).await?;
    Ok(())
}
