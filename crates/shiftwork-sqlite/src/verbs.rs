//! The verbs of [`Store`](shiftwork_core::store::Store) as transactions, beside `promote`, which is in `due.rs`.

use rusqlite::params;
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{
    Available, Backlog, Beat, BeatReply, Claim, ClaimRequest, Destination, Exchange, Exchanged, MAX_CLAIMS,
    NO_OWNER, Push, Pushed, Start, UniqueLock, allot,
};

use crate::changes::Changed;
use crate::due::{DueSets, State};
use crate::errors::SqlResult;
use crate::jobs::Jobs;
use crate::queues::Queues;
use crate::recovery::is_look_due;
use crate::transaction::{Transaction, from_sql, to_sql};

/// How many expired unique keys a heartbeat clears away.
const EXPIRED_AT_ONCE: i64 = 1000;

pub(crate) fn push(transaction: &Transaction<'_>, namespace: i64, jobs: &[Push]) -> SqlResult<Vec<Pushed>> {
    let (mut queues, mut sets) = (Queues::new(transaction, namespace), DueSets::new(transaction, namespace));
    let mut rows = Jobs::new(transaction)?;
    let mut pushed = Vec::with_capacity(jobs.len());
    for push in jobs {
        let queue = queues.get_or_create(&push.queue)?;
        queue.known = true;
        if let Some(unique) = &push.unique
            && !lock_unique(transaction, namespace, unique)?
        {
            pushed.push(Pushed::Duplicate);
            continue;
        }
        match push.run_at {
            Some(at) => sets.insert(State::Scheduled, at, &push.job)?,
            None => rows.append(queue, &push.job)?,
        }
        pushed.push(Pushed::Enqueued);
    }
    queues.save()?;
    sets.save()?;
    Ok(pushed)
}

fn lock_unique(transaction: &Transaction<'_>, namespace: i64, unique: &UniqueLock) -> SqlResult<bool> {
    let now = transaction.now_second();
    let taken = transaction.execute(
        "INSERT INTO unique_key (namespace, key, owner, expires_at) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at WHERE expires_at <= ?5",
        params![namespace, unique.key, unique.owner, now.saturating_add_unsigned(unique.ttl.as_secs()), now],
    )?;
    Ok(taken > 0)
}

pub(crate) fn exchange(
    transaction: &Transaction<'_>,
    namespace: i64,
    request: &Exchange,
) -> SqlResult<Exchanged> {
    let (mut queues, mut sets) = (Queues::new(transaction, namespace), DueSets::new(transaction, namespace));
    let mut jobs = Jobs::new(transaction)?;
    let mut lost = Vec::new();
    for (index, finish) in request.finishes.iter().enumerate() {
        let Claim { queue, job } = &finish.claim;
        let ended = match queues.get(queue)? {
            Some(queue) => jobs.unclaim(queue, &request.pool, job)?,
            None => false,
        };
        if !ended {
            lost.push(index);
            continue;
        }
        match &finish.to {
            Destination::Gone => {}
            Destination::Retry { at, job } => sets.insert(State::Retry, *at, job)?,
            Destination::Scheduled { at, job } => sets.insert(State::Scheduled, *at, job)?,
            Destination::Dead { at, job } => sets.insert(State::Dead, *at, job)?,
        }
    }
    let claims = claim(&mut jobs, &mut queues, &request.pool, &request.claim)?;
    queues.save()?;
    sets.save()?;
    Ok(Exchanged { lost, claims, refused: Vec::new() })
}

fn claim(
    jobs: &mut Jobs<'_>,
    queues: &mut Queues<'_>,
    pool: &PoolId,
    request: &ClaimRequest,
) -> SqlResult<Vec<Claim>> {
    if request.limit == 0 {
        return Ok(Vec::new());
    }
    let mut available = Vec::with_capacity(request.queues.len());
    for share in &request.queues {
        let jobs = queues.get(&share.queue)?.map_or(0, |queue| queue.available());
        available.push(Available { weight: share.weight, jobs });
    }
    let shares = allot(&available, request.limit.min(MAX_CLAIMS), request.draw);
    let mut claims = Vec::new();
    for (share, count) in request.queues.iter().zip(shares) {
        if count > 0
            && let Some(queue) = queues.get(&share.queue)?
        {
            let claimed = jobs.claim(queue, pool, count)?;
            claims.extend(claimed.into_iter().map(|job| Claim { queue: share.queue.clone(), job }));
        }
    }
    Ok(claims)
}

pub(crate) fn start(transaction: &Transaction<'_>, namespace: i64, started: &[Start]) -> SqlResult<()> {
    for start in started {
        for key in &start.keys {
            transaction.execute(
                "DELETE FROM unique_key WHERE namespace = ?1 AND key = ?2 AND owner IN (?3, ?4)",
                params![namespace, key, start.owner, NO_OWNER],
            )?;
        }
    }
    Ok(())
}

pub(crate) fn release(
    transaction: &Transaction<'_>,
    namespace: i64,
    pool: &PoolId,
    claims: &[Claim],
) -> SqlResult<usize> {
    let mut queues = Queues::new(transaction, namespace);
    let mut jobs = Jobs::new(transaction)?;
    let mut released = 0;
    for Claim { queue, job } in claims.iter().rev() {
        let Some(queue) = queues.get(queue)? else { continue };
        if jobs.unclaim(queue, pool, job)? {
            jobs.prepend(queue, job)?;
            released += 1;
        }
    }
    queues.save()?;
    Ok(released)
}

