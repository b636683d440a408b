//! `look`, `held` and `recover`: what a reaper needs to give a dead pool's jobs to the living.

use std::collections::HashMap;

use redis::Value;
use shiftwork_core::job::{JobName, PoolId, RawJob};
use shiftwork_core::store::{
    Claim, Held, Look, Looked, Recover, Recovered, Recovery, SilentPool, Timed, Witness,
};
use shiftwork_core::{Error, clock};

use crate::claims::time;
use crate::reply::{array, array_of, bytes, integer, script_time, unexpected};
use crate::script::{LOOK, RECOVER, SEEN};
use crate::store::Inner;

/// Pools of one kind that one look takes in; the next one, seconds later, has the rest.
const MAX_POOLS: usize = 1000;

pub(crate) async fn look(inner: &Inner, look: &Look) -> Result<Timed<Looked>, Error> {
    let keys = &inner.keys;
    let reply: Value = LOOK
        .run(&inner.connection, |command| {
            command.arg(6).arg(keys.worker_pools()).arg(keys.beats()).arg(keys.looked());
            command.arg(keys.quiet()).arg(keys.seen()).arg(keys.audited());
            command.arg(inner.offset.micros());
            command.arg(u64::try_from(look.every.as_micros()).unwrap_or(u64::MAX));
            command.arg(look.silent_for.as_secs()).arg(look.gap.as_secs());
            command.arg(u64::try_from(look.audit_every.as_micros()).unwrap_or(u64::MAX)).arg(MAX_POOLS);
        })
        .await?;
    let [seconds, micros, looked, pools, audit, old, others, removed] = array_of(reply)?;
    let now = script_time(&seconds, &micros)?;
    let mut value = Looked {
        looked: integer(&looked)? == 1,
        pools: usize::try_from(integer(&pools)?).unwrap_or(0),
        audit: integer(&audit)? == 1,
        ..Looked::default()
    };
    let (old, others, removed) = (pool_ids(old)?, pool_ids(others)?, pool_ids(removed)?);
    let shown = heartbeats(inner, old.iter().chain(&others).chain(&removed)).await?;
    let since = seen(inner, &keys.seen(), &others, &shown).await?;
    let silence = clock::whole_seconds(look.silent_for);
    for pool in &old {
        let shows = &shown[pool];
        value.silent.push(shows.silent(pool, shows.second().unwrap_or(0)));
    }
    for (pool, since) in others.iter().zip(since) {
        let shows = &shown[pool];
        let beat = shows.second().unwrap_or(0);
        // Unchanged for long enough under our eyes, and old by its own account. What it says is no number is no account.
        if now.as_second() >= since.saturating_add(silence) && now.as_second() > beat.saturating_add(silence)
        {
            value.silent.push(shows.silent(pool, since));
        }
    }
    for pool in &removed {
        // A reaper of Go has removed it, and may have forgotten about jobs that it claimed in that moment (A21).
        let shows = &shown[pool];
        let silent = shows.silent(pool, shows.second().unwrap_or(0));
        value.silent.push(SilentPool { witness: Witness::Unregistered, ..silent });
    }
    if !value.silent.is_empty() {
        let known = inner.connection.query(redis::cmd("SMEMBERS").arg(inner.keys.known_jobs())).await?;
        value.known = job_names(known)?;
    }
    Ok(Timed { now, value })
}

/// What a pool's heartbeat says, as far as it can be read.
#[derive(Default)]
struct Shown {
    heartbeat_at: Option<String>,
    job_names: String,
    host: String,
    worker_ids: String,
}

impl Shown {
    fn second(&self) -> Option<i64> {
        self.heartbeat_at.as_ref()?.parse().ok()
    }

    fn silent(&self, pool: &PoolId, since: i64) -> SilentPool {
        SilentPool {
            pool: pool.clone(),
            witness: self.heartbeat_at.clone().map_or(Witness::NoHeartbeat, Witness::Heartbeat),
            queues: self.job_names.split(',').filter_map(|name| JobName::new(name).ok()).collect(),
            host: self.host.clone(),
            workers: self.worker_ids.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect(),
            since,
        }
    }
}

async fn heartbeats<'a>(
    inner: &Inner,
    pools: impl Iterator<Item = &'a PoolId>,
) -> Result<HashMap<PoolId, Shown>, Error> {
    let pools: Vec<&PoolId> = pools.collect();
    if pools.is_empty() {
        return Ok(HashMap::new());
    }
    let mut pipeline = redis::pipe();
    for pool in &pools {
        pipeline
            .cmd("HMGET")
            .arg(inner.keys.heartbeat(pool))
            .arg("heartbeat_at")
            .arg("job_names")
            .arg("host")
            .arg("worker_ids");
    }
    let mut shown = HashMap::new();
    for (pool, reply) in pools.into_iter().zip(inner.connection.pipeline(&mut pipeline).await?) {
        // A key of the wrong type is no heartbeat, and keeps nobody from looking at the other pools.
        let fields = match reply.map(array_of::<4>) {
            Ok(Ok([heartbeat_at, job_names, host, worker_ids])) => {
                let text =
                    |value: Value| bytes(value).ok().map(|text| String::from_utf8_lossy(&text).into_owned());
                Shown {
                    heartbeat_at: text(heartbeat_at),
                    job_names: text(job_names).unwrap_or_default(),
                    host: text(host).unwrap_or_default(),
                    worker_ids: text(worker_ids).unwrap_or_default(),
                }
            }
            _ => Shown::default(),
        };
        shown.insert(pool.clone(), fields);
    }
    Ok(shown)
}

