//! Runs one job: handler and middleware inside a task that turns every end into a [`Fate`].

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use super::context::Context;
use super::middleware::Next;
use super::outcome::HandlerResult;
use super::policy::{End, Fate, dead, fate};
use crate::clock;
use crate::error::full_text;
use futures_util::FutureExt;

/// How long a handler may go on after its token has fired because its time was up.
const TIMEOUT_GRACE: Duration = Duration::from_secs(1);
/// The same when the token was fired from outside. A pool that stops gives the job back before; this is for a pool that
/// has lost the job and goes on: it must not lose the slot, too.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// One attempt at a job.
pub(crate) struct Attempt {
    pub(crate) ctx: Context,
    pub(crate) started: clock::Instant,
}

impl Attempt {
    /// Runs it to its end. Never panics, whatever handler, middleware and backoff do.
    pub(crate) async fn run(self) -> Fate {
        let end = self.end().await;
        let now = self.ctx.shared().clock().now().unwrap_or_else(clock::wall_now);
        let job = self.ctx.job();
        let decided =
            std::panic::catch_unwind(AssertUnwindSafe(|| fate(job, &end, &self.ctx.job_type().options, now)));
        let fate = decided.unwrap_or_else(|panic| {
            let reason = format!("the backoff function panicked: {}", panic_text(&*panic));
            dead(job, &reason, now)
        });
        self.log(&end, &fate);
        fate
    }

    /// What waits for a long time is boxed, so that the task of a short job is small.
    async fn end(&self) -> End {
        let next = Next::new(self.ctx.shared().middleware.clone(), self.ctx.job_type().handler.clone());
        let ctx = self.ctx.clone();
        // The call itself is inside, too: a handler may panic before it returns its future.
        let handler = AssertUnwindSafe(async move { next.run(ctx).await }).catch_unwind();
        tokio::pin!(handler);
        let token = self.ctx.token();
        let (reason, grace) = tokio::select! {
            biased;
            caught = &mut handler => return end_of(caught),
            timeout = self.timeout() => (format!("timed out after {timeout:?}"), TIMEOUT_GRACE),
            () = token.cancelled() => ("cancelled".to_owned(), CANCEL_GRACE),
        };
        token.cancel();
        match Box::pin(tokio::time::timeout(grace, &mut handler)).await.map(end_of) {
            // It had all but finished: calling that a failure would run it twice.
            Ok(returned @ End::Returned(_)) => returned,
            Ok(End::Failed(error)) => End::Failed(format!("{reason}: {error}")),
            Err(_) => End::Failed(reason),
        }
    }

    /// Completes when the attempt has taken as long as it may.
    async fn timeout(&self) -> Duration {
        match self.ctx.job_type().options.timeout {
            Some(timeout) => {
                Box::pin(tokio::time::sleep(timeout)).await;
                timeout
            }
            None => std::future::pending().await,
        }
    }

    fn log(&self, end: &End, fate: &Fate) {
        let (name, id) = (self.ctx.name(), self.ctx.id());
        let elapsed = || clock::now().saturating_duration_since(self.started);
        match end {
            End::Failed(error) => tracing::warn!(
                target: "shiftwork", job = name, id, elapsed = ?elapsed(), next = ?fate.kind, error, "job failed"
            ),
            End::Returned(outcome) => tracing::debug!(
                target: "shiftwork", job = name, id, elapsed = ?elapsed(), next = ?fate.kind, ?outcome, "job ended"
            ),
        }
    }
}

fn end_of(caught: Result<HandlerResult, Box<dyn Any + Send>>) -> End {
    match caught {
        Ok(Ok(outcome)) => End::Returned(outcome),
        Ok(Err(error)) => End::Failed(full_text(&*error)),
        Err(panic) => End::Failed(panic_text(&*panic).to_owned()),
    }
}

/// What a panic said. `panic!` carries a `&str` or a `String`; anything else was thrown on purpose.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("the handler panicked with a value that is not text")
}
