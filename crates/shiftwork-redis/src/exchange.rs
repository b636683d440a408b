//! `exchange`: the hot path.

use std::collections::HashMap;

use redis::{Cmd, Value};
use shiftwork_core::Error;
use shiftwork_core::job::JobName;
use shiftwork_core::store::{Claim, Destination, Exchange, Exchanged, JobBytes, MAX_CLAIMS, Timed};

use crate::reply::{array, array_of, bytes, integer, unexpected};
use crate::script::EXCHANGE;
use crate::store::Inner;

pub(crate) async fn exchange(inner: &Inner, request: &Exchange) -> Result<Timed<Exchanged>, Error> {
    let queues = Queues::of(request);
    let order = queues.order();
    let value: Value = EXCHANGE
        .run(&inner.connection, |command| arguments(inner, request, &queues, &order, command))
        .await?;
    let [seconds, micros, lost, claims, refused] = array_of(value)?;
    let place = |position: &Value| {
        let position = usize::try_from(integer(position)?).unwrap_or(usize::MAX);
        order.get(position).copied().ok_or_else(|| unexpected(&Value::Nil))
    };
    let mut lost = array(lost)?.iter().map(place).collect::<Result<Vec<_>, Error>>()?;
    lost.sort_unstable();
    let mut groups = Vec::new();
    let mut pairs = array(claims)?.into_iter();
    while let (Some(queue), Some(jobs)) = (pairs.next(), pairs.next()) {
        groups.push((queues.index(&queue)?, array(jobs)?));
    }
    // A queue that had more than its first share comes twice.
    groups.sort_by_key(|(index, _)| *index);
    let mut claimed = Vec::new();
    for (index, jobs) in groups {
        for job in jobs {
            claimed.push(Claim { queue: queues.names[index].clone(), job: bytes(job)?.into() });
        }
    }
    if !claimed.is_empty() {
        inner.wake.found(inner, claimed.iter().map(|claim| &claim.queue));
    }
    let mut unusable = Vec::new();
    for item in array(refused)? {
        let [queue, reason] = array_of(item)?;
        let reason = String::from_utf8_lossy(&bytes(reason)?).into_owned();
        unusable.push((queues.names[queues.index(&queue)?].clone(), reason));
    }
    Ok(Timed {
        now: inner.offset.time(&seconds, &micros)?,
        value: Exchanged { lost, claims: claimed, refused: unusable },
    })
}

/// The queues of a call: those that may be claimed from, then those that only finishes belong to.
struct Queues<'a> {
    names: Vec<&'a JobName>,
    claimable: usize,
    /// For each finish the index of its queue.
    of_finishes: Vec<usize>,
}

impl<'a> Queues<'a> {
    fn of(request: &'a Exchange) -> Self {
        let claimable = if request.claim.limit == 0 { &[][..] } else { &request.claim.queues };
        let mut names: Vec<_> = claimable.iter().map(|share| &share.queue).collect();
        let mut of_finishes = Vec::with_capacity(request.finishes.len());
        if !request.finishes.is_empty() {
            let mut indices: HashMap<_, _> =
                names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
            for finish in &request.finishes {
                let index = *indices.entry(&finish.claim.queue).or_insert_with(|| {
                    names.push(&finish.claim.queue);
                    names.len() - 1
                });
                of_finishes.push(index);
            }
        }
        Self { names, claimable: claimable.len(), of_finishes }
    }

    /// The finishes by queue, each by its index.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.of_finishes.len()).collect();
        order.sort_by_key(|&index| self.of_finishes[index]);
        order
    }

    /// The index of the queue that the script names by its position, from 1.
    fn index(&self, position: &Value) -> Result<usize, Error> {
        let index = usize::try_from(integer(position)? - 1).ok();
        index.filter(|index| *index < self.names.len()).ok_or_else(|| unexpected(position))
    }
}

fn arguments(inner: &Inner, request: &Exchange, queues: &Queues<'_>, order: &[usize], command: &mut Cmd) {
    command.arg(3 + queues.names.len() * 6);
    command.arg(inner.keys.retry()).arg(inner.keys.scheduled()).arg(inner.keys.dead());
    for queue in &queues.names {
        let keys = inner.keys.of_claim(queue, &request.pool);
        command.arg(&keys.jobs).arg(&keys.in_progress).arg(&keys.lock).arg(&keys.lock_info);
        command.arg(&keys.paused).arg(&keys.max_concurrency);
    }
    let limit = request.claim.limit.min(MAX_CLAIMS);
    let moves: Vec<_> = order.iter().map(|&index| target(&request.finishes[index].to)).enumerate().collect();
    let moves = moves.iter().filter_map(|(position, target)| target.map(|target| (position, target)));
    command.arg(&*request.pool).arg(queues.claimable).arg(limit).arg(format!("{:?}", request.claim.draw));
    command.arg(moves.clone().count());
    for share in &request.claim.queues[..queues.claimable] {
        command.arg(share.weight);
    }
    for (position, (set, at, job)) in moves {
        command.arg(position).arg(set).arg(at).arg(&**job);
    }
    let queue_of = |index: &usize| queues.of_finishes[*index];
    for group in order.chunk_by(|one, other| queue_of(one) == queue_of(other)) {
        command.arg(queue_of(&group[0]) + 1).arg(group.len());
        for &index in group {
            command.arg(&*request.finishes[index].claim.job);
        }
    }
}

/// The set that a job goes to, by its position among the script's keys, with its score and its new bytes.
fn target(to: &Destination) -> Option<(u8, i64, &JobBytes)> {
    match to {
        Destination::Gone => None,
        Destination::Retry { at, job } => Some((1, *at, job)),
        Destination::Scheduled { at, job } => Some((2, *at, job)),
        Destination::Dead { at, job } => Some((3, *at, job)),
    }
}
