//! `audit`, `note_unknown`, `repair` and the reapers' lock: bookkeeping against what is in progress.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use redis::Value;
use shiftwork_core::Error;
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{PoolAudit, QueueAudit, Timed};

use crate::claims::time;
use crate::recovery::{job_names, since};
use crate::reply::{array_of, bytes, integer, unexpected};
use crate::script::{REAPER_LOCK, REPAIR};
use crate::store::Inner;

/// Queues whose keys travel in one pipeline.
const CHUNK: usize = 500;

pub(crate) async fn audit(inner: &Inner, queues: &[JobName]) -> Result<Timed<Vec<QueueAudit>>, Error> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("TIME").cmd("SMEMBERS").arg(inner.keys.known_jobs());
    pipeline.cmd("SMEMBERS").arg(inner.keys.worker_pools());
    let replies: Result<Vec<Value>, _> =
        inner.connection.pipeline(&mut pipeline).await?.into_iter().collect();
    let replies = replies.map_err(|error| inner.connection.error(&error))?;
    let [now, known, members] = array_of(Value::Array(replies))?;
    let [seconds, micros] = array_of(now)?;
    let now = inner.offset.time(&seconds, &micros)?;
    let names: BTreeSet<JobName> = job_names(known)?.into_iter().chain(queues.iter().cloned()).collect();
    let names: Vec<JobName> = names.into_iter().collect();
    let registered: HashSet<String> = texts(members)?.into_iter().collect();
    let mut audits = Vec::new();
    for chunk in names.chunks(CHUNK) {
        let mut pipeline = redis::pipe();
        for queue in chunk {
            pipeline.cmd("GET").arg(inner.keys.lock(queue)).cmd("HGETALL").arg(inner.keys.lock_info(queue));
        }
        let mut replies = inner.connection.pipeline(&mut pipeline).await?.into_iter();
        for queue in chunk {
            let (lock, info) = (replies.next(), replies.next());
            let lock = match lock {
                Some(Ok(Value::Nil)) => Some(0),
                Some(Ok(value)) => integer(&value).ok(),
                _ => None,
            };
            let info = info.and_then(Result::ok).map(texts).transpose()?.unwrap_or_default();
            let pools = info
                .chunks_exact(2)
                .map(|pair| PoolAudit {
                    pool: PoolId::from(pair[0].as_str()),
                    registered: registered.contains(&pair[0]),
                    counted: pair[1].parse().ok(),
                    held: 0,
                })
                // Most pools have nothing of most queues in progress, and say so.
                .filter(|pool| !(pool.registered && pool.counted == Some(0)))
                .collect();
            audits.push(QueueAudit { queue: queue.clone(), lock, pools });
        }
    }
    count(inner, &mut audits, now.as_second()).await?;
    Ok(Timed { now, value: audits })
}

/// How much the pools really have in progress, and whether those that are not registered have a heartbeat.
async fn count(inner: &Inner, audits: &mut [QueueAudit], now: i64) -> Result<(), Error> {
    let mut pipeline = redis::pipe();
    for audit in &*audits {
        for pool in &audit.pools {
            pipeline.cmd("LLEN").arg(inner.keys.in_progress(&audit.queue, &pool.pool));
            pipeline.cmd("HGET").arg(inner.keys.heartbeat(&pool.pool)).arg("heartbeat_at");
        }
    }
    if pipeline.is_empty() {
        return Ok(());
    }
    let mut replies = inner.connection.pipeline(&mut pipeline).await?.into_iter();
    for pool in audits.iter_mut().flat_map(|audit| &mut audit.pools) {
        let held = replies.next().and_then(Result::ok).and_then(|value| integer(&value).ok());
        pool.held = held.and_then(|held| usize::try_from(held).ok()).unwrap_or(0);
        let beat = replies.next().and_then(Result::ok).and_then(|value| integer(&value).ok());
        // A beat without a registration: a pool of Go that starts, or one that was just taken for dead.
        pool.registered |= beat.is_some_and(|beat| beat.saturating_add(30) > now);
    }
    Ok(())
}

pub(crate) async fn note_unknown(inner: &Inner, pools: &[PoolId]) -> Result<Timed<Vec<i64>>, Error> {
    let pairs: Vec<_> = pools.iter().map(|pool| (pool, String::new())).collect();
    since(inner, &inner.keys.unknown(), &pairs).await
}

pub(crate) async fn repair(inner: &Inner, audit: &QueueAudit) -> Result<Timed<bool>, Error> {
    let wrong: i64 = REPAIR
        .run(&inner.connection, |command| {
            command.arg(2 + audit.pools.len());
            command.arg(inner.keys.lock(&audit.queue)).arg(inner.keys.lock_info(&audit.queue));
            for pool in &audit.pools {
                command.arg(inner.keys.in_progress(&audit.queue, &pool.pool));
            }
            audit.pools.iter().for_each(|pool| {
                command.arg(&*pool.pool);
            });
            audit.pools.iter().for_each(|pool| {
                command.arg(u8::from(pool.registered));
            });
        })
        .await?;
    time(inner, wrong == 1).await
}

pub(crate) async fn reaper_lock(
    inner: &Inner,
    token: &str,
    hold: Option<Duration>,
) -> Result<Timed<bool>, Error> {
    let hold = hold.map(|hold| hold.as_millis().max(1).to_string()).unwrap_or_default();
    let held: i64 = REAPER_LOCK
        .run(&inner.connection, |command| {
            command.arg(1).arg(inner.keys.reaper_lock()).arg(token).arg(&hold);
        })
        .await?;
    time(inner, held == 1).await
}

/// The texts of a set, a map or a list.
fn texts(value: Value) -> Result<Vec<String>, Error> {
    let items = match value {
        Value::Array(items) | Value::Set(items) => items,
        Value::Map(pairs) => pairs.into_iter().flat_map(|(key, value)| [key, value]).collect(),
        other => return Err(unexpected(&other)),
    };
    items.into_iter().map(|item| Ok(String::from_utf8_lossy(&bytes(item)?).into_owned())).collect()
}
