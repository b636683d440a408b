//! The handler returns something that says nothing about the job.
use shiftwork_core::{Client, Context, Job, WorkerPool};

#[derive(serde::Serialize, serde::Deserialize)]
struct Welcome {
    user: u64,
}

impl Job for Welcome {
    const NAME: &str = "welcome";
}

async fn welcome(job: Welcome, _: Context) -> u64 {
    job.user
}

fn pool(client: Client) -> WorkerPool {
    WorkerPool::new(client).job(welcome)
}

fn main() {}
