//! Whether a pool is live and ready: asked when somebody wants to know, and so never out of date.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::dispatcher::{Event, Phase};
use super::shared::Shared;

/// How long an answer may take: orchestrators lose patience soon.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a pool is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether its dispatcher reacts. If it does not for long, the process should be started anew: a handler blocks all threads of
    /// the runtime, or something worse.
    pub live: bool,
    /// Whether it can do its work now: the store answers, the heartbeat gets through, and the pool takes jobs.
    pub ready: bool,
    /// What is wrong, in words; empty if nothing is.
    pub problems: Vec<String>,
}

/// Asks a pool how it is, from anywhere. Cheap to clone.
#[derive(Clone)]
pub struct HealthProbe {
    shared: Arc<Shared>,
    dispatcher: mpsc::UnboundedSender<Event>,
    phase: watch::Receiver<Phase>,
}

impl std::fmt::Debug for HealthProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HealthProbe")
    }
}

impl HealthProbe {
    pub(super) fn new(
        shared: Arc<Shared>,
        dispatcher: mpsc::UnboundedSender<Event>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        Self { shared, dispatcher, phase }
    }

    /// Asks. Takes two seconds at most; on a runtime other than the pool's, the answer is also right when that one is blocked.
    pub async fn check(&self) -> Health {
        let mut problems = Vec::new();
        let phase = *self.phase.borrow();
        let (live, store) = tokio::join!(self.dispatcher_reacts(), self.store_answers());
        // A pool that has stopped has no dispatcher any more, and is not stuck.
        let live = live || (phase >= Phase::Quiet && self.dispatcher.is_closed());
        if !live {
            problems.push("the dispatcher does not react: a handler may block the runtime".to_owned());
        }
        if let Err(reason) = store {
            problems.push(reason);
        }
        if self.shared.at_risk() {
            problems.push("the heartbeat does not get through".to_owned());
        }
        if phase >= Phase::Quiet {
            problems.push("the pool takes no more jobs: it is stopping".to_owned());
        }
        Health { live, ready: problems.is_empty(), problems }
    }

    async fn dispatcher_reacts(&self) -> bool {
        let (reply, replied) = oneshot::channel();
        if self.dispatcher.send(Event::Ping(reply)).is_err() {
            return false;
        }
        tokio::time::timeout(PATIENCE, replied).await.is_ok_and(|reply| reply.is_ok())
    }

    async fn store_answers(&self) -> Result<(), String> {
        match tokio::time::timeout(PATIENCE, self.shared.store().time()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the store has not answered within {PATIENCE:?}")),
        }
    }
}
