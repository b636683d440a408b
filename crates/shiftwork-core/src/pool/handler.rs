//! Handlers: from the functions that users write to one erased shape that the executor runs.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::outcome::{HandlerOutput, HandlerResult};
use crate::job::{RawJob, decode_args};

/// A boxed future that a task can own.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// The args of a job type, and its name.
///
/// The type serialises to a JSON object (a struct with named fields, a map) or to null (a unit struct): that is what the
/// Go library can read.
///
/// ```
/// # use shiftwork_core::Job;
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Welcome {
///     user: u64,
/// }
///
/// impl Job for Welcome {
///     const NAME: &str = "welcome";
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job: it has no name",
    label = "expected a type that implements `Job`",
    note = "write `impl Job for {Self} {{ const NAME: &str = \"…\"; }}` and derive `serde::Serialize` and \
            `serde::Deserialize` for it",
    note = "a handler takes its args by value, not by reference"
)]
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The job type's name, which is also its queue's. Not empty, no comma, and none of the endings that the store
    /// uses itself (`:lock`, `:lock_info`, `:paused`, `:max_concurrency`, `:inprogress`).
    const NAME: &'static str;
}

/// A handler in the shape that the executor runs.
pub(crate) trait Handler: Send + Sync + 'static {
    fn call(&self, ctx: Context) -> BoxFuture<HandlerResult>;
}

/// `async fn(Args, Context)`.
pub(crate) struct Typed<J, F> {
    function: F,
    args: PhantomData<fn(J)>,
}

impl<J, F> Typed<J, F> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, args: PhantomData }
    }
}

impl<J, F, Fut> Handler for Typed<J, F>
where
    J: Job,
    F: Fn(J, Context) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: HandlerOutput,
{
    fn call(&self, ctx: Context) -> BoxFuture<HandlerResult> {
        match decode_args::<J>(ctx.job().args()) {
            Ok(args) => {
                let future = (self.function)(args, ctx);
                Box::pin(async move { future.await.into_result() })
            }
            Err(error) => Box::pin(std::future::ready(Err(error.into()))),
        }
    }
}

/// `async fn(RawJob, Context)`.
pub(crate) struct Raw<F>(pub(crate) F);

impl<F, Fut> Handler for Raw<F>
where
    F: Fn(RawJob, Context) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: HandlerOutput,
{
    fn call(&self, ctx: Context) -> BoxFuture<HandlerResult> {
        let future = (self.0)(ctx.job().clone(), ctx);
        Box::pin(async move { future.await.into_result() })
    }
}

/// `fn(Args, Context)` that blocks its thread.
pub(crate) struct Blocking<J, F> {
    function: Arc<F>,
    args: PhantomData<fn(J)>,
}

impl<J, F> Blocking<J, F> {
    pub(crate) fn new(function: F) -> Self {
        Self { function: Arc::new(function), args: PhantomData }
    }
}

impl<J, F, O> Handler for Blocking<J, F>
where
    J: Job,
    F: Fn(J, Context) -> O + Send + Sync + 'static,
    O: HandlerOutput,
{
    fn call(&self, ctx: Context) -> BoxFuture<HandlerResult> {
        let args = match decode_args::<J>(ctx.job().args()) {
            Ok(args) => args,
            Err(error) => return Box::pin(std::future::ready(Err(error.into()))),
        };
        let function = self.function.clone();
        let threads = ctx.blocking_threads();
        Box::pin(async move {
            let thread = threads.spawn_blocking(move || function(args, ctx).into_result());
            match thread.await {
                Ok(result) => result,
                // The executor makes a failure of it, as with an async handler.
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => Err("the worker pool stopped before a thread was free for this job".into()),
            }
        })
    }
}
