//! The middleware does not take the rest of the way.
use shiftwork_core::{Client, Context, HandlerResult, Outcome, WorkerPool};

async fn timing(_: Context) -> HandlerResult {
    Ok(Outcome::Done)
}

fn pool(client: Client) -> WorkerPool {
    WorkerPool::new(client).middleware(timing)
}

fn main() {}
