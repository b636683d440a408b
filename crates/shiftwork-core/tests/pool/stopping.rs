//! How a pool stops, and what it leaves.

use std::time::Duration;

use shiftwork_core::{Context, JobOptions, WorkerPool};

use super::*;

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_what_runs_and_claims_no_more() {
    let (store, client) = store();
    client.enqueue_many((0..10).map(|n| Number { n })).await.unwrap();
    let pool = WorkerPool::new(client).concurrency(2).job(|_: Number, _: Context| async {
        tokio::time::sleep(Duration::from_secs(10)).await;
    });
    let pool = pool.start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let tally = pool.stop().await;
    assert_eq!((tally.done, tally.released), (2, 0));
    let snapshot = store.snapshot();
    assert_eq!(snapshot.queue("number").jobs.len(), 8);
    assert_nothing_runs(&snapshot);
    assert!(snapshot.pools.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a44_what_does_not_end_in_time_is_cancelled_and_then_given_back_in_order() {
    let (store, client) = store();
    client.enqueue_many((0..5).map(|n| Number { n })).await.unwrap();
    let before: Vec<_> = store.snapshot().queue("number").jobs;
    let log = Log::default();
    let seen = log.clone();
    let pool = WorkerPool::new(client)
        .concurrency(3)
        .shutdown_timeout(Duration::from_secs(20))
        .job(move |job: Number, ctx: Context| {
            let seen = seen.clone();
            async move {
                ctx.cancelled().await;
                seen.add(job.n);
                if job.n != 1 {
                    std::future::pending::<()>().await;
                }
            }
        })
        .start()
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = tokio::time::Instant::now();
    let tally = pool.stop().await;
    let took = asked.elapsed();
    assert!((20..=25).contains(&took.as_secs()), "{took:?}");
    // Job 1 minded its token and is done; jobs 0 and 2 did not and go back to the head, in their old order.
    assert_eq!((tally.done, tally.released), (1, 2));
    assert_eq!(log.lines().len(), 3);
    let snapshot = store.snapshot();
    let wanted = [&before[0], &before[2], &before[3], &before[4]];
    assert_eq!(snapshot.queue("number").jobs.iter().collect::<Vec<_>>(), wanted);
    assert_nothing_runs(&snapshot);
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_cuts_the_waiting_short() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let pool = WorkerPool::new(client).job(|_: Number, ctx: Context| async move { ctx.cancelled().await });
    let pool = pool.start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = tokio::time::Instant::now();
    let tally = pool.stop_unless(tokio::time::sleep(Duration::from_secs(3))).await;
    assert_eq!(asked.elapsed().as_secs(), 3);
    assert_eq!(tally.done, 1);
    assert_eq!(store.snapshot().jobs(), 0);
}

#[tokio::test]
async fn a_hung_blocking_handler_does_not_keep_the_pool_from_stopping() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let (started, running) = tokio::sync::oneshot::channel();
    let started = Mutex::new(Some(started));
    let (_hold, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let pool = WorkerPool::new(client)
        .shutdown_timeout(Duration::from_millis(10))
        .blocking_with(JobOptions::new(), move |_: Number, _: Context| {
            started.lock().unwrap().take().map(|started| started.send(()));
            let _ = gate.lock().unwrap().recv();
        })
        .start()
        .await
        .unwrap();
    running.await.unwrap();
    let tally = pool.stop().await;
    assert_eq!(tally.released, 1);
    assert_eq!(store.snapshot().queue("number").jobs.len(), 1);
    assert_nothing_runs(&store.snapshot());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_pool_gives_back_what_an_exchange_under_way_still_brings() {
    let (store, client) = store();
    let pool = WorkerPool::new(client.clone()).job(|_: Number, _: Context| async {}).start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.enqueue_many((0..3).map(|n| Number { n })).await.unwrap();
    let tally = pool.stop().await;
    let left = store.snapshot().queue("number");
    assert_eq!(tally.done + left.jobs.len(), 3);
    assert_eq!(left.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_handle_is_dropped_runs_on() {
    let (store, client) = store();
    let pool = WorkerPool::new(client.clone()).job(|_: Number, _: Context| async {}).start().await.unwrap();
    drop(pool);
    tokio::time::sleep(Duration::from_secs(60)).await;
    client.enqueue(Number { n: 1 }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let snapshot = store.snapshot();
    assert_eq!((snapshot.jobs(), snapshot.pools.len()), (0, 1));
}
