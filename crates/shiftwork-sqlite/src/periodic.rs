//! `tick`, `last_ticks` and `watch`.

use rusqlite::params;
use shiftwork_core::clock;
use shiftwork_core::store::Tick;

use crate::due::{DueSets, State};
use crate::errors::SqlResult;
use crate::queues::Queues;
use crate::transaction::Transaction;

/// How long it is remembered that a tick was picked up, in seconds.
const PICKED_UP_TTL: i64 = 86_400;

pub(crate) fn tick(transaction: &Transaction<'_>, namespace: i64, ticks: &[Tick]) -> SqlResult<Vec<bool>> {
    let now = transaction.now_second();
    let (mut queues, mut sets) = (Queues::new(transaction, namespace), DueSets::new(transaction, namespace));
    let mut new = Vec::with_capacity(ticks.len());
    transaction.execute(
        "DELETE FROM tick WHERE namespace = ?1 AND put_in_until <= ?2 AND picked_up_until <= ?2",
        params![namespace, now],
    )?;
    for tick in ticks {
        if tick.at <= now && !tick.late {
            new.push(false);
            continue;
        }
        let remember = clock::whole_seconds(tick.remember);
        let put_in = transaction.execute(
            "INSERT INTO tick (namespace, id, put_in_until) VALUES (?1, ?2, ?3)
                ON CONFLICT DO UPDATE SET put_in_until = ?3 WHERE put_in_until <= ?4",
            params![namespace, tick.id(), tick.at.max(now).saturating_add(remember), now],
        )?;
        new.push(put_in > 0);
        if put_in > 0 {
            transaction.execute(
                "INSERT INTO schedule (namespace, key, last_tick) VALUES (?1, ?2, ?3)
                    ON CONFLICT DO UPDATE SET last_tick = max(last_tick, ?3)",
                params![namespace, tick.schedule, tick.at],
            )?;
            queues.get_or_create(&tick.queue)?.known = true;
            sets.insert(State::Scheduled, tick.at, &tick.job)?;
        }
    }
    queues.save()?;
    sets.save()?;
    Ok(new)
}

pub(crate) fn last_ticks(
    transaction: &Transaction<'_>,
    namespace: i64,
    schedules: &[String],
) -> SqlResult<Vec<Option<i64>>> {
    let last = |schedule: &String| {
        transaction.first(
            "SELECT last_tick FROM schedule WHERE namespace = ?1 AND key = ?2",
            params![namespace, schedule],
            |row| row.get(0),
        )
    };
    schedules.iter().map(last).collect()
}

pub(crate) fn watch(
    transaction: &Transaction<'_>,
    namespace: i64,
    done: &[String],
    asked: &[String],
) -> SqlResult<Vec<bool>> {
    let now = transaction.now_second();
    for id in done {
        transaction.execute(
            "INSERT INTO tick (namespace, id, picked_up_until) VALUES (?1, ?2, ?3)
                ON CONFLICT DO UPDATE SET picked_up_until = ?3",
            params![namespace, id, now + PICKED_UP_TTL],
        )?;
    }
    let picked_up = |id: &String| {
        let found = transaction.first(
            "SELECT 1 FROM tick WHERE namespace = ?1 AND id = ?2 AND picked_up_until > ?3",
            params![namespace, id, now],
            |_| Ok(()),
        )?;
        Ok(found.is_some())
    };
    asked.iter().map(picked_up).collect()
}
