//! The store seam: what the engine asks of a place that keeps jobs.
//!
//! [`Store`] speaks the domain. Each verb is one atomic transition of jobs; batchable verbs take many at once, and
//! every reply carries the store's time. No database type appears here, and no policy: a store moves exact bytes
//! between places, core decides which and why.
//!
//! # The contract
//!
//! - A job is in exactly one place: its queue, the scheduled set, the retry set, one claim, or the dead set.
//!   Every verb moves jobs in one step that no crash can split.
//! - Job bytes are opaque. A store never re-encodes them; what goes in comes out, bit by bit.
//! - For every queue, the number of running jobs equals the number of claims over all pools, after every verb.
//! - A claim belongs to a pool. Only that pool can finish or release it, once.
//! - First in, first out within a queue; released jobs go back to the head in their old order.
//!
//! The conformance suite (feature `conformance`) is this contract as tests. A store passes all of it or does not ship.

mod periodic;
mod promotion;
mod recovery;
mod shares;
mod types;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use periodic::Tick;
pub(crate) use periodic::{PERIODIC, tick_id};
pub use promotion::{Promotion, promotion};
pub use recovery::*;
pub use shares::{Available, allot, claimable};
pub use types::*;

use crate::error::Error;
use crate::job::{JobName, PoolId};

/// What every verb returns: a boxed future that may run in a task of its own.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<Timed<T>, Error>> + Send + 'a>>;

