//! Waiting jobs and claims: how rows move between the two.

use rusqlite::{CachedStatement, params};
use shiftwork_core::job::PoolId;
use shiftwork_core::store::JobBytes;

use crate::changes::Changed;
use crate::due::digest;
use crate::errors::SqlResult;
use crate::queues::Queue;
use crate::transaction::{Transaction, to_sql};

/// How many claimed rows are left lying before they are swept away. Removing them one by one would write a page of each
/// queue in every transaction.
const SWEEP_AFTER: i64 = 100;

/// The statements that move jobs, prepared once for a request.
pub(crate) struct Jobs<'a> {
    transaction: &'a Transaction<'a>,
    insert: CachedStatement<'a>,
    insert_claim: CachedStatement<'a>,
    delete_claim: CachedStatement<'a>,
}

impl<'a> Jobs<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>) -> SqlResult<Self> {
        let prepare = |sql| transaction.connection().prepare_cached(sql);
        Ok(Self {
            transaction,
            insert: prepare("INSERT INTO job (queue, position, job) VALUES (?1, ?2, ?3)")?,
            insert_claim: prepare(
                "INSERT INTO claim (queue, pool, digest, sequence, job) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?,
            // Of two equal claims the older one goes.
            delete_claim: prepare(
                "DELETE FROM claim WHERE queue = ?1 AND pool = ?2 AND digest = ?3 AND sequence =
                    (SELECT min(sequence) FROM claim WHERE queue = ?1 AND pool = ?2 AND digest = ?3 AND job = ?4)",
            )?,
        })
    }

    /// Adds a job at the end of its queue.
    pub(crate) fn append(&mut self, queue: &mut Queue, job: &[u8]) -> SqlResult<()> {
        self.insert.execute(params![queue.id, queue.tail, job])?;
        queue.tail += 1;
        queue.waiting += 1;
        self.transaction.note(Changed::WORK);
        Ok(())
    }

    /// Puts a job at the head of its queue.
    pub(crate) fn prepend(&mut self, queue: &mut Queue, job: &[u8]) -> SqlResult<()> {
        self.sweep(queue)?;
        queue.head -= 1;
        queue.swept = queue.head;
        self.insert.execute(params![queue.id, queue.head, job])?;
        queue.waiting += 1;
        self.transaction.note(Changed::WORK);
        Ok(())
    }

    /// Claims up to `count` jobs from the head of a queue.
    pub(crate) fn claim(
        &mut self,
        queue: &mut Queue,
        pool: &PoolId,
        count: usize,
    ) -> SqlResult<Vec<JobBytes>> {
        let rows: Vec<(i64, JobBytes)> = self.transaction.all(
            "SELECT position, job FROM job WHERE queue = ?1 AND position >= ?2 ORDER BY position LIMIT ?3",
            params![queue.id, queue.head, to_sql(count)],
            |row| Ok((row.get(0)?, row.get_ref(1)?.as_blob()?.into())),
        )?;
        let Some((last, _)) = rows.last() else { return Ok(Vec::new()) };
        queue.head = last + 1;
        queue.waiting -= rows.len();
        queue.running += rows.len();
        let mut claims = Vec::with_capacity(rows.len());
        for (_, job) in rows {
            self.insert_claim.execute(params![queue.id, &**pool, digest(&job), queue.next_claim, &*job])?;
            queue.next_claim += 1;
            claims.push(job);
        }
        if queue.head - queue.swept >= SWEEP_AFTER {
            self.sweep(queue)?;
        }
        Ok(claims)
    }

    /// Ends a claim; whether the pool held it.
    pub(crate) fn unclaim(&mut self, queue: &mut Queue, pool: &PoolId, job: &[u8]) -> SqlResult<bool> {
        if self.delete_claim.execute(params![queue.id, &**pool, digest(job), job])? == 0 {
            return Ok(false);
        }
        queue.running = queue.running.saturating_sub(1);
        if queue.max_concurrency.is_some_and(|limit| limit > 0) && queue.waiting > 0 {
            self.transaction.note(Changed::WORK);
        }
        Ok(true)
    }

    /// Removes the rows below the head.
    fn sweep(&self, queue: &mut Queue) -> SqlResult<()> {
        if queue.swept < queue.head {
            self.transaction.execute(
                "DELETE FROM job WHERE queue = ?1 AND position < ?2",
                params![queue.id, queue.head],
            )?;
            queue.swept = queue.head;
        }
        Ok(())
    }
}
