//! How fast a worker pool drains jobs that do nothing, against a loop that works as the Go library does: one connection a
//! worker, one script to fetch a job, one to finish it. `cargo bench -p shiftwork-redis --bench drain`
//!
//! Both run on the same server in the same run, in turn; each figure is the median of several runs. The server shares the machine,
//! so look at the ratios.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use shiftwork_core::{Client, Context, Enqueue, JobOptions, WorkerPool};
use shiftwork_redis::RedisStore;
use test_servers::RedisServer;

const RUNS: usize = 3;
const JOBS: usize = 100_000;
const TYPES: usize = 10;

/// Weighted fetch of one job, as in the Go library: the first queue of the drawn order that has a job, is not paused and has room.
const FETCH: &str = "
for i = 1, #KEYS, 6 do
  if redis.call('LLEN', KEYS[i]) > 0 and redis.call('EXISTS', KEYS[i + 2]) == 0 then
    local max, lock = redis.call('GET', KEYS[i + 5]), redis.call('GET', KEYS[i + 3])
    if not max or tonumber(max) == 0 or not lock or tonumber(lock) < tonumber(max) then
      redis.call('INCR', KEYS[i + 3])
      redis.call('HINCRBY', KEYS[i + 4], ARGV[1], 1)
      return {redis.call('RPOPLPUSH', KEYS[i], KEYS[i + 1]), i}
    end
  end
end
return nil";
const FINISH: &str = "
if redis.call('LREM', KEYS[1], 1, ARGV[2]) > 0 then
  redis.call('DECR', KEYS[2])
  redis.call('HINCRBY', KEYS[3], ARGV[1], -1)
end
return nil";

fn names() -> impl Iterator<Item = String> {
    (0..TYPES).map(|number| format!("type-{number}"))
}

async fn fill(server: &RedisServer) -> Client {
    server.run(&["FLUSHALL"]);
    let client = Client::from(RedisStore::connect(&server.url()).await.expect("a store"));
    for name in names() {
        let jobs = (0..JOBS / TYPES).map(|n| Enqueue::json(&name, format!("{{\"n\":{n}}}")));
        client.enqueue_many(jobs).await.expect("jobs");
    }
    client
}

async fn pool(server: &RedisServer, slots: usize) -> Duration {
    let client = fill(server).await;
    let mut pool = WorkerPool::new(client).concurrency(slots);
    for name in names() {
        pool = pool.raw(&name, JobOptions::new(), |_, _: Context| async {});
    }
    let pool = pool.start().await.expect("a pool");
    let started = Instant::now();
    let drained = pool.drain(Duration::from_secs(120)).await.expect("a drain");
    let time = started.elapsed();
    assert_eq!(drained.tally.done, JOBS);
    time
}

async fn reference(server: &RedisServer, workers: usize) -> Duration {
    fill(server).await;
    let client = redis::Client::open(server.url()).expect("a client");
    let started = Instant::now();
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
                let (fetch, finish) = (redis::Script::new(FETCH), redis::Script::new(FINISH));
                let mut done = 0;
                loop {
                    let mut order: Vec<String> = names().collect();
                    fastrand::shuffle(&mut order);
                    let mut call = fetch.prepare_invoke();
                    for name in &order {
                        let queue = format!("work:jobs:{name}");
                        call.key(&queue)
                            .key(format!("{queue}:ref:inprogress"))
                            .key(format!("{queue}:paused"));
                        call.key(format!("{queue}:lock")).key(format!("{queue}:lock_info"));
                        call.key(format!("{queue}:max_concurrency"));
                    }
                    let found: Option<(Vec<u8>, usize)> =
                        call.arg("ref").invoke_async(&mut connection).await.expect("a fetch");
                    let Some((job, position)) = found else { return done };
                    let queue = format!("work:jobs:{}", order[(position - 1) / 6]);
                    let mut call = finish.key(format!("{queue}:ref:inprogress"));
                    call.key(format!("{queue}:lock")).key(format!("{queue}:lock_info"));
                    let () = call.arg("ref").arg(job).invoke_async(&mut connection).await.expect("a finish");
                    done += 1;
                }
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.expect("a worker");
    }
    let time = started.elapsed();
    assert_eq!(done, JOBS);
    time
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    JOBS as f64 / times[times.len() / 2].as_secs_f64()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = RedisServer::start();
        println!("| slots | pool, jobs/s | reference, jobs/s | ratio |\n|---|---|---|---|");
        for slots in [20, 100, 500] {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                ours.push(pool(&server, slots).await);
                theirs.push(reference(&server, slots).await);
            }
            let (ours, theirs) = (median(ours), median(theirs));
            println!("| {slots} | {ours:.0} | {theirs:.0} | {:.1} |", ours / theirs);
        }
    });
}