/// The end of a wait. It carries no time: who is woken should not wait for that, too.
pub type WaitFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// A place that keeps jobs, bound to one namespace. See the [module docs](self) for the contract.
///
/// Errors: [`Error::is_unavailable`] when the store could not be reached (whether the verb took effect is not known),
/// [`Error::is_rejected`] when it answered and refused.
pub trait Store: Debug + Send + Sync + 'static {
    /// Where the jobs are, for logs and screens: never with a password.
    fn describe(&self) -> String;

    /// Adds jobs to their queues or to the scheduled set, and registers their names as known.
    ///
    /// Any number in one round trip, in the given order. A unique job whose key is taken is not added
    /// ([`Pushed::Duplicate`]); all others are. If the call fails, it may have added some.
    fn push<'a>(&'a self, jobs: &'a [Push]) -> StoreFuture<'a, Vec<Pushed>>;

    /// The hot path: finishes claims and makes new ones, in one round trip and one atomic step.
    ///
    /// *Finish*: removes the claim and puts the job where [`Finish::to`] says. Idempotent and fenced: a claim that this
    /// pool does not hold is reported in [`Exchanged::lost`] and nothing is written for it.
    ///
    /// *Claim*: takes up to [`ClaimRequest::limit`] jobs from the given queues, never from a paused queue, never
    /// beyond a queue's max concurrency. Among queues that have jobs to give, the batch is shared in proportion to weight.
    /// Finishes come first, so the room they make can be claimed by the same call.
    fn exchange<'a>(&'a self, request: &'a Exchange) -> StoreFuture<'a, Exchanged>;

    /// [`Store::exchange`] that claims nothing.
    fn finish<'a>(&'a self, pool: &'a PoolId, finishes: Vec<Finish>) -> StoreFuture<'a, Exchanged> {
        Box::pin(async move {
            let request = Exchange { pool: pool.clone(), finishes, claim: ClaimRequest::default() };
            self.exchange(&request).await
        })
    }

    /// [`Store::exchange`] that finishes nothing.
    fn claim<'a>(&'a self, pool: &'a PoolId, claim: ClaimRequest) -> StoreFuture<'a, Vec<Claim>> {
        Box::pin(async move {
            let request = Exchange { pool: pool.clone(), finishes: Vec::new(), claim };
            let reply = self.exchange(&request).await?;
            Ok(Timed { now: reply.now, value: reply.value.claims })
        })
    }

    /// Frees the unique keys of jobs that start for the first time. A key that another Rust job has taken since stays;
    /// one that a Go enqueuer set has no owner written on it and is freed, as the Go library does.
    fn start<'a>(&'a self, started: &'a [Start]) -> StoreFuture<'a, ()>;

    /// Gives claims of this pool back to the head of their queues, the first of the slice to run first.
    /// Claims that the pool does not hold are passed over. Returns how many were given back.
    fn release<'a>(&'a self, pool: &'a PoolId, claims: &'a [Claim]) -> StoreFuture<'a, usize>;

    /// Moves up to `limit` due jobs from the scheduled and retry sets to their queues, oldest first, with `t` set to
    /// now (see [`promotion`]). Malformed members go to the dead set, bytes kept.
    fn promote(&self, limit: usize) -> StoreFuture<'_, Promoted>;

    /// Writes a pool's heartbeat. With [`Beat::register`] the pool is added; without it, a pool that is no longer
    /// registered (a reaper took it for dead) is told so and nothing is written.
    fn beat<'a>(&'a self, beat: &'a Beat) -> StoreFuture<'a, BeatReply>;

    /// Removes a pool that has stopped: its registration, its heartbeat and its bookkeeping of claims that it no
    /// longer has. Claims that are still there stay accounted for, and a reaper finds them.
    fn leave<'a>(&'a self, pool: &'a PoolId, queues: &'a [JobName]) -> StoreFuture<'a, ()>;

    /// A pool's claims as the store sees them, for comparison with what the pool runs.
    fn own_claims<'a>(&'a self, pool: &'a PoolId, queues: &'a [JobName]) -> StoreFuture<'a, Vec<Claim>>;

    /// Puts ticks of periodic jobs into the scheduled set, each once: whichever pool computes it, and never again after it
    /// ran. Returns for each whether it was new.
    fn tick<'a>(&'a self, ticks: &'a [Tick]) -> StoreFuture<'a, Vec<bool>>;

    /// The latest tick that was ever put in for each of these schedules.
    fn last_ticks<'a>(&'a self, schedules: &'a [String]) -> StoreFuture<'a, Vec<Option<i64>>>;

    /// Notes that the ticks with the ids `done` were picked up by a worker, and says of those in `asked` whether they were,
    /// by whomever.
    fn watch<'a>(&'a self, done: &'a [String], asked: &'a [String]) -> StoreFuture<'a, Vec<bool>>;

    /// Writes what workers run, for people to see: any number in one call. A record lives a day if nobody renews it.
    fn observe<'a>(&'a self, observations: &'a [Observation]) -> StoreFuture<'a, ()>;

    /// Looks which pools have fallen silent, unless somebody has just looked. What is seen of pools is remembered in the
    /// store, so it does not matter who looks. See [`Look`] for when a pool counts as silent.
    fn look<'a>(&'a self, look: &'a Look) -> StoreFuture<'a, Looked>;

    /// The newest claims of any pool, at most `limit` of each queue, oldest first, and which workers died with them before.
    fn held<'a>(
        &'a self,
        pool: &'a PoolId,
        queues: &'a [JobName],
        limit: usize,
    ) -> StoreFuture<'a, Vec<Held>>;

    /// Takes claims from a pool that is dead, and removes the pool once it has none left: one step, which does nothing
    /// if the pool has shown any sign of life since the caller looked ([`Recover::witness`]).
    fn recover<'a>(&'a self, recover: &'a Recover) -> StoreFuture<'a, Recovered>;

    /// What the bookkeeping of these queues, and of all others that are known, says, and what is really in progress.
    fn audit<'a>(&'a self, queues: &'a [JobName]) -> StoreFuture<'a, Vec<QueueAudit>>;

    /// Remembers since when these pools, which hold something, are not registered, in their order; forgets all others.
    fn note_unknown<'a>(&'a self, pools: &'a [PoolId]) -> StoreFuture<'a, Vec<i64>>;

    /// Takes or renews the lock that keeps reapers from working at the same time (`Some` with how long it holds if
    /// nobody renews it), or frees it (`None`). Whether `token` holds it now. It spares work; nothing depends on it.
    fn reaper_lock<'a>(&'a self, token: &'a str, hold: Option<Duration>) -> StoreFuture<'a, bool>;

    /// Sets a queue's bookkeeping to what is really in progress. Whether anything had to be changed.
    fn repair<'a>(&'a self, audit: &'a QueueAudit) -> StoreFuture<'a, bool>;

    /// How many jobs wait: in each of these queues (in their order), in the scheduled and in the retry set.
    fn backlog<'a>(&'a self, queues: &'a [JobName]) -> StoreFuture<'a, Backlog>;

    /// Sleeps until there may be something to do; returns at once when there already may be.
    ///
    /// A wake-up is a hint: it may come for nothing, and callers bound the wait by a timer of their own. It is never
    /// dropped between the caller's last look and the start of the wait, because the wait begins by looking.
    fn wait(&self, wait: WaitFor) -> WaitFuture<'_>;

    /// A second way to the same store that shares nothing with the first, opened on the caller's runtime: for
    /// heartbeats, which must get through when the rest is busy or blocked.
    ///
    /// `None` if the store lives inside the process and has nothing to open.
    fn dedicated(&self) -> Option<StoreFuture<'_, Arc<dyn Store>>> {
        None
    }

    /// The store's time, by the cheapest verb.
    fn time(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let reply = self.push(&[]).await?;
            Ok(Timed { now: reply.now, value: () })
        })
    }
}