pub(crate) fn beat(transaction: &Transaction<'_>, namespace: i64, beat: &Beat) -> SqlResult<BeatReply> {
    let registered = transaction.first(
        "SELECT 1 FROM pool WHERE namespace = ?1 AND id = ?2",
        params![namespace, &*beat.pool],
        |_| Ok(()),
    )?;
    if !beat.register && registered.is_none() {
        return Ok(BeatReply { registered: false, held: 0, look: false });
    }
    let mut queues = Queues::new(transaction, namespace);
    for limit in &beat.queues {
        let queue = queues.get_or_create(&limit.queue)?;
        queue.known = true;
        if beat.register || queue.max_concurrency.is_none() {
            queue.max_concurrency = limit.max_concurrency.or(queue.max_concurrency);
        }
    }
    queues.save()?;
    let mut job_names: Vec<&str> = beat.queues.iter().map(|limit| limit.queue.as_str()).collect();
    job_names.sort_unstable();
    transaction.execute(
        "INSERT OR REPLACE INTO pool
            (namespace, id, heartbeat_at, started_at, job_names, concurrency, worker_ids, host, pid, quiet)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            namespace,
            &*beat.pool,
            transaction.now_second(),
            beat.started_at,
            job_names.join(","),
            to_sql(beat.concurrency),
            beat.worker_ids.join(","),
            beat.host,
            beat.pid,
            beat.quiet
        ],
    )?;
    clear_expired(transaction, namespace)?;
    if beat.register {
        // It may have raised a limit.
        transaction.note(Changed::WORK);
    }
    let mut held = 0;
    for limit in &beat.queues {
        held += held_by(transaction, namespace, &beat.pool, &limit.queue)?;
    }
    let look = is_look_due(transaction, namespace, beat.look_after)?;
    Ok(BeatReply { registered: true, held, look })
}

/// How many claims a pool has in a queue.
fn held_by(transaction: &Transaction<'_>, namespace: i64, pool: &PoolId, name: &JobName) -> SqlResult<usize> {
    let count = transaction.first(
        "SELECT count(*) FROM claim WHERE queue = (SELECT id FROM queue WHERE namespace = ?1 AND name = ?2) AND pool = ?3",
        params![namespace, name.as_str(), &**pool],
        |row| row.get(0),
    )?;
    Ok(count.map_or(0, from_sql))
}

/// Unique keys whose time is over do nothing any more; somebody has to clear them away.
fn clear_expired(transaction: &Transaction<'_>, namespace: i64) -> SqlResult<()> {
    transaction
        .execute(
            "DELETE FROM unique_key WHERE (namespace, key) IN
                (SELECT namespace, key FROM unique_key WHERE namespace = ?1 AND expires_at <= ?2 LIMIT ?3)",
            params![namespace, transaction.now_second(), EXPIRED_AT_ONCE],
        )
        .map(drop)
}

pub(crate) fn leave(transaction: &Transaction<'_>, namespace: i64, pool: &PoolId) -> SqlResult<()> {
    transaction
        .execute("DELETE FROM pool WHERE namespace = ?1 AND id = ?2", params![namespace, &**pool])
        .map(drop)
}

pub(crate) fn own_claims(
    transaction: &Transaction<'_>,
    namespace: i64,
    pool: &PoolId,
    names: &[JobName],
) -> SqlResult<Vec<Claim>> {
    let mut queues = Queues::new(transaction, namespace);
    let mut own = Vec::new();
    for name in names {
        let Some(queue) = queues.get(name)? else { continue };
        let jobs = transaction.all(
            "SELECT job FROM claim WHERE queue = ?1 AND pool = ?2 ORDER BY sequence",
            params![queue.id, &**pool],
            |row| Ok(row.get_ref(0)?.as_blob()?.into()),
        )?;
        own.extend(jobs.into_iter().map(|job| Claim { queue: name.clone(), job }));
    }
    Ok(own)
}

pub(crate) fn backlog(
    transaction: &Transaction<'_>,
    namespace: i64,
    names: &[JobName],
) -> SqlResult<Backlog> {
    let mut queues = Queues::new(transaction, namespace);
    let mut queued = Vec::new();
    for name in names {
        if let Some(queue) = queues.get(name)?
            && queue.waiting > 0
        {
            queued.push((name.clone(), queue.waiting));
        }
    }
    let sizes =
        transaction.first("SELECT scheduled, retry FROM namespace WHERE id = ?1", [namespace], |row| {
            Ok((from_sql(row.get(0)?), from_sql(row.get(1)?)))
        })?;
    let (scheduled, retry) = sizes.unwrap_or_default();
    Ok(Backlog { queued, scheduled, retry })
}

/// Whether a claim over these queues would give anything.
pub(crate) fn has_work(transaction: &Transaction<'_>, namespace: i64, names: &[JobName]) -> SqlResult<bool> {
    let mut queues = Queues::new(transaction, namespace);
    for name in names {
        if queues.get(name)?.is_some_and(|queue| queue.available() > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}
