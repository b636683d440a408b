//! How fast effectum drains jobs that do nothing: `peer-effectum DIRECTORY JOBS SLOTS` prints the seconds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use effectum::{Error, Job, JobRunner, Queue, RunningJob, Worker};

#[derive(Debug)]
struct Done {
    left: AtomicUsize,
    all: tokio::sync::Notify,
}

async fn nothing(_: RunningJob, done: Arc<Done>) -> Result<(), Error> {
    if done.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        done.all.notify_one();
    }
    Ok(())
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, jobs, slots] = &arguments[..] else { panic!("usage: DIRECTORY JOBS SLOTS") };
    let (jobs, slots): (usize, u16) = (jobs.parse().expect("jobs"), slots.parse().expect("slots"));
    let queue = Queue::new(&Path::new(directory).join("effectum.db")).await.expect("a queue");
    for _ in 0..jobs / 1000 {
        let batch = (0..1000)
            .map(|n| {
                Job::builder("job").json_payload(&serde_json::json!({ "n": n })).expect("a payload").build()
            })
            .collect();
        queue.add_jobs(batch).await.expect("jobs");
    }
    let done = Arc::new(Done { left: AtomicUsize::new(jobs), all: tokio::sync::Notify::new() });
    let started = Instant::now();
    let _worker = Worker::builder(&queue, done.clone())
        .max_concurrency(slots)
        .jobs([JobRunner::builder("job", nothing).build()])
        .build()
        .await
        .expect("a worker");
    done.all.notified().await;
    println!("{}", started.elapsed().as_secs_f64());
    std::process::exit(0);
}
