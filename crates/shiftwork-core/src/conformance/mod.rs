//! The contract of [`Store`] as tests: a store passes all of them or does not ship.
//!
//! One file per verb, one function per behaviour. A store's tests implement [`Subject`] and call
//! [`conformance_tests!`](crate::conformance_tests), which makes a test of each behaviour. [`model`] compares a store with
//! [`MemoryStore`], step by step, over random sequences of verbs.

pub mod beat;
pub mod exchange;
pub mod model;
pub mod periodic;
pub mod promote;
pub mod push;
pub mod recovery;
pub mod release;
pub mod shares;
pub mod start;
pub mod wait;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::job::{JobName, NewJob, PoolId};
use crate::memory::{MemoryStore, Snapshot};
use crate::store::{
    Claim, ClaimRequest, Destination, Exchange, Exchanged, Finish, JobBytes, Push, Pushed, QueueShare, Store,
    UniqueLock,
};

/// What a control of a [`Subject`] returns.
pub type Control<'a, T = ()> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store under test, in a fresh and empty namespace, and what a test can do to it from outside.
pub trait Subject: Send + Sync + 'static {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Another way to the same namespace, as another process has.
    fn another(&self) -> Arc<dyn Store>;

    /// Everything in the namespace. Checks on the way what can be checked of the store's own bookkeeping.
    fn snapshot(&self) -> Control<'_, Snapshot>;

    /// Pauses a queue or lets it go on.
    fn set_paused<'a>(&'a self, queue: &'a JobName, paused: bool) -> Control<'a>;

    /// Sets or removes a queue's limit.
    fn set_max_concurrency<'a>(&'a self, queue: &'a JobName, limit: Option<u32>) -> Control<'a>;

    /// Puts bytes into a place as a foreign client may.
    fn plant<'a>(&'a self, place: Place<'a>, job: &'a [u8]) -> Control<'a>;

    /// Sets a unique key as a foreign client may.
    fn set_unique<'a>(&'a self, key: &'a str, owner: &'a str) -> Control<'a>;

    /// Moves the store's clock ahead, for all handles of this subject.
    fn advance(&self, by: Duration);
}

/// Where a foreign client puts something.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// At the end of a queue.
    Queue(&'a JobName),
    /// Into the scheduled set, due at this second.
    Scheduled(i64),
    /// Into the retry set, due at this second.
    Retry(i64),
}

/// Makes a `#[tokio::test]` of every behaviour, for subjects from an `async fn() -> impl Subject`.
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr) => {
        $crate::conformance_tests!(@ $factory;
            push::jobs_keep_their_order push::nothing_gives_the_time push::a_large_push_arrives_whole
            push::a_unique_job_keeps_an_equal_one_out push::scheduled_jobs_go_to_the_scheduled_set
            push::any_bytes_come_out_as_they_went_in push::equal_bytes_are_two_jobs_in_a_queue
            push::order_holds_between_plain_and_unique_jobs push::the_backlog_is_counted
            exchange::a_claim_moves_a_job_and_a_finish_ends_it exchange::finishes_go_where_they_say
            exchange::finishing_is_idempotent_and_fenced exchange::a_limit_of_zero_claims_nothing
            exchange::no_more_than_a_thousand_at_a_time exchange::a_paused_queue_gives_nothing
            exchange::a_limit_holds_over_pools exchange::a_finish_makes_room_for_the_same_call
            exchange::equal_bytes_are_two_claims exchange::concurrent_claims_take_each_job_once
            exchange::own_claims_are_listed_oldest_first exchange::many_finishes_in_one_call
            shares::a_batch_is_shared_by_weight shares::batches_are_those_of_allot shares::shares_hold_in_the_long_run
            start::only_the_owners_key_is_freed start::a_key_set_by_go_is_freed
            release::claims_go_back_to_the_head_in_order release::foreign_claims_are_not_released
            release::many_are_released_in_order
            promote::due_jobs_move_oldest_first promote::slices_are_bounded_and_say_what_is_left
            promote::only_the_time_changes promote::bad_members_do_not_block promote::unknown_types_are_moved_too
            promote::two_promoters_move_each_job_once promote::promoted_jobs_come_due_with_time
            beat::a_pool_registers_and_stays beat::a_removed_pool_is_told_and_nothing_is_written
            beat::limits_are_set_once_and_restored beat::leaving_keeps_claims_accounted_for
            periodic::a_tick_is_put_in_once periodic::ticks_of_the_past_are_not_put_in_unless_they_may_be_late
            periodic::the_last_tick_of_a_schedule_is_remembered periodic::ticks_that_were_picked_up_are_known_to_all
            recovery::only_one_looks_at_a_time recovery::the_reply_to_a_beat_asks_for_a_look
            recovery::a_pool_that_falls_silent_is_found recovery::after_a_gap_everybody_may_show_that_he_lives
            recovery::jobs_of_a_dead_pool_go_to_the_head_in_their_old_order
            recovery::a_pool_that_shows_any_sign_of_life_is_left_alone recovery::a_recovered_pool_is_gone_and_fenced
            recovery::crashes_are_remembered_and_a_job_can_be_buried recovery::an_audit_finds_pools_that_nobody_knows
            recovery::one_reaper_has_the_lock recovery::what_workers_run_is_shown_whole
            wait::work_that_is_there_is_seen_at_once wait::a_push_wakes wait::what_cannot_be_claimed_does_not_wake
            wait::an_unpause_wakes wait::a_finish_that_makes_room_wakes wait::an_earlier_due_job_wakes
            wait::no_wake_up_is_lost
        );

        #[test]
        fn model() {
            $crate::conformance::model::compare($factory);
        }
    };
    (@ $factory:expr; $($module:ident :: $behaviour:ident)*) => {
        $(
            #[tokio::test]
            async fn $behaviour() {
                $crate::conformance::$module::$behaviour(&$factory().await).await;
            }
        )*
    };
}

