//! `tick`, `last_ticks` and `watch`.

use redis::Value;
use shiftwork_core::Error;
use shiftwork_core::store::{Tick, Timed};

use crate::claims::time;
use crate::reply::{array, integer, script_time, unexpected};
use crate::script::TICK;
use crate::store::Inner;

/// Ticks in one script call.
const CHUNK: usize = 500;
/// How long it is remembered that a tick was picked up, in seconds.
const PICKED_UP_TTL: i64 = 86_400;

pub(crate) async fn tick(inner: &Inner, ticks: &[Tick]) -> Result<Timed<Vec<bool>>, Error> {
    let mut new = Vec::with_capacity(ticks.len());
    let mut now = None;
    for chunk in ticks.chunks(CHUNK) {
        let reply: Value = TICK
            .run(&inner.connection, |command| {
                command.arg(2 + 2 * chunk.len()).arg(inner.keys.scheduled()).arg(inner.keys.known_jobs());
                for tick in chunk {
                    command.arg(inner.keys.tick(&tick.id())).arg(inner.keys.last_tick(&tick.schedule));
                }
                command.arg(inner.offset.micros());
                for tick in chunk {
                    command.arg(tick.at).arg(u8::from(tick.late)).arg(tick.remember.as_secs());
                    command.arg(tick.queue.as_str()).arg(&*tick.job);
                }
            })
            .await?;
        let items = array(reply)?;
        let [seconds, micros, flags @ ..] = &items[..] else { return Err(unexpected(&Value::Array(items))) };
        now = Some(script_time(seconds, micros)?);
        for flag in flags {
            new.push(integer(flag)? == 1);
        }
    }
    match now {
        Some(now) => Ok(Timed { now, value: new }),
        None => time(inner, new).await,
    }
}

pub(crate) async fn last_ticks(
    inner: &Inner,
    schedules: &[String],
) -> Result<Timed<Vec<Option<i64>>>, Error> {
    let mut last = Vec::with_capacity(schedules.len());
    if !schedules.is_empty() {
        let mut command = redis::cmd("MGET");
        schedules.iter().for_each(|schedule| {
            command.arg(inner.keys.last_tick(schedule));
        });
        for value in array(inner.connection.query(&command).await?)? {
            last.push(integer(&value).ok());
        }
    }
    time(inner, last).await
}

pub(crate) async fn watch(
    inner: &Inner,
    done: &[String],
    asked: &[String],
) -> Result<Timed<Vec<bool>>, Error> {
    let mut pipeline = redis::pipe();
    for id in done {
        pipeline.cmd("SET").arg(inner.keys.picked_up(id)).arg(1).arg("EX").arg(PICKED_UP_TTL);
    }
    for id in asked {
        pipeline.cmd("EXISTS").arg(inner.keys.picked_up(id));
    }
    let mut picked_up = Vec::with_capacity(asked.len());
    if !pipeline.is_empty() {
        for reply in inner.connection.pipeline(&mut pipeline).await?.into_iter().skip(done.len()) {
            let reply = reply.map_err(|error| Error::rejected("the marks of ticks can't be read", error))?;
            picked_up.push(integer(&reply)? == 1);
        }
    }
    time(inner, picked_up).await
}
