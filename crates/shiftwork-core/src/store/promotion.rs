//! What becomes of a due job: the policy of [`Store::promote`](super::Store::promote), the same for every store.

use crate::job::{JobName, RawJob, wrap_malformed};
use crate::store::JobBytes;

/// The name under which a member goes to the dead set when it does not say a usable one itself.
const NAMELESS: &str = "malformed";

/// Where a due member of the scheduled or retry set goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Promotion {
    /// To a queue, whether or not anybody here knows the job type: some pool may.
    Queue {
        /// The queue.
        queue: JobName,
        /// The job with its new time.
        job: JobBytes,
    },
    /// To the dead set: it names no queue that could exist.
    Dead {
        /// The member, wrapped, its bytes kept.
        job: JobBytes,
    },
}

/// Decides where `member` goes at second `now`. Only `t` changes; every other byte stays.
pub fn promotion(member: &[u8], now: i64) -> Promotion {
    let raw = match RawJob::parse(member) {
        Ok(raw) => raw,
        Err(malformed) => return bury(NAMELESS, member, &malformed.to_string(), now),
    };
    match JobName::new(raw.name()) {
        Ok(queue) => Promotion::Queue { queue, job: raw.patch().enqueued_at(now).build().into_bytes() },
        Err(reason) => bury(NAMELESS, member, &reason.to_string(), now),
    }
}

fn bury(name: &str, member: &[u8], reason: &str, now: i64) -> Promotion {
    Promotion::Dead { job: wrap_malformed(name, member, reason, now).into_bytes() }
}
