//! Waiting jobs and claims: how rows move between the two.

use rusqlite::params;
use shiftwork_core::job::PoolId;
use shiftwork_core::store::JobBytes;

use crate::changes::Changed;
use crate::due::digest;
use crate::errors::SqlResult;
use crate::queues::Queue;
use crate::transaction::{Transaction, to_sql};

/// Adds a job at the end of its queue.
pub(crate) fn append(transaction: &Transaction<'_>, queue: &mut Queue, job: &[u8]) -> SqlResult<()> {
    insert(transaction, queue, queue.next_position, job)?;
    queue.next_position += 1;
    Ok(())
}

/// Puts a job at the head of its queue.
pub(crate) fn prepend(transaction: &Transaction<'_>, queue: &mut Queue, job: &[u8]) -> SqlResult<()> {
    let head: Option<i64> = transaction
        .first("SELECT min(position) FROM job WHERE queue = ?1", [queue.id], |row| row.get(0))?
        .flatten();
    insert(transaction, queue, head.unwrap_or(queue.next_position) - 1, job)
}

fn insert(transaction: &Transaction<'_>, queue: &mut Queue, position: i64, job: &[u8]) -> SqlResult<()> {
    transaction.execute(
        "INSERT INTO job (queue, position, job) VALUES (?1, ?2, ?3)",
        params![queue.id, position, job],
    )?;
    queue.waiting += 1;
    transaction.note(Changed::WORK);
    Ok(())
}

/// Claims up to `count` jobs from the head of a queue.
pub(crate) fn claim(
    transaction: &Transaction<'_>,
    queue: &mut Queue,
    pool: &PoolId,
    count: usize,
) -> SqlResult<Vec<JobBytes>> {
    let rows: Vec<(i64, JobBytes)> = transaction.all(
        "SELECT position, job FROM job WHERE queue = ?1 ORDER BY position LIMIT ?2",
        params![queue.id, to_sql(count)],
        |row| Ok((row.get(0)?, row.get_ref(1)?.as_blob()?.into())),
    )?;
    let Some((last, _)) = rows.last() else { return Ok(Vec::new()) };
    transaction.execute("DELETE FROM job WHERE queue = ?1 AND position <= ?2", params![queue.id, last])?;
    let mut insert = transaction.connection().prepare_cached(
        "INSERT INTO claim (queue, pool, digest, sequence, job) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (_, job) in &rows {
        insert.execute(params![queue.id, &**pool, digest(job), queue.next_claim, &**job])?;
        queue.next_claim += 1;
    }
    queue.waiting -= rows.len();
    queue.running += rows.len();
    Ok(rows.into_iter().map(|(_, job)| job).collect())
}

/// Ends a claim; whether the pool held it. Of two equal ones the later goes.
pub(crate) fn unclaim(
    transaction: &Transaction<'_>,
    queue: &mut Queue,
    pool: &PoolId,
    job: &[u8],
) -> SqlResult<bool> {
    let ended = transaction.execute(
        "DELETE FROM claim WHERE queue = ?1 AND pool = ?2 AND digest = ?3 AND sequence =
            (SELECT max(sequence) FROM claim WHERE queue = ?1 AND pool = ?2 AND digest = ?3 AND job = ?4)",
        params![queue.id, &**pool, digest(job), job],
    )?;
    if ended == 0 {
        return Ok(false);
    }
    queue.running -= 1;
    if queue.max_concurrency.is_some_and(|limit| limit > 0) && queue.waiting > 0 {
        transaction.note(Changed::WORK);
    }
    Ok(true)
}
