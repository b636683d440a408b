//! Middleware: code around handlers.

use std::future::Future;
use std::sync::Arc;

use super::context::Context;
use super::handler::{BoxFuture, Handler};
use super::outcome::{HandlerOutput, HandlerResult};

/// Code around every handler of a pool: it can time or log a job, attach values that the handler reads from the
/// [`Context`], change the outcome, or not run the job at all.
///
/// Any `async fn(Context, Next) -> HandlerResult` is one:
///
/// ```
/// # use shiftwork_core::{Context, HandlerResult, Next};
/// async fn log_slow_jobs(ctx: Context, next: Next) -> HandlerResult {
///     let started = std::time::Instant::now();
///     let result = next.run(ctx.clone()).await;
///     if started.elapsed().as_secs() > 10 {
///         println!("{} took {:?}", ctx.name(), started.elapsed());
///     }
///     result
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a middleware",
    note = "write `async fn name(ctx: Context, next: Next) -> HandlerResult {{ next.run(ctx).await }}`, or implement \
            `Middleware` for a type of your own"
)]
pub trait Middleware: Send + Sync + 'static {
    /// Handles one job; `next.run(ctx)` runs the rest.
    fn handle(&self, ctx: Context, next: Next) -> BoxFuture<HandlerResult>;
}

impl<F, Fut> Middleware for F
where
    F: Fn(Context, Next) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: HandlerOutput,
{
    fn handle(&self, ctx: Context, next: Next) -> BoxFuture<HandlerResult> {
        let future = self(ctx, next);
        Box::pin(async move { future.await.into_result() })
    }
}

/// The rest of the way to the handler.
pub struct Next {
    chain: Arc<[Arc<dyn Middleware>]>,
    position: usize,
    handler: Arc<dyn Handler>,
}

impl std::fmt::Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Next({} more middleware)", self.chain.len() - self.position)
    }
}

impl Next {
    pub(crate) fn new(chain: Arc<[Arc<dyn Middleware>]>, handler: Arc<dyn Handler>) -> Self {
        Self { chain, position: 0, handler }
    }

    /// Runs the remaining middleware and the handler.
    pub fn run(mut self, ctx: Context) -> BoxFuture<HandlerResult> {
        match self.chain.get(self.position).cloned() {
            Some(middleware) => {
                self.position += 1;
                middleware.handle(ctx, self)
            }
            None => self.handler.call(ctx),
        }
    }
}
