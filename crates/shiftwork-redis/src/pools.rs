//! `beat`, `leave` and `observe`.

use redis::Value;
use shiftwork_core::Error;
use shiftwork_core::job::{JobName, PoolId};
use shiftwork_core::store::{Beat, BeatReply, Observation, Timed};

use crate::claims::time;
use crate::reply::{array_of, integer, script_time};
use crate::script::{BEAT, LEAVE, OBSERVE};
use crate::store::Inner;

pub(crate) async fn beat(inner: &Inner, beat: &Beat) -> Result<Timed<BeatReply>, Error> {
    let mut names: Vec<&str> = beat.queues.iter().map(|limit| limit.queue.as_str()).collect();
    names.sort_unstable();
    let reply: Value = BEAT
        .run(&inner.connection, |command| {
            command.arg(5 + 2 * beat.queues.len());
            command
                .arg(inner.keys.worker_pools())
                .arg(inner.keys.heartbeat(&beat.pool))
                .arg(inner.keys.known_jobs())
                .arg(inner.keys.beats())
                .arg(inner.keys.looked());
            for limit in &beat.queues {
                command.arg(inner.keys.max_concurrency(&limit.queue));
            }
            for limit in &beat.queues {
                command.arg(inner.keys.in_progress(&limit.queue, &beat.pool));
            }
            command
                .arg(&*beat.pool)
                .arg(u8::from(beat.register))
                .arg(inner.offset.micros())
                .arg(u64::try_from(beat.look_after.as_micros()).unwrap_or(u64::MAX))
                .arg(beat.queues.len());
            for limit in &beat.queues {
                let max = limit.max_concurrency.map(|max| max.to_string()).unwrap_or_default();
                command.arg(limit.queue.as_str()).arg(max);
            }
            command.arg("started_at").arg(beat.started_at);
            command.arg("job_names").arg(names.join(","));
            command.arg("concurrency").arg(beat.concurrency);
            command.arg("worker_ids").arg(beat.worker_ids.join(","));
            command.arg("host").arg(&beat.host);
            command.arg("pid").arg(beat.pid);
            // Not the Go library's; it passes over them.
            command.arg("language").arg("rust");
            command.arg("version").arg(env!("CARGO_PKG_VERSION"));
            command.arg("quiet").arg(u8::from(beat.quiet));
        })
        .await?;
    let [seconds, micros, registered, held, look] = array_of(reply)?;
    let now = script_time(&seconds, &micros)?;
    let value = BeatReply {
        registered: integer(&registered)? == 1,
        held: usize::try_from(integer(&held)?).unwrap_or(0),
        look: integer(&look)? == 1,
    };
    Ok(Timed { now, value })
}

pub(crate) async fn leave(inner: &Inner, pool: &PoolId, queues: &[JobName]) -> Result<Timed<()>, Error> {
    let _: i64 = LEAVE
        .run(&inner.connection, |command| {
            command.arg(3 + 2 * queues.len());
            command.arg(inner.keys.worker_pools()).arg(inner.keys.heartbeat(pool)).arg(inner.keys.beats());
            for queue in queues {
                command.arg(inner.keys.lock_info(queue)).arg(inner.keys.in_progress(queue, pool));
            }
            command.arg(&**pool);
        })
        .await?;
    let reply: Value = inner.connection.query(&redis::cmd("TIME")).await?;
    let [seconds, micros] = array_of(reply)?;
    Ok(Timed { now: inner.offset.time(&seconds, &micros)?, value: () })
}

pub(crate) async fn observe(inner: &Inner, observations: &[Observation]) -> Result<Timed<()>, Error> {
    let _: i64 = OBSERVE
        .run(&inner.connection, |command| {
            command.arg(observations.len());
            for observation in observations {
                command.arg(inner.keys.worker(&observation.worker));
            }
            for observation in observations {
                match &observation.job {
                    Some(job) => {
                        command.arg(&job.name).arg(&job.id).arg(job.started_at).arg(&*job.args);
                        match &job.checkin {
                            Some((text, at)) => command.arg(text).arg(at),
                            None => command.arg("").arg(""),
                        };
                    }
                    None => (0..6).for_each(|_| {
                        command.arg("");
                    }),
                }
            }
        })
        .await?;
    time(inner, ()).await
}
