//! How a job ends, as its handler says it.

use std::time::Duration;

use crate::error::BoxError;

/// What a handler's or a middleware's future resolves to, in its general form.
pub type HandlerResult = Result<Outcome, BoxError>;

/// How a job ended. All of these are values in `Ok`: only a failure is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The job is done.
    Done,
    /// The attempt failed; try again after this delay instead of the usual backoff. Counts as a failure, so the
    /// last one goes to the dead set.
    RetryAfter {
        /// How long to wait.
        delay: Duration,
        /// What goes into the job's error.
        reason: String,
    },
    /// Not now: run it again after this delay. Does not count as a failure.
    Snooze(Duration),
    /// Drop the job for good, with this reason in the log.
    Discard(String),
    /// Put the job into the dead set now, whatever retries it has left, with this reason as its error.
    Die(String),
}

impl Outcome {
    /// [`Outcome::RetryAfter`] with anything that can be shown as the reason.
    pub fn retry_after(delay: Duration, reason: impl ToString) -> Self {
        Self::RetryAfter { delay, reason: reason.to_string() }
    }

    /// [`Outcome::Snooze`].
    pub fn snooze(delay: Duration) -> Self {
        Self::Snooze(delay)
    }

    /// [`Outcome::Discard`] with anything that can be shown as the reason.
    pub fn discard(reason: impl ToString) -> Self {
        Self::Discard(reason.to_string())
    }

    /// [`Outcome::Die`] with anything that can be shown as the reason.
    pub fn die(reason: impl ToString) -> Self {
        Self::Die(reason.to_string())
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Done
    }
}

/// What a handler may return: `()`, an [`Outcome`], `Result<(), E>` or `Result<Outcome, E>`, where `E` is any error.
#[diagnostic::on_unimplemented(
    message = "a job handler can't return `{Self}`",
    label = "this handler's return type",
    note = "return `()`, `Result<(), E>` or `Result<Outcome, E>`, where `E` is any error that is `Send + Sync + 'static` \
            (`shiftwork::Result`, `anyhow::Result` and `std::io::Result<()>` all work)"
)]
pub trait HandlerOutput {
    /// The general form.
    fn into_result(self) -> HandlerResult;
}

impl HandlerOutput for () {
    fn into_result(self) -> HandlerResult {
        Ok(Outcome::Done)
    }
}

impl HandlerOutput for Outcome {
    fn into_result(self) -> HandlerResult {
        Ok(self)
    }
}

impl<T: Into<Outcome>, E: Into<BoxError>> HandlerOutput for Result<T, E> {
    fn into_result(self) -> HandlerResult {
        match self {
            Ok(value) => Ok(value.into()),
            Err(error) => Err(error.into()),
        }
    }
}
