//! The scheduler: moves jobs whose time has come from the scheduled and retry sets to their queues.
//!
//! It does not poll. It sleeps until the next job is due, and is woken when one is added that is due earlier.

use std::sync::Arc;
use std::time::Duration;

use super::{Pause, Service};
use crate::clock;
use crate::error::Error;
use crate::pool::Shared;
use crate::store::WaitFor;

/// Jobs moved in one call: enough to be fast, few enough that the store serves others in between.
const SLICE: usize = 500;
/// Looks this often even if nothing is due: the store's clock may be set, a wake-up may get lost.
const SAFETY_POLL: Duration = Duration::from_secs(30);

pub(crate) struct Scheduler {
    shared: Arc<Shared>,
}

impl Scheduler {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Service for Scheduler {
    const NAME: &'static str = "scheduler";

    async fn round(&mut self) -> Result<Pause, Error> {
        let sent = clock::now();
        let reply = self.shared.store().promote(SLICE).await?;
        self.shared.clock().observe(sent, reply.now);
        let promoted = reply.value;
        if promoted.moved > 0 {
            self.shared.promoted.notify_one();
        }
        if promoted.buried > 0 {
            tracing::error!(
                target: "shiftwork", count = promoted.buried,
                "items in the scheduled or retry set are not jobs; they are in the dead set now"
            );
        }
        let until_due = promoted.next_due.map(|due| {
            let milliseconds = due.saturating_mul(1000).saturating_sub(reply.now.as_millisecond());
            Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
        });
        Ok(match until_due {
            Some(Duration::ZERO) => Pause { at_most: Duration::ZERO, unless: None, wake: None },
            _ => Pause {
                at_most: until_due.unwrap_or(SAFETY_POLL).min(SAFETY_POLL),
                unless: Some(WaitFor::EarlierDue { than: promoted.next_due }),
                wake: None,
            },
        })
    }
}
