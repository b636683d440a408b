//! `wait`: sleeps until the server says that something has changed.
//!
//! A pool about to sleep reads, on a connection of its own with `CLIENT TRACKING`, the keys whose change can make work
//! possible; the server then reports each of them once when it changes, whoever changed it and with whatever command. Nothing is
//! polled. The busy connection is never tracked: that would cost the server half as much again for each job.
//!
//! Here is the waiting itself. [`cache`] holds what the server has said, [`wanted`] what follows from it, [`tracked`] the connection
//! and the check that reports do come. Where they do not (an old server, a proxy, a user who may not), `wait` looks
//! again and again, ever more seldom.

mod cache;
mod tracked;
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use shiftwork_core::clock::{self, Instant};
use shiftwork_core::store::WaitFor;
use shiftwork_core::{Error, job::JobName};

use self::cache::{Ask, Cache, Question};
use self::tracked::{Tracked, Way};
use self::wanted::{Verdict, Wanted};
use crate::reply::integer;
use crate::store::Inner;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often to look without getting to sleep.
const MOST_LOOKS: u32 = 8;

/// What those who wait at one store share.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    tracked: Tracked,
}

impl Wake {
    /// Jobs were claimed from these queues: reports of their keys are worth following at once.
    pub(crate) fn found<'a>(&self, inner: &Inner, queues: impl Iterator<Item = &'a JobName>) {
        self.tracked.found(|| queues.map(|queue| inner.keys.jobs(queue)).collect());
    }
}

/// Completes when there may be what is waited for.
pub(crate) async fn wait(inner: &Arc<Inner>, wait: WaitFor) -> Result<(), Error> {
    let wanted = Wanted::new(&wait, &inner.keys);
    let tracked = &inner.wake.tracked;
    let _here = tracked.waiter();
    // Whether this call has looked or slept: what an earlier one has left behind is not worth a wake-up.
    let mut is_current = false;
    let mut looks = 0;
    loop {
        let mut changes = tracked.changes();
        let connection = match tracked.way(inner).await? {
            Way::Tracked(connection) => connection,
            Way::PollUntil(until) => {
                if poll(inner, &wanted, until).await? {
                    return Ok(());
                }
                continue;
            }
        };
        match tracked.with_cache(|cache| wanted.verdict(cache, clock::now())) {
            // It may have been claimed just now, and the report of that be on its way.
            Verdict::Here if !is_current => {
                tracked.with_cache(|cache| wanted.keys().for_each(|key| cache.forget(key)));
            }
            Verdict::Here => {
                if let Wanted::Due(sets) = &wanted {
                    tracked.with_cache(|cache| sets.iter().for_each(|set| cache.bore_fruit(&set.key)));
                }
                return Ok(());
            }
            // Somebody has pushed, most likely: a claim finds out as fast as another look.
            Verdict::Ask(questions) if is_current && tracked.is_promising(&questions) => return Ok(()),
            // It is all in flux, or the server has room for too few keys: a claim finds out.
            Verdict::Ask(_) if looks == MOST_LOOKS => return Ok(()),
            Verdict::Ask(questions) => {
                is_current = true;
                looks += 1;
                tracked.ask(&connection, &questions).await.map_err(|error| inner.connection.error(&error))?;
            }
            Verdict::NotYet(not_before) => {
                is_current = true;
                if not_before.is_none() {
                    looks = 0;
                }
                tokio::select! {
                    // The sender lives as long as the store.
                    _ = changes.changed() => {}
                    () = sleep_until(not_before) => {}
                }
            }
        }
    }
}

/// Looks again and again until the given moment. Returns whether there is what is waited for.
async fn poll(inner: &Inner, wanted: &Wanted, until: Instant) -> Result<bool, Error> {
    let mut pause = FIRST_PAUSE;
    loop {
        let mut known = Cache::default();
        loop {
            match wanted.verdict(&known, clock::now()) {
                Verdict::Here => return Ok(true),
                Verdict::NotYet(_) => break,
                Verdict::Ask(questions) => {
                    let reading = known.reading(&questions);
                    let replies = inner.connection.pipeline(&mut pipeline_of(&questions)).await?;
                    known.read(reading, &questions, &replies.iter().map(number).collect::<Vec<_>>());
                }
            }
        }
        if clock::now() >= until {
            return Ok(false);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn pipeline_of(questions: &[Question]) -> redis::Pipeline {
    let mut pipeline = redis::pipe();
    for Question { key, ask } in questions {
        match ask {
            Ask::Length => pipeline.cmd("LLEN").arg(key),
            Ask::Exists => pipeline.cmd("EXISTS").arg(key),
            Ask::Number => pipeline.cmd("GET").arg(key),
            Ask::DueBefore(than) => {
                // A score counts as due from the next whole second on.
                let latest =
                    than.map_or_else(|| "+inf".to_owned(), |than| than.saturating_sub(1).to_string());
                pipeline.cmd("ZCOUNT").arg(key).arg("-inf").arg(latest)
            }
        };
    }
    pipeline
}

/// A number; 0 if the key is missing, of another type, or holds something else.
fn number(reply: &Result<Value, redis::RedisError>) -> i64 {
    reply.as_ref().ok().and_then(|value| integer(value).ok()).unwrap_or(0)
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