// ---- words that the behaviours share ----

pub(crate) fn queue(name: &str) -> JobName {
    JobName::new(name).expect("a test's job name is valid")
}

pub(crate) fn pool(id: &str) -> PoolId {
    PoolId::from(id)
}

/// A job with this id, as bytes.
pub(crate) fn job(queue: &str, id: &str) -> JobBytes {
    NewJob { name: queue, id, enqueued_at: 1_700_000_000, args: Some(br#"{"n":1}"#), ..NewJob::default() }
        .encode()
        .into()
}

pub(crate) fn push(queue: &str, job: JobBytes) -> Push {
    Push { queue: self::queue(queue), job, run_at: None, unique: None }
}

pub(crate) fn unique_push(queue: &str, id: &str, key: &str) -> Push {
    let ttl = Duration::from_secs(86_400);
    let unique = Some(UniqueLock { key: key.to_owned(), owner: id.to_owned(), ttl });
    Push { unique, ..push(queue, job(queue, id)) }
}

/// Pushes jobs with the ids `0..count`.
pub(crate) async fn fill(store: &Arc<dyn Store>, queue: &str, count: usize) -> Vec<JobBytes> {
    let jobs: Vec<_> = (0..count).map(|id| job(queue, &id.to_string())).collect();
    let pushes: Vec<_> = jobs.iter().map(|job| push(queue, job.clone())).collect();
    let pushed = store.push(&pushes).await.expect("a push").value;
    assert_eq!(pushed, vec![Pushed::Enqueued; count]);
    jobs
}

pub(crate) fn request(queues: &[(&str, u32)], limit: usize) -> ClaimRequest {
    let queues =
        queues.iter().map(|(name, weight)| QueueShare { queue: queue(name), weight: *weight }).collect();
    ClaimRequest { limit, queues, draw: 0.5 }
}

/// Claims from one queue.
pub(crate) async fn claim(store: &Arc<dyn Store>, pool: &PoolId, queue: &str, limit: usize) -> Vec<Claim> {
    store.claim(pool, request(&[(queue, 1)], limit)).await.expect("a claim").value
}

pub(crate) fn done(claim: &Claim) -> Finish {
    Finish { claim: claim.clone(), to: Destination::Gone }
}

pub(crate) async fn exchange(store: &Arc<dyn Store>, request: Exchange) -> Exchanged {
    store.exchange(&request).await.expect("an exchange").value
}

pub(crate) fn bytes_of(claims: &[Claim]) -> Vec<JobBytes> {
    claims.iter().map(|claim| claim.job.clone()).collect()
}

/// The subject that every other one is compared with.
#[derive(Debug)]
pub struct MemorySubject(pub MemoryStore);

impl Subject for MemorySubject {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn another(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn snapshot(&self) -> Control<'_, Snapshot> {
        Box::pin(async { self.0.snapshot() })
    }

    fn set_paused<'a>(&'a self, queue: &'a JobName, paused: bool) -> Control<'a> {
        Box::pin(async move { self.0.set_paused(queue, paused) })
    }

    fn set_max_concurrency<'a>(&'a self, queue: &'a JobName, limit: Option<u32>) -> Control<'a> {
        Box::pin(async move { self.0.set_max_concurrency(queue, limit) })
    }

    fn plant<'a>(&'a self, place: Place<'a>, job: &'a [u8]) -> Control<'a> {
        Box::pin(async move { self.0.plant(place, job) })
    }

    fn set_unique<'a>(&'a self, key: &'a str, owner: &'a str) -> Control<'a> {
        Box::pin(async move { self.0.set_unique(key, owner) })
    }

    fn advance(&self, by: Duration) {
        self.0.advance(by);
    }
}
