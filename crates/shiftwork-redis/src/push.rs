//! `push`: any number of jobs in one round trip.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{Pipeline, Value};
use shiftwork_core::Error;
use shiftwork_core::clock::{self, Instant};
use shiftwork_core::job::JobName;
use shiftwork_core::store::{JobBytes, Push, Pushed, Timed};

use crate::reply::{array_of, integer, unexpected};
use crate::script::PUSH_UNIQUE;
use crate::store::Inner;

/// Jobs in one command.
const CHUNK: usize = 1000;
/// How long a name counts as registered, as in the Go library.
const KNOWN_FOR: Duration = Duration::from_secs(300);

/// Names that this process has registered lately.
#[derive(Debug, Default)]
pub(crate) struct KnownJobs(Mutex<HashMap<JobName, Instant>>);

impl KnownJobs {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<JobName, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of the jobs' names that are not registered.
    fn missing<'a>(&self, jobs: &'a [Push]) -> Vec<&'a JobName> {
        let (known, now) = (self.lock(), clock::now());
        let fresh =
            |name: &JobName| known.get(name).is_some_and(|at| now.saturating_duration_since(*at) < KNOWN_FOR);
        let mut names: Vec<_> = jobs.iter().map(|job| &job.queue).collect();
        // Mostly many in a row are the same, so this leaves few to look up.
        names.dedup();
        let names: HashSet<_> = names.into_iter().collect();
        names.into_iter().filter(|name| !fresh(name)).collect()
    }

    fn add(&self, names: &[&JobName]) {
        let now = clock::now();
        self.lock().extend(names.iter().map(|name| ((*name).clone(), now)));
    }

    /// The server may have lost them: it was away.
    fn forget(&self) {
        self.lock().clear();
    }
}

/// What a command of the pipeline carries.
enum Command {
    /// Registration or time: says nothing about jobs.
    Other,
    /// Plain jobs, by position.
    Jobs(Vec<usize>),
    /// One unique job, by position.
    Unique(usize),
}

/// Plain jobs for one target that are not in the pipeline yet.
#[derive(Default)]
struct Pending<'a> {
    jobs: Vec<(usize, Option<i64>, &'a JobBytes)>,
}

pub(crate) async fn push(inner: &Inner, jobs: &[Push]) -> Result<Timed<Vec<Pushed>>, Error> {
    let missing = inner.known.missing(jobs);
    let (mut pipeline, commands) = build(inner, jobs, &missing);
    let replies = inner.connection.pipeline(&mut pipeline).await.inspect_err(|_| inner.known.forget())?;
    if replies.len() != commands.len() {
        return Err(unexpected(&Value::Array(Vec::new())));
    }
    let mut pushed = vec![Pushed::Enqueued; jobs.len()];
    let (mut time, mut stored, mut failure) = (Value::Nil, 0, None);
    for (command, reply) in commands.into_iter().zip(replies) {
        match (command, reply) {
            (Command::Other, Ok(value)) => time = value,
            (Command::Unique(position), Ok(value)) => {
                stored += 1;
                if integer(&value)? == 0 {
                    pushed[position] = Pushed::Duplicate;
                }
            }
            (Command::Jobs(positions), Ok(_)) => stored += positions.len(),
            // Without its registration a job is less visible, not lost: an error here would make callers push it twice.
            (Command::Other, Err(error)) if !jobs.is_empty() => {
                tracing::warn!(target: "shiftwork", %error, "the jobs' names could not be registered");
                inner.known.forget();
            }
            (_, Err(error)) => failure = Some(error),
        }
    }
    if let Some(error) = failure {
        inner.known.forget();
        let error = inner.connection.error(&error);
        return Err(match stored {
            0 => error,
            stored => {
                error.context(format!("{stored} of {} jobs were stored, the others were not", jobs.len()))
            }
        });
    }
    inner.known.add(&missing);
    let [seconds, micros] = array_of(time)?;
    Ok(Timed { now: inner.offset.time(&seconds, &micros)?, value: pushed })
}

fn build<'a>(inner: &Inner, jobs: &'a [Push], missing: &[&JobName]) -> (Pipeline, Vec<Command>) {
    let mut pipeline = redis::pipe();
    let mut commands = Vec::new();
    if !missing.is_empty() {
        pipeline.cmd("SADD").arg(inner.keys.known_jobs());
        for name in missing {
            pipeline.arg(name.as_str());
        }
        commands.push(Command::Other);
    }
    // Jobs of one target go into one command, as long as no unique job of that target stands between them.
    let mut pending: Vec<Pending<'a>> = Vec::new();
    let mut places: HashMap<Option<&'a JobName>, usize> = HashMap::new();
    let mut last = None;
    for (position, job) in jobs.iter().enumerate() {
        let target = job.run_at.is_none().then_some(&job.queue);
        let place = match last {
            Some((last_target, place)) if last_target == target => place,
            _ => *places.entry(target).or_insert_with(|| {
                pending.push(Pending::default());
                pending.len() - 1
            }),
        };
        last = Some((target, place));
        let waiting = &mut pending[place];
        match &job.unique {
            None => {
                waiting.jobs.push((position, job.run_at, &job.job));
                if waiting.jobs.len() == CHUNK {
                    flush(inner, target, std::mem::take(waiting), &mut pipeline, &mut commands);
                }
            }
            Some(unique) => {
                flush(inner, target, std::mem::take(waiting), &mut pipeline, &mut commands);
                let key = target.map_or_else(|| inner.keys.scheduled(), |queue| inner.keys.jobs(queue));
                let run_at = job.run_at.map(|at| at.to_string()).unwrap_or_default();
                pipeline
                    .cmd("EVAL")
                    .arg(PUSH_UNIQUE.text())
                    .arg(2)
                    .arg(inner.keys.unique(&unique.key))
                    .arg(key);
                pipeline.arg(&unique.owner).arg(unique.ttl.as_secs().max(1)).arg(&*job.job).arg(run_at);
                commands.push(Command::Unique(position));
            }
        }
    }
    for (target, place) in places {
        flush(inner, target, std::mem::take(&mut pending[place]), &mut pipeline, &mut commands);
    }
    pipeline.cmd("TIME");
    commands.push(Command::Other);
    (pipeline, commands)
}

fn flush(
    inner: &Inner,
    target: Option<&JobName>,
    pending: Pending<'_>,
    pipeline: &mut Pipeline,
    commands: &mut Vec<Command>,
) {
    if pending.jobs.is_empty() {
        return;
    }
    match target {
        Some(queue) => pipeline.cmd("LPUSH").arg(inner.keys.jobs(queue)),
        None => pipeline.cmd("ZADD").arg(inner.keys.scheduled()),
    };
    let mut positions = Vec::with_capacity(pending.jobs.len());
    for (position, run_at, job) in pending.jobs {
        if let Some(at) = run_at {
            pipeline.arg(at);
        }
        pipeline.arg(&**job);
        positions.push(position);
    }
    commands.push(Command::Jobs(positions));
}
