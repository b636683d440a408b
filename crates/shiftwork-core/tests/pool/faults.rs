//! What a pool does when the store fails.

use std::time::Duration;

use shiftwork_core::memory::{Fault, Verb};
use shiftwork_core::store::Store;
use shiftwork_core::{Context, WorkerPool};

use super::*;

fn pool(client: Client, log: &Log) -> WorkerPool {
    let seen = log.clone();
    WorkerPool::new(client).concurrency(4).job(move |job: Number, _: Context| {
        let seen = seen.clone();
        async move {
            seen.add(job.n);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_is_not_forgotten_because_the_store_blinked() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let log = Log::default();
    let pool = pool(client, &log).start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..5 {
        store.inject(Verb::Exchange, Fault::Unavailable);
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(store.snapshot().jobs(), 0);
    let tally = pool.stop().await;
    assert_eq!((tally.done, tally.lost), (1, 0));
    assert_eq!(log.lines(), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_a_finish_does_not_finish_twice_and_raises_no_alarm() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let log = Log::default();
    let pool = pool(client, &log).start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    store.inject(Verb::Exchange, Fault::LostReply);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(store.snapshot().jobs(), 0);
    let tally = pool.stop().await;
    assert_eq!((tally.done, tally.lost), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_an_hour_needs_no_restart_and_cancels_nothing() {
    let (store, client) = store();
    client.enqueue_many((0..8).map(|n| Number { n })).await.unwrap();
    let log = Log::default();
    let pool = pool(client.clone(), &log).start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let id = pool.id();
    store.set_outage(true);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.lines().len(), 4);
    store.set_outage(false);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(log.lines().len(), 8);
    assert_eq!(pool.id(), id, "its registration still stood");
    client.enqueue(Number { n: 8 }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let tally = pool.stop().await;
    assert_eq!((tally.done, tally.lost, tally.released), (9, 0, 0));
    assert_eq!(store.snapshot().jobs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a31_a_refused_finish_is_isolated_given_up_and_left_to_reconciliation() {
    let (store, client) = store();
    client.enqueue_many((0..4).map(|n| Number { n })).await.unwrap();
    let log = Log::default();
    let pool = pool(client, &log).start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    // The four end together. The group is refused, then its first half, then the single ones again and again.
    for _ in 0..4 * 5 + 3 {
        store.inject(Verb::Exchange, Fault::Rejected);
    }
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(store.snapshot().queue("number").running(), 4, "their claims stay for now");
    tokio::time::sleep(Duration::from_secs(100)).await;
    let tally = pool.stop().await;
    assert_eq!((tally.done, tally.given_up), (8, 4), "they have run again");
    assert_eq!(store.snapshot().jobs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a2_a_claim_whose_reply_is_lost_goes_back_and_runs() {
    let (store, client) = store();
    let log = Log::default();
    let pool = pool(client.clone(), &log).start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    store.inject(Verb::Exchange, Fault::LostReply);
    client.enqueue_many((0..3).map(|n| Number { n })).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(log.lines(), ["0", "1", "2"]);
    let tally = pool.stop().await;
    assert_eq!((tally.done, tally.released), (3, 3));
    assert_eq!(store.snapshot().jobs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a2_a_pool_that_stops_leaves_no_claim_that_it_does_not_know_of() {
    let (store, client) = store();
    let log = Log::default();
    let pool = pool(client.clone(), &log).start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    store.inject(Verb::Exchange, Fault::LostReply);
    client.enqueue_many((0..3).map(|n| Number { n })).await.unwrap();
    tokio::task::yield_now().await;
    let tally = pool.stop().await;
    let left = store.snapshot().queue("number");
    assert_eq!((tally.done + left.jobs.len(), left.running()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a29_a_pool_that_was_removed_cancels_its_jobs_and_comes_back_under_a_new_id() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let log = Log::default();
    let seen = log.clone();
    let pool = WorkerPool::new(client)
        .job(move |_: Number, ctx: Context| {
            let seen = seen.clone();
            async move {
                seen.add("started");
                ctx.cancelled().await;
                seen.add("cancelled");
                // Not even a handler that goes on for ever keeps its slot.
                std::future::pending::<()>().await;
            }
        })
        .start()
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let old = pool.id();
    store.leave(&old, &[name("number")]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_ne!(pool.id(), old);
    assert_eq!(store.snapshot().pools.into_iter().collect::<Vec<_>>(), [pool.id()]);
    assert_eq!(log.lines(), ["started", "cancelled"]);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let stopping = tokio::time::Instant::now();
    let tally = pool.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(1), "the slot is free again");
    assert_eq!((tally.done, tally.lost), (0, 1), "its late end does nothing");
}

#[tokio::test(start_paused = true)]
async fn a24_a_pool_whose_heartbeat_does_not_get_through_claims_no_more_until_it_does() {
    let (store, client) = store();
    let log = Log::default();
    let pool = pool(client.clone(), &log).start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Beats fail every half second from the fifth on; everything else works.
    for _ in 0..20 {
        store.inject(Verb::Beat, Fault::Unavailable);
    }
    client.enqueue(Number { n: 1 }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(4500)).await;
    assert_eq!(log.lines(), ["1"], "one late beat is no risk");
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.enqueue(Number { n: 2 }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(log.lines(), ["1"], "others may own this pool's jobs by now");
    let id = pool.id();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(log.lines(), ["1", "2"]);
    assert_eq!(pool.id(), id);
    assert_eq!(pool.stop().await.done, 2);
}
