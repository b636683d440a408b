//! How the store has been answering: one log line for each change of state, and when to try again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::{self, Instant};
use crate::error::Error;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Whether the store is known to be away. A pool has one, so that an outage is one line in the log, not one for each of its
/// parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outage(Arc<AtomicBool>);

/// The state of the connection, as one user of it sees it.
#[derive(Debug)]
pub(crate) struct Link {
    /// Who it is, for the log.
    user: &'static str,
    outage: Outage,
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    since: Instant,
    failures: u32,
    retry_at: Instant,
}

impl Link {
    pub(crate) fn new(user: &'static str, outage: &Outage) -> Self {
        Self { user, outage: outage.clone(), down: None }
    }

    /// A call got no answer, or a refusal. Returns when to try again.
    pub(crate) fn failed(&mut self, error: &Error) -> Instant {
        let now = clock::now();
        if self.down.is_none() && !self.outage.0.swap(true, Ordering::Relaxed) {
            let user = self.user;
            tracing::warn!(target: "shiftwork", user, %error, "the store does not answer; trying again until it does");
        }
        let down = self.down.get_or_insert(Down { since: now, failures: 0, retry_at: now });
        down.failures = down.failures.saturating_add(1);
        down.retry_at = now + pause(down.failures);
        down.retry_at
    }

    /// A call was answered.
    pub(crate) fn answered(&mut self) {
        if let Some(down) = self.down.take()
            && self.outage.0.swap(false, Ordering::Relaxed)
        {
            let outage = clock::now().saturating_duration_since(down.since);
            tracing::info!(target: "shiftwork", user = self.user, ?outage, "the store answers again");
        }
    }

    /// Until when to leave the store alone, while it does not answer.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.down.as_ref().map(|down| down.retry_at)
    }
}

/// Doubling, and never twice the same for two pools: all of them lost the store at the same moment.
fn pause(failures: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1u32 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST_PAUSE).mul_f64(0.5 + fastrand::f64() / 2.0)
}
