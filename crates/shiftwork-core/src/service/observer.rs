//! The observer: writes what the workers run, at most once a second, all in one call.
//!
//! Jobs that are over within half a second are never written: nobody could read them.

use std::sync::Arc;
use std::time::Duration;

use super::{Pause, Service};
use crate::clock;
use crate::error::Error;
use crate::pool::Shared;

/// Time between two writes.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a job has to run to be shown, unless it has something to say.
const MINIMUM: Duration = Duration::from_millis(500);
/// Records live a day; those of longer jobs are written again long before.
const REFRESH: Duration = Duration::from_secs(6 * 60 * 60);
/// Records in one call.
const SLICE: usize = 500;

pub(crate) struct Observer {
    shared: Arc<Shared>,
}

impl Observer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Service for Observer {
    const NAME: &'static str = "observer";

    async fn round(&mut self) -> Result<Pause, Error> {
        let board = &self.shared.board;
        let observations = board.take(clock::now(), MINIMUM, REFRESH);
        for slice in observations.chunks(SLICE) {
            if let Err(error) = self.shared.store().observe(slice).await {
                board.forget();
                return Err(error);
            }
        }
        Ok(match board.is_busy() {
            true => Pause { at_most: PERIOD, unless: None, wake: None },
            // Until a job begins; it is looked at when it has run for a while.
            false => Pause { at_most: Duration::MAX, unless: None, wake: Some(board.changed()) },
        })
    }
}
