//! `promote`: read a slice of due jobs, decide here where each goes, swap exact bytes for exact bytes.
//!
//! No script takes a job apart: Redis's JSON library rounds large integers and turns empty lists into objects.

use std::collections::HashMap;

use redis::Value;
use shiftwork_core::Error;
use shiftwork_core::store::{Promoted, Promotion, Timed, promotion};

use crate::reply::{array, array_of, bytes, due_second, integer, script_time};
use crate::script::{DUE, PROMOTE};
use crate::store::Inner;

/// Jobs in one call: the script pushes each on its own, so this bounds how long the server is busy.
const MAX_SLICE: usize = 1000;

pub(crate) async fn promote(inner: &Inner, limit: usize) -> Result<Timed<Promoted>, Error> {
    let limit = limit.min(MAX_SLICE);
    let reply: Value = DUE
        .run(&inner.connection, |command| {
            command.arg(2).arg(inner.keys.scheduled()).arg(inner.keys.retry());
            command.arg(limit).arg(inner.offset.micros());
        })
        .await?;
    let [seconds, micros, scheduled, retry, lowest_scheduled, lowest_retry] = array_of(reply)?;
    let second = integer(&seconds)?;
    let now = script_time(&seconds, &micros)?;
    let mut jobs = Vec::new();
    for (set, members) in [(1, scheduled), (2, retry)] {
        for member in array(members)? {
            let member = bytes(member)?;
            let promotion = promotion(&member, second);
            jobs.push((set, member, promotion));
        }
    }
    if jobs.is_empty() {
        let next_due = earlier(due_second(&lowest_scheduled)?, due_second(&lowest_retry)?);
        return Ok(Timed { now, value: Promoted { next_due, ..Promoted::default() } });
    }
    let value = swap(inner, second, &jobs).await?;
    Ok(Timed { now, value })
}

async fn swap(inner: &Inner, now: i64, jobs: &[(i32, Vec<u8>, Promotion)]) -> Result<Promoted, Error> {
    let keys = &inner.keys;
    let mut names = Vec::new();
    let mut positions = HashMap::new();
    for (_, _, promotion) in jobs {
        if let Promotion::Queue { queue, .. } = promotion {
            positions.entry(queue).or_insert_with(|| {
                names.push(queue);
                4 + names.len()
            });
        }
    }
    let reply: Value = PROMOTE
        .run(&inner.connection, |command| {
            command.arg(4 + names.len());
            command.arg(keys.scheduled()).arg(keys.retry()).arg(keys.dead()).arg(keys.known_jobs());
            names.iter().for_each(|name| {
                command.arg(keys.jobs(name));
            });
            command.arg(now);
            for (set, member, promotion) in jobs {
                command.arg(*set).arg(member);
                match promotion {
                    Promotion::Queue { queue, job } => {
                        command.arg(positions[queue]).arg(queue.as_str()).arg(&**job);
                    }
                    Promotion::Dead { job } => {
                        command.arg(0).arg("").arg(&**job);
                    }
                }
            }
        })
        .await?;
    let [moved, buried, scheduled, retry] = array_of(reply)?;
    let count = |value| Ok::<_, Error>(usize::try_from(integer(value)?).unwrap_or(0));
    Ok(Promoted {
        moved: count(&moved)?,
        buried: count(&buried)?,
        next_due: earlier(due_second(&scheduled)?, due_second(&retry)?),
    })
}

fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    [one, other].into_iter().flatten().min()
}
