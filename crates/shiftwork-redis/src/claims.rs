//! `start`, `release`, `own_claims` and `backlog`.

use redis::Value;
use shiftwork_core::Error;
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{Backlog, Claim, Start, Timed};

use crate::reply::{array, array_of, bytes, integer};
use crate::script::{RELEASE, START};
use crate::store::Inner;

/// Keys or jobs in one script call.
const CHUNK: usize = 1000;

pub(crate) async fn start(inner: &Inner, started: &[Start]) -> Result<Timed<()>, Error> {
    let keys: Vec<(String, &str)> = started
        .iter()
        .flat_map(|start| start.keys.iter().map(|key| (inner.keys.unique(key), start.owner.as_str())))
        .collect();
    for chunk in keys.chunks(CHUNK) {
        let _: i64 = START
            .run(&inner.connection, |command| {
                command.arg(chunk.len());
                chunk.iter().for_each(|(key, _)| {
                    command.arg(key);
                });
                chunk.iter().for_each(|(_, owner)| {
                    command.arg(*owner);
                });
            })
            .await?;
    }
    time(inner, ()).await
}

pub(crate) async fn release(inner: &Inner, pool: &PoolId, claims: &[Claim]) -> Result<Timed<usize>, Error> {
    let mut released = 0;
    let mut queues: Vec<&JobName> = claims.iter().map(|claim| &claim.queue).collect();
    queues.sort();
    queues.dedup();
    for queue in queues {
        let keys = inner.keys.of_claim(queue, pool);
        // From the last one on, each to the head, so that the first one ends up at the head.
        let jobs: Vec<_> =
            claims.iter().filter(|claim| claim.queue == *queue).rev().map(|claim| &claim.job).collect();
        for chunk in jobs.chunks(CHUNK) {
            let count: usize = RELEASE
                .run(&inner.connection, |command| {
                    command
                        .arg(4)
                        .arg(&keys.jobs)
                        .arg(&keys.in_progress)
                        .arg(&keys.lock)
                        .arg(&keys.lock_info);
                    command.arg(&**pool);
                    chunk.iter().for_each(|job| {
                        command.arg(&***job);
                    });
                })
                .await?;
            released += count;
        }
    }
    time(inner, released).await
}

pub(crate) async fn own_claims(
    inner: &Inner,
    pool: &PoolId,
    queues: &[JobName],
) -> Result<Timed<Vec<Claim>>, Error> {
    let mut pipeline = redis::pipe();
    for queue in queues {
        pipeline.cmd("LRANGE").arg(&inner.keys.of_claim(queue, pool).in_progress).arg(0).arg(-1);
    }
    let mut own = Vec::new();
    for (queue, reply) in queues.iter().zip(inner.connection.pipeline(&mut pipeline).await?) {
        // A list of the wrong type holds no claims.
        let Ok(value) = reply else { continue };
        for job in array(value)?.into_iter().rev() {
            own.push(Claim { queue: queue.clone(), job: bytes(job)?.into() });
        }
    }
    time(inner, own).await
}

pub(crate) async fn backlog(inner: &Inner, queues: &[JobName]) -> Result<Timed<Backlog>, Error> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("ZCARD").arg(inner.keys.scheduled()).cmd("ZCARD").arg(inner.keys.retry());
    for queue in queues {
        pipeline.cmd("LLEN").arg(inner.keys.jobs(queue));
    }
    let replies = inner.connection.pipeline(&mut pipeline).await?;
    // What has the wrong type holds no jobs.
    let mut counts =
        replies.iter().map(|reply| reply.as_ref().map_or(0, |value| integer(value).unwrap_or(0)));
    let mut next = || usize::try_from(counts.next().unwrap_or(0)).unwrap_or(0);
    let (scheduled, retry) = (next(), next());
    let queued = queues.iter().map(|queue| (queue.clone(), next())).filter(|(_, jobs)| *jobs > 0).collect();
    time(inner, Backlog { queued, scheduled, retry }).await
}

/// A reply with the server's time.
pub(crate) async fn time<T>(inner: &Inner, value: T) -> Result<Timed<T>, Error> {
    let reply: Value = inner.connection.query(&redis::cmd("TIME")).await?;
    let [seconds, micros] = array_of(reply)?;
    Ok(Timed { now: inner.offset.time(&seconds, &micros)?, value })
}
