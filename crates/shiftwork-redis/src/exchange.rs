//! `exchange`: the hot path.

use std::collections::HashMap;

use redis::{Cmd, Value};
use shiftwork_core::Error;
use shiftwork_core::job::JobName;
use shiftwork_core::store::{Claim, Destination, Exchange, Exchanged, MAX_CLAIMS, Timed};

use crate::reply::{array, array_of, bytes, integer, unexpected};
use crate::script::EXCHANGE;
use crate::store::Inner;

pub(crate) async fn exchange(inner: &Inner, request: &Exchange) -> Result<Timed<Exchanged>, Error> {
    let queues = Queues::of(request);
    let value: Value =
        EXCHANGE.run(&inner.connection, |command| arguments(inner, request, &queues, command)).await?;
    let [seconds, micros, lost, claims, refused] = array_of(value)?;
    let lost = array(lost)?;
    let lost = lost.iter().map(|index| Ok(usize::try_from(integer(index)?).unwrap_or(usize::MAX)));
    let mut claimed = Vec::new();
    for group in array(claims)? {
        let mut jobs = array(group)?.into_iter();
        let queue = queues.name(jobs.next())?;
        for job in jobs {
            claimed.push(Claim { queue: queue.clone(), job: bytes(job)?.into() });
        }
    }
    if !claimed.is_empty() {
        inner.wake.found(inner, claimed.iter().map(|claim| &claim.queue));
    }
    let mut unusable = Vec::new();
    for item in array(refused)? {
        let [queue, reason] = array_of(item)?;
        let reason = String::from_utf8_lossy(&bytes(reason)?).into_owned();
        unusable.push((queues.name(Some(queue))?.clone(), reason));
    }
    Ok(Timed {
        now: inner.offset.time(&seconds, &micros)?,
        value: Exchanged { lost: lost.collect::<Result<_, Error>>()?, claims: claimed, refused: unusable },
    })
}

/// The queues of a call: those that may be claimed from, then those that only finishes belong to.
struct Queues<'a> {
    names: Vec<&'a JobName>,
    claimable: usize,
    positions: HashMap<&'a JobName, usize>,
}

impl<'a> Queues<'a> {
    fn of(request: &'a Exchange) -> Self {
        let claimable = if request.claim.limit == 0 { &[][..] } else { &request.claim.queues };
        let mut names: Vec<_> = claimable.iter().map(|share| &share.queue).collect();
        let mut positions: HashMap<_, _> = HashMap::new();
        if !request.finishes.is_empty() {
            positions = names.iter().enumerate().map(|(position, name)| (*name, position)).collect();
            for finish in &request.finishes {
                positions.entry(&finish.claim.queue).or_insert_with(|| {
                    names.push(&finish.claim.queue);
                    names.len() - 1
                });
            }
        }
        Self { names, claimable: claimable.len(), positions }
    }

    /// The queue that a script names by its position, from 1.
    fn name(&self, position: Option<Value>) -> Result<&'a JobName, Error> {
        let position = position.ok_or_else(|| unexpected(&Value::Nil))?;
        let index = usize::try_from(integer(&position)? - 1).ok();
        index.and_then(|index| self.names.get(index).copied()).ok_or_else(|| unexpected(&position))
    }
}

fn arguments(inner: &Inner, request: &Exchange, queues: &Queues<'_>, command: &mut Cmd) {
    command.arg(3 + queues.names.len() * 6);
    command.arg(inner.keys.retry()).arg(inner.keys.scheduled()).arg(inner.keys.dead());
    for queue in &queues.names {
        let keys = inner.keys.of_claim(queue, &request.pool);
        command.arg(&keys.jobs).arg(&keys.in_progress).arg(&keys.lock).arg(&keys.lock_info);
        command.arg(&keys.paused).arg(&keys.max_concurrency);
    }
    let limit = request.claim.limit.min(MAX_CLAIMS);
    command.arg(&*request.pool).arg(queues.claimable).arg(limit).arg(format!("{:?}", request.claim.draw));
    for share in &request.claim.queues[..queues.claimable] {
        command.arg(share.weight);
    }
    for finish in &request.finishes {
        command.arg(queues.positions[&finish.claim.queue] + 1);
        let (place, score, job) = match &finish.to {
            Destination::Gone => {
                command.arg(b"0").arg(&*finish.claim.job);
                continue;
            }
            Destination::Retry { at, job } => (b"1", at, job),
            Destination::Scheduled { at, job } => (b"2", at, job),
            Destination::Dead { at, job } => (b"3", at, job),
        };
        command.arg(place).arg(&*finish.claim.job).arg(*score).arg(&**job);
    }
}
