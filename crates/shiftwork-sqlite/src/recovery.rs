//! `observe`, and what a reaper needs: `look`, `held`, `recover`, `audit`, `note_unknown`, `repair` and its lock.

use std::time::Duration;

use rusqlite::params;
use shiftwork_core::clock;
use shiftwork_core::job::{JobName, PoolId, RawJob};
use shiftwork_core::store::{
    Claim, Held, Look, Looked, Observation, PoolAudit, QueueAudit, Recover, Recovered, SilentPool, Witness,
};

use crate::changes::Changed;
use crate::due::{DueSets, State};
use crate::errors::SqlResult;
use crate::jobs::Jobs;
use crate::queues::Queues;
use crate::transaction::{Transaction, from_sql, to_sql};

/// How long what a worker runs stays shown if nobody renews it, in seconds.
const WORKER_TTL: i64 = 86_400;
/// How long it is remembered that a worker died with a job, in seconds.
const CRASH_TTL: i64 = 7 * 86_400;

pub(crate) fn observe(
    transaction: &Transaction<'_>,
    namespace: i64,
    observations: &[Observation],
) -> SqlResult<()> {
    let now = transaction.now_second();
    for Observation { worker, job } in observations {
        match job {
            Some(job) => {
                let (checkin, checkin_at) = job.checkin.clone().unzip();
                transaction.execute(
                    "INSERT OR REPLACE INTO worker
                        (namespace, id, job_name, job_id, started_at, args, checkin, checkin_at, expires_at)
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                    params![
                        namespace,
                        worker,
                        job.name,
                        job.id,
                        job.started_at,
                        &*job.args,
                        checkin,
                        checkin_at,
                        now + WORKER_TTL
                    ],
                )?
            }
            None => transaction
                .execute("DELETE FROM worker WHERE namespace = ?1 AND id = ?2", params![namespace, worker])?,
        };
    }
    transaction
        .execute("DELETE FROM worker WHERE namespace = ?1 AND expires_at <= ?2", params![namespace, now])?;
    Ok(())
}

/// What the reapers of a namespace know of each other's looks.
struct Looks {
    looked: Option<i64>,
    audited: Option<i64>,
    quiet_until: i64,
}

