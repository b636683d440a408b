//! A request to one of the threads that work on the file: what to do, and where the result goes.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shiftwork_core::Error;
use shiftwork_core::store::Timed;
use tokio::sync::oneshot;

use crate::errors::{SqlResult, thread_ended};
use crate::transaction::Transaction;

/// Something to do in a transaction. It may be run again if that was rolled back.
pub(crate) trait Request: Send + fmt::Debug {
    /// Does it.
    fn run(&mut self, transaction: &Transaction<'_>) -> SqlResult<()>;

    /// Sends the result, or why there is none.
    fn answer(self: Box<Self>, outcome: Result<(), Error>);

    /// Whether its effect must survive a power cut once it is answered.
    fn is_durable(&self) -> bool;

    /// How far its clock is ahead of the machine's: nothing, but in tests.
    fn clock_offset(&self) -> Duration;
}

/// The request whose action is `F`.
pub(crate) struct Call<F, T> {
    action: F,
    durable: bool,
    clock_offset: Duration,
    value: Option<(Timestamp, T)>,
    reply: oneshot::Sender<Result<Timed<T>, Error>>,
}

/// The result of a [`Call`], when it is there.
pub(crate) struct Reply<T>(oneshot::Receiver<Result<Timed<T>, Error>>);

impl<T> Reply<T> {
    pub(crate) async fn get(self) -> Result<Timed<T>, Error> {
        self.0.await.unwrap_or_else(|_| Err(thread_ended()))
    }
}

impl<F, T> Call<F, T>
where
    F: FnMut(&Transaction<'_>) -> SqlResult<T> + Send + 'static,
    T: Send + 'static,
{
    pub(crate) fn with_reply(
        clock_offset: Duration,
        durable: bool,
        action: F,
    ) -> (Box<dyn Request>, Reply<T>) {
        let (reply, receiver) = oneshot::channel();
        (Box::new(Self { action, durable, clock_offset, value: None, reply }), Reply(receiver))
    }
}

impl<F, T> Request for Call<F, T>
where
    F: FnMut(&Transaction<'_>) -> SqlResult<T> + Send,
    T: Send,
{
    fn run(&mut self, transaction: &Transaction<'_>) -> SqlResult<()> {
        self.value = Some((transaction.now(), (self.action)(transaction)?));
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), Error>) {
        let result = match (outcome, self.value) {
            (Ok(()), Some((now, value))) => Ok(Timed { now, value }),
            (Ok(()), None) => Err(thread_ended()),
            (Err(error), _) => Err(error),
        };
        // Nobody may be waiting any more.
        let _ = self.reply.send(result);
    }

    fn is_durable(&self) -> bool {
        self.durable
    }

    fn clock_offset(&self) -> Duration {
        self.clock_offset
    }
}

impl<F, T> fmt::Debug for Call<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("durable", &self.durable).finish_non_exhaustive()
    }
}
