//! A loop that works as the Go library does: one connection a worker, one script to fetch a job, one to finish it. The Go
//! library itself is somewhat slower than this.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use redis::{RedisResult, Script};

use super::Bench;
use super::drain::Progress;
use super::scratch::Scratch;

/// Weighted fetch of one job: the first queue of the drawn order that has a job, is not paused and has room.
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

/// The time in which that many workers drain the queues.
pub(super) async fn drain(
    bench: &Bench,
    scratch: &Scratch,
    client: &redis::Client,
    jobs: usize,
    workers: usize,
    bar: &ProgressBar,
) -> anyhow::Result<Duration> {
    let queues: Vec<String> = bench.names().map(|name| scratch.key(&format!("jobs:{name}"))).collect();
    let progress = Progress::new(jobs);
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let connection = client.get_multiplexed_async_connection().await?;
        let (queues, progress) = (queues.clone(), progress.clone());
        tasks.spawn(async move { work(connection, queues, &progress).await });
    }
    let ended = async {
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    let (ended, ()) = tokio::join!(ended, progress.reached(bar));
    ended?;
    Ok(started.elapsed())
}

async fn work(
    mut connection: redis::aio::MultiplexedConnection,
    mut queues: Vec<String>,
    progress: &Progress,
) -> RedisResult<()> {
    let (fetch, finish) = (Script::new(FETCH), Script::new(FINISH));
    loop {
        fastrand::shuffle(&mut queues);
        let mut call = fetch.prepare_invoke();
        for queue in &queues {
            call.key(queue).key(format!("{queue}:reference:inprogress")).key(format!("{queue}:paused"));
            call.key(format!("{queue}:lock")).key(format!("{queue}:lock_info"));
            call.key(format!("{queue}:max_concurrency"));
        }
        let found: Option<(Vec<u8>, usize)> = call.arg("reference").invoke_async(&mut connection).await?;
        let Some((job, position)) = found else { return Ok(()) };
        let queue = &queues[(position - 1) / 6];
        let mut call = finish.key(format!("{queue}:reference:inprogress"));
        call.key(format!("{queue}:lock")).key(format!("{queue}:lock_info"));
        let () = call.arg("reference").arg(job).invoke_async(&mut connection).await?;
        progress.done();
    }
}
