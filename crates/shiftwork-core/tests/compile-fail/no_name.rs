//! The args have no job name.
use shiftwork_core::{Client, Context, WorkerPool};

#[derive(serde::Serialize, serde::Deserialize)]
struct Welcome {
    user: u64,
}

async fn welcome(job: Welcome, _: Context) {
    println!("{}", job.user);
}

fn pool(client: Client) -> WorkerPool {
    WorkerPool::new(client).job(welcome)
}

fn main() {}
