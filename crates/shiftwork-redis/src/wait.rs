//! `wait`: looks, and looks again, ever more seldom.

use std::time::Duration;

use redis::{RedisError, Value};
use shiftwork_core::Error;
use shiftwork_core::job::JobName;
use shiftwork_core::store::{Timed, WaitFor};

use crate::reply::{array_of, due_second, integer};
use crate::store::Inner;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn wait(inner: &Inner, wait: WaitFor) -> Result<Timed<()>, Error> {
    let mut pause = FIRST_PAUSE;
    loop {
        let awaited = match &wait {
            WaitFor::Work { queues } => has_work(inner, queues).await?,
            WaitFor::EarlierDue { than } => has_earlier(inner, *than).await?,
        };
        if awaited {
            let reply: Value = inner.connection.query(&redis::cmd("TIME")).await?;
            let [seconds, micros] = array_of(reply)?;
            return Ok(Timed { now: inner.offset.time(&seconds, &micros)?, value: () });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether one of the queues has jobs, is not paused and has room.
async fn has_work(inner: &Inner, queues: &[JobName]) -> Result<bool, Error> {
    let mut lengths = redis::pipe();
    for queue in queues {
        lengths.cmd("LLEN").arg(inner.keys.jobs(queue));
    }
    let lengths = inner.connection.pipeline(&mut lengths).await?;
    let with_jobs: Vec<_> = queues
        .iter()
        .zip(&lengths)
        .filter(|(_, length)| number(length).unwrap_or(0) > 0)
        .map(|(queue, _)| queue)
        .collect();
    let mut states = redis::pipe();
    for queue in &with_jobs {
        states.cmd("EXISTS").arg(inner.keys.paused(queue));
        states.cmd("GET").arg(inner.keys.max_concurrency(queue)).cmd("GET").arg(inner.keys.lock(queue));
    }
    let states = inner.connection.pipeline(&mut states).await?;
    Ok(states.chunks(3).any(|state| {
        let [paused, max, lock] = state else { return false };
        let max = number(max).unwrap_or(0);
        number(paused) == Some(0) && (max <= 0 || number(lock).unwrap_or(0) < max)
    }))
}

async fn has_earlier(inner: &Inner, than: Option<i64>) -> Result<bool, Error> {
    let mut lowest = redis::pipe();
    for set in [inner.keys.scheduled(), inner.keys.retry()] {
        lowest.cmd("ZRANGE").arg(set).arg(0).arg(0).arg("WITHSCORES");
    }
    for reply in inner.connection.pipeline(&mut lowest).await? {
        let reply = reply.map_err(|error| inner.connection.error(&error))?;
        let Value::Array(items) = reply else { continue };
        if let Some(due) = items.get(1).map(due_second).transpose()?.flatten()
            && than.is_none_or(|than| due < than)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A number, unless the key is missing, of another type, or holds something else.
fn number(reply: &Result<Value, RedisError>) -> Option<i64> {
    reply.as_ref().ok().and_then(|value| integer(value).ok())
}
