//! From a claim to a job that can run, or to where it goes instead.

use std::sync::Arc;

use jiff::Timestamp;

use super::policy::dead;
use super::registry::{JobType, Registry};
use crate::job::{RawJob, unique_keys_to_free, wrap_malformed};
use crate::store::{Claim, Destination, Finish, Start};

/// A claimed job that can run.
#[derive(Clone)]
pub(in crate::pool) struct Ready {
    pub(in crate::pool) claim: Claim,
    pub(in crate::pool) job: RawJob,
    pub(in crate::pool) job_type: Arc<JobType>,
}

/// What a claim turned out to be.
pub(in crate::pool) enum Intake {
    Run(Ready),
    /// A unique job's first start: its key has to be freed before it runs.
    RunAfter(Ready, Start),
    /// A periodic job whose next tick is due: not to be run any more.
    Expired(Finish),
    /// Not to be run.
    Finish(Finish),
}

/// Looks at one claim at the store's time `now`.
pub(in crate::pool) fn take_in(claim: Claim, registry: &Registry, now: Timestamp) -> Intake {
    let job = match RawJob::parse(claim.job.clone()) {
        Ok(job) => job,
        Err(malformed) => {
            let reason = malformed.to_string();
            tracing::error!(
                target: "shiftwork", queue = &*claim.queue, reason, "an item that is not a job goes to the dead set"
            );
            let at = now.as_second();
            let job = wrap_malformed(&claim.queue, &claim.job, &reason, at).into_bytes();
            return Intake::Finish(Finish { claim, to: Destination::Dead { at, job } });
        }
    };
    let Some(job_type) = registry.get(&claim.queue).cloned() else {
        // Only queues of registered types are claimed, so this is a store that gave what was not asked for.
        return bury(claim, &job, "stray job: no handler", now);
    };
    if job.name() != &*claim.queue {
        // Locks follow the queue that a job came from. Running it as what it says it is would hold the wrong lock.
        let reason = format!(
            "stray job: its name is {:?}, but it was in the queue of {:?}",
            job.name(),
            &*claim.queue
        );
        return bury(claim, &job, &reason, now);
    }
    if is_expired(&job, now) {
        tracing::warn!(
            target: "shiftwork", job = job.name(), id = job.id(), expires_at = job.expires_at(),
            "a periodic job was not started before its next tick; dropped"
        );
        return Intake::Expired(Finish { claim, to: Destination::Gone });
    }
    let first_start = job.is_unique() && job.fails() == 0;
    let ready = Ready { claim, job, job_type };
    if first_start {
        let keys = unique_keys_to_free(ready.job.name(), ready.job.args());
        let owner = ready.job.id().to_owned();
        return Intake::RunAfter(ready, Start { keys: keys.into_iter().collect(), owner });
    }
    Intake::Run(ready)
}

/// `d` counts for the first delivery only: a job that has failed has started in time.
fn is_expired(job: &RawJob, now: Timestamp) -> bool {
    job.fails() == 0 && job.expires_at().is_some_and(|expires_at| now.as_second() > expires_at)
}

fn bury(claim: Claim, job: &RawJob, reason: &str, now: Timestamp) -> Intake {
    tracing::error!(target: "shiftwork", queue = &*claim.queue, id = job.id(), reason, "a job goes to the dead set");
    Intake::Finish(Finish { claim, to: dead(job, reason, now).to })
}