/// Since which second these pools have shown what they show.
async fn seen(
    inner: &Inner,
    key: &str,
    pools: &[PoolId],
    shown: &HashMap<PoolId, Shown>,
) -> Result<Vec<i64>, Error> {
    if pools.is_empty() {
        return Ok(Vec::new());
    }
    let shows =
        |pool: &PoolId| shown.get(pool).and_then(|shown| shown.heartbeat_at.clone()).unwrap_or_default();
    let pairs: Vec<_> = pools.iter().map(|pool| (pool, shows(pool))).collect();
    Ok(since(inner, key, &pairs).await?.value)
}

/// Since which second each pool has shown what it shows; others are forgotten.
pub(crate) async fn since(
    inner: &Inner,
    key: &str,
    pairs: &[(&PoolId, String)],
) -> Result<Timed<Vec<i64>>, Error> {
    let reply: Value = SEEN
        .run(&inner.connection, |command| {
            command.arg(1).arg(key).arg(inner.offset.micros());
            for (pool, shows) in pairs {
                command.arg(&***pool).arg(shows);
            }
        })
        .await?;
    let items = array(reply)?;
    let [seconds, micros, since @ ..] = &items[..] else { return Err(unexpected(&Value::Array(items))) };
    let value = since.iter().map(integer).collect::<Result<_, _>>()?;
    Ok(Timed { now: script_time(seconds, micros)?, value })
}

pub(crate) async fn held(
    inner: &Inner,
    pool: &PoolId,
    queues: &[JobName],
    limit: usize,
) -> Result<Timed<Vec<Held>>, Error> {
    let mut pipeline = redis::pipe();
    for queue in queues {
        let last = i64::try_from(limit).unwrap_or(i64::MAX) - 1;
        pipeline.cmd("LRANGE").arg(inner.keys.in_progress(queue, pool)).arg(0).arg(last);
    }
    let mut held = Vec::new();
    for (queue, reply) in queues.iter().zip(inner.connection.pipeline(&mut pipeline).await?) {
        // A list of the wrong type holds no claims.
        let Ok(value) = reply else { continue };
        for job in array(value)?.into_iter().rev() {
            let claim = Claim { queue: queue.clone(), job: bytes(job)?.into() };
            held.push(Held { claim, crashes: Vec::new() });
        }
    }
    let mut pipeline = redis::pipe();
    for held in &held {
        let id = RawJob::parse(held.claim.job.clone()).map(|job| job.id().to_owned()).unwrap_or_default();
        pipeline.cmd("LRANGE").arg(inner.keys.crashes(&id)).arg(0).arg(-1);
    }
    if !held.is_empty() {
        for (held, reply) in held.iter_mut().zip(inner.connection.pipeline(&mut pipeline).await?) {
            for record in reply.ok().and_then(|value| array(value).ok()).unwrap_or_default() {
                held.crashes.push(String::from_utf8_lossy(&bytes(record)?).into_owned());
            }
        }
    }
    time(inner, held).await
}

pub(crate) async fn recover(inner: &Inner, recover: &Recover) -> Result<Timed<Recovered>, Error> {
    let Recover { pool, witness, queues, recoveries } = recover;
    let keys = &inner.keys;
    let numbers: HashMap<&JobName, usize> = queues.iter().zip(1..).collect();
    // A claim of a queue that is not listed would be of no queue at all.
    let recoveries: Vec<(usize, &Recovery)> = recoveries
        .iter()
        .filter_map(|recovery| Some((*numbers.get(&recovery.claim.queue)?, recovery)))
        .collect();
    let (kind, beat) = match witness {
        Witness::Heartbeat(seen) => ("heartbeat", seen.as_str()),
        Witness::NoHeartbeat => ("none", ""),
        Witness::Unregistered => ("unregistered", ""),
    };
    let reply: Value = RECOVER
        .run(&inner.connection, |command| {
            command.arg(4 + 4 * queues.len() + recoveries.len());
            command.arg(keys.worker_pools()).arg(keys.heartbeat(pool)).arg(keys.beats()).arg(keys.dead());
            for queue in queues {
                command.arg(keys.jobs(queue)).arg(keys.in_progress(queue, pool));
                command.arg(keys.lock(queue)).arg(keys.lock_info(queue));
            }
            for (_, recovery) in &recoveries {
                command.arg(recovery.id.as_ref().map_or_else(|| keys.dead(), |id| keys.crashes(id)));
            }
            command.arg(inner.offset.micros()).arg(&**pool).arg(kind).arg(beat).arg(queues.len());
            for (queue, recovery) in &recoveries {
                command.arg(*queue).arg(&*recovery.claim.job);
                command.arg(recovery.bury.as_deref().unwrap_or_default()).arg(&recovery.record);
            }
        })
        .await?;
    let [seconds, micros, fenced, returned, buried, removed] = array_of(reply)?;
    let count = |value: &Value| integer(value).map(|count| usize::try_from(count).unwrap_or(0));
    let value = Recovered {
        fenced: integer(&fenced)? == 1,
        returned: count(&returned)?,
        buried: count(&buried)?,
        removed: integer(&removed)? == 1,
    };
    Ok(Timed { now: script_time(&seconds, &micros)?, value })
}

/// Names of all jobs that were ever pushed or worked on.
/// The names in a set that are names.
pub(crate) fn job_names(set: Value) -> Result<Vec<JobName>, Error> {
    let (Value::Set(names) | Value::Array(names)) = set else { return Err(unexpected(&set)) };
    let names = names.into_iter().filter_map(|name| {
        let name = String::from_utf8(bytes(name).ok()?).ok()?;
        JobName::new(name).ok()
    });
    Ok(names.collect())
}

fn pool_ids(value: Value) -> Result<Vec<PoolId>, Error> {
    let mut ids = Vec::new();
    for id in array(value)? {
        ids.push(PoolId::from(&*String::from_utf8_lossy(&bytes(id)?)));
    }
    Ok(ids)
}
