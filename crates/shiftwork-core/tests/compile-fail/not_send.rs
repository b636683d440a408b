//! The handler holds something across an await that can't go to another thread.
use std::rc::Rc;

use shiftwork_core::{Client, Context, Job, WorkerPool};

#[derive(serde::Serialize, serde::Deserialize)]
struct Welcome {
    user: u64,
}

impl Job for Welcome {
    const NAME: &str = "welcome";
}

async fn welcome(job: Welcome, ctx: Context) {
    let shared = Rc::new(job.user);
    ctx.cancelled().await;
    println!("{shared}");
}

fn pool(client: Client) -> WorkerPool {
    WorkerPool::new(client).job(welcome)
}

fn main() {}