fn looks(transaction: &Transaction<'_>, namespace: i64) -> SqlResult<Looks> {
    let looks = transaction.first(
        "SELECT looked, audited, quiet_until FROM reaper WHERE namespace = ?1",
        [namespace],
        |row| Ok(Looks { looked: row.get(0)?, audited: row.get(1)?, quiet_until: row.get(2)? }),
    )?;
    Ok(looks.unwrap_or(Looks { looked: None, audited: None, quiet_until: 0 }))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Microseconds from `then` to `now`; `None` if it never was, or lies in the future: the clock was set back since.
fn age(then: Option<i64>, now: i64) -> Option<i64> {
    then.map(|then| now - then).filter(|age| *age >= 0)
}

/// Whether nobody has looked for so long.
pub(crate) fn is_look_due(transaction: &Transaction<'_>, namespace: i64, after: Duration) -> SqlResult<bool> {
    let now = transaction.now().as_microsecond();
    Ok(age(looks(transaction, namespace)?.looked, now).is_none_or(|age| age >= micros(after)))
}

pub(crate) fn look(transaction: &Transaction<'_>, namespace: i64, look: &Look) -> SqlResult<Looked> {
    let (now, second) = (transaction.now().as_microsecond(), transaction.now_second());
    let mut looks = looks(transaction, namespace)?;
    let pools = transaction
        .first("SELECT count(*) FROM pool WHERE namespace = ?1", [namespace], |row| row.get(0))?
        .map_or(0, from_sql);
    let since = age(looks.looked, now);
    if since.is_some_and(|since| since < micros(look.every)) {
        return Ok(Looked { pools, ..Looked::default() });
    }
    let silence = clock::whole_seconds(look.silent_for);
    if since.is_none_or(|since| since > micros(look.gap)) {
        looks.quiet_until = second.saturating_add(silence);
    }
    let audit = age(looks.audited, now).is_none_or(|age| age >= micros(look.audit_every));
    let audited = if audit { Some(now) } else { looks.audited };
    transaction.execute(
        "INSERT INTO reaper (namespace, looked, audited, quiet_until) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET looked = ?2, audited = ?3, quiet_until = ?4",
        params![namespace, now, audited, looks.quiet_until],
    )?;
    let mut silent = Vec::new();
    if second >= looks.quiet_until {
        silent = transaction.all(
            "SELECT id, heartbeat_at, job_names, host, worker_ids FROM pool WHERE namespace = ?1 AND heartbeat_at <= ?2",
            params![namespace, second.saturating_sub(silence)],
            |row| {
                let (id, beat, names): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let workers: String = row.get(4)?;
                Ok(SilentPool {
                    pool: PoolId::from(id.as_str()),
                    witness: Witness::Heartbeat(beat.to_string()),
                    queues: names.split(',').filter_map(|name| JobName::new(name).ok()).collect(),
                    host: row.get(3)?,
                    workers: workers.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect(),
                    since: beat,
                })
            },
        )?;
    }
    let known = if silent.is_empty() { Vec::new() } else { known(transaction, namespace)? };
    Ok(Looked { looked: true, pools, silent, known, audit })
}

fn known(transaction: &Transaction<'_>, namespace: i64) -> SqlResult<Vec<JobName>> {
    let names: Vec<String> =
        transaction
            .all("SELECT name FROM queue WHERE namespace = ?1 AND known", [namespace], |row| row.get(0))?;
    Ok(names.iter().filter_map(|name| JobName::new(name).ok()).collect())
}

pub(crate) fn held(
    transaction: &Transaction<'_>,
    namespace: i64,
    pool: &PoolId,
    names: &[JobName],
    limit: usize,
) -> SqlResult<Vec<Held>> {
    let mut queues = Queues::new(transaction, namespace);
    let mut held = Vec::new();
    for name in names {
        let Some(queue) = queues.get(name)? else { continue };
        let newest = transaction.all(
            "SELECT job FROM claim WHERE queue = ?1 AND pool = ?2 ORDER BY sequence DESC LIMIT ?3",
            params![queue.id, &**pool, to_sql(limit)],
            |row| Ok(row.get_ref(0)?.as_blob()?.into()),
        )?;
        for job in newest.into_iter().rev() {
            let claim = Claim { queue: name.clone(), job };
            let id = RawJob::parse(claim.job.clone()).map(|job| job.id().to_owned()).unwrap_or_default();
            let crashes = transaction.all(
                "SELECT record FROM crash WHERE namespace = ?1 AND job_id = ?2 AND expires_at > ?3 ORDER BY id",
                params![namespace, id, transaction.now_second()],
                |row| row.get(0),
            )?;
            held.push(Held { claim, crashes });
        }
    }
    Ok(held)
}

pub(crate) fn recover(
    transaction: &Transaction<'_>,
    namespace: i64,
    recover: &Recover,
) -> SqlResult<Recovered> {
    let (now, pool) = (transaction.now_second(), &recover.pool);
    let beat: Option<i64> = transaction.first(
        "SELECT heartbeat_at FROM pool WHERE namespace = ?1 AND id = ?2",
        params![namespace, &**pool],
        |row| row.get(0),
    )?;
    let seen = match (&recover.witness, beat) {
        (Witness::Heartbeat(seen), Some(beat)) => *seen == beat.to_string(),
        (Witness::Unregistered, None) => true,
        _ => false,
    };
    if !seen {
        return Ok(Recovered::default());
    }
    let mut recovered = Recovered { fenced: true, ..Recovered::default() };
    let (mut queues, mut sets) = (Queues::new(transaction, namespace), DueSets::new(transaction, namespace));
    let mut jobs = Jobs::new(transaction)?;
    for recovery in recover.recoveries.iter().rev() {
        let Claim { queue, job } = &recovery.claim;
        let Some(queue) = queues.get(queue)? else { continue };
        if !jobs.unclaim(queue, pool, job)? {
            continue;
        }
        match &recovery.bury {
            None => {
                jobs.prepend(queue, job)?;
                recovered.returned += 1;
            }
            Some(buried) => {
                sets.insert(State::Dead, now, buried)?;
                recovered.buried += 1;
            }
        }
        if let Some(id) = &recovery.id {
            transaction.execute(
                "INSERT INTO crash (namespace, job_id, record, expires_at) VALUES (?1, ?2, ?3, ?4)",
                params![namespace, id, recovery.record, now + CRASH_TTL],
            )?;
        }
    }
    let mut left = false;
    for name in &recover.queues {
        if let Some(queue) = queues.get(name)? {
            let held = transaction.first(
                "SELECT 1 FROM claim WHERE queue = ?1 AND pool = ?2 LIMIT 1",
                params![queue.id, &**pool],
                |_| Ok(()),
            )?;
            left |= held.is_some();
        }
    }
    queues.save()?;
    sets.save()?;
    if !left {
        transaction
            .execute("DELETE FROM pool WHERE namespace = ?1 AND id = ?2", params![namespace, &**pool])?;
        transaction.execute(
            "DELETE FROM unknown_pool WHERE namespace = ?1 AND pool = ?2",
            params![namespace, &**pool],
        )?;
        transaction.execute(
            "DELETE FROM crash WHERE namespace = ?1 AND expires_at <= ?2",
            params![namespace, now],
        )?;
        recovered.removed = true;
    }
    Ok(recovered)
}

pub(crate) fn audit(transaction: &Transaction<'_>, namespace: i64) -> SqlResult<Vec<QueueAudit>> {
    let queues: Vec<(i64, String, i64)> = transaction.all(
        "SELECT id, name, running FROM queue WHERE namespace = ?1 ORDER BY name",
        [namespace],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut audits = Vec::new();
    for (id, name, running) in queues {
        let Ok(queue) = JobName::new(name) else { continue };
        let pools = transaction.all(
            "SELECT pool, count(*), EXISTS (SELECT 1 FROM pool WHERE namespace = ?2 AND id = claim.pool)
                FROM claim WHERE queue = ?1 GROUP BY pool",
            params![id, namespace],
            |row| {
                let (pool, count): (String, i64) = (row.get(0)?, row.get(1)?);
                Ok(PoolAudit {
                    pool: PoolId::from(pool.as_str()),
                    registered: row.get(2)?,
                    // Only the sum is kept count of.
                    counted: Some(count),
                    held: from_sql(count),
                })
            },
        )?;
        audits.push(QueueAudit { queue, lock: Some(running), pools });
    }
    Ok(audits)
}

pub(crate) fn note_unknown(
    transaction: &Transaction<'_>,
    namespace: i64,
    pools: &[PoolId],
) -> SqlResult<Vec<i64>> {
    let known: Vec<(String, i64)> =
        transaction.all("SELECT pool, since FROM unknown_pool WHERE namespace = ?1", [namespace], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    transaction.execute("DELETE FROM unknown_pool WHERE namespace = ?1", [namespace])?;
    let mut since = Vec::with_capacity(pools.len());
    for pool in pools {
        let first = known.iter().find(|(known, _)| **known == **pool).map(|(_, since)| *since);
        let first = first.unwrap_or(transaction.now_second());
        transaction.execute(
            "INSERT OR REPLACE INTO unknown_pool (namespace, pool, since) VALUES (?1, ?2, ?3)",
            params![namespace, &**pool, first],
        )?;
        since.push(first);
    }
    Ok(since)
}

pub(crate) fn repair(transaction: &Transaction<'_>, namespace: i64, audit: &QueueAudit) -> SqlResult<bool> {
    let mut queues = Queues::new(transaction, namespace);
    let Some(queue) = queues.get(&audit.queue)? else { return Ok(false) };
    let held: i64 = transaction
        .first("SELECT count(*) FROM claim WHERE queue = ?1", [queue.id], |row| row.get(0))?
        .unwrap_or(0);
    let wrong = queue.running != from_sql(held);
    queue.running = from_sql(held);
    queues.save()?;
    if wrong {
        // There may be room now.
        transaction.note(Changed::WORK);
    }
    Ok(wrong)
}

pub(crate) fn reaper_lock(
    transaction: &Transaction<'_>,
    namespace: i64,
    token: &str,
    hold: Option<Duration>,
) -> SqlResult<bool> {
    let now = transaction.now_second();
    transaction.execute("INSERT OR IGNORE INTO reaper (namespace) VALUES (?1)", [namespace])?;
    let until = hold.map_or(0, |hold| now.saturating_add(clock::whole_seconds(hold)));
    // Freed, it is nobody's at once: its time is over.
    let taken = transaction.execute(
        "UPDATE reaper SET lock_token = ?2, lock_until = ?3
            WHERE namespace = ?1 AND (lock_token IS NULL OR lock_token = ?2 OR lock_until <= ?4)",
        params![namespace, token, until, now],
    )?;
    Ok(hold.is_some() && taken > 0)
}
