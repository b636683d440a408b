//! Priorities, pauses and limits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shiftwork_core::{Context, Enqueue, JobOptions, WorkerPool};

use super::*;

#[tokio::test(start_paused = true)]
async fn jobs_are_taken_in_proportion_to_priority() {
    let (_, client) = store();
    client.enqueue_many((0..4000).map(|n| Number { n })).await.unwrap();
    client.enqueue_many((0..4000).map(|n| Other { n })).await.unwrap();
    let (numbers, others) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count_numbers, count_others) = (numbers.clone(), others.clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stop = Arc::new(Mutex::new(Some(stop)));
    let total = move |numbers: &AtomicUsize, others: &AtomicUsize| {
        if numbers.load(Ordering::SeqCst) + others.load(Ordering::SeqCst) >= 4000 {
            stop.lock().unwrap().take();
        }
    };
    let other_total = total.clone();
    let pool = WorkerPool::new(client)
        .concurrency(7)
        .job_with(JobOptions::new().priority(3), move |_: Number, _: Context| {
            count_numbers.fetch_add(1, Ordering::SeqCst);
            total(&count_numbers, &count_others);
            tokio::time::sleep(Duration::from_millis(1))
        })
        .job_with(JobOptions::new().priority(1), {
            let (numbers, others) = (numbers.clone(), others.clone());
            move |_: Other, _: Context| {
                others.fetch_add(1, Ordering::SeqCst);
                other_total(&numbers, &others);
                tokio::time::sleep(Duration::from_millis(1))
            }
        });
    pool.run_until(stopped).await.unwrap();
    let (numbers, others) = (numbers.load(Ordering::SeqCst) as f64, others.load(Ordering::SeqCst) as f64);
    let share = numbers / (numbers + others);
    // 4,000 draws of 3/4: a standard deviation of 0.007, and systematic draws are far closer than that.
    assert!((share - 0.75).abs() < 0.02, "{share}");
}

#[tokio::test(start_paused = true)]
async fn a64_a_drain_says_what_it_left() {
    let (store, client) = store();
    client.enqueue_many((0..3).map(|n| Number { n })).await.unwrap();
    client.enqueue_many((0..2).map(|n| Other { n })).await.unwrap();
    client.enqueue(Enqueue::job(Other { n: 9 }).after(Duration::from_secs(60))).await.unwrap();
    store.set_paused(&name("other"), true);
    let pool =
        WorkerPool::new(client).job(|_: Number, _: Context| async {}).job(|_: Other, _: Context| async {});
    let drained = drain(pool).await;
    assert_eq!(drained.tally.done, 3);
    assert!(drained.complete);
    assert_eq!(drained.left.queued, [(name("other"), 2)]);
    assert_eq!((drained.left.scheduled, drained.left.retry), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a64_a_drain_that_never_ends_is_cut_short() {
    let (_, client) = store();
    client.enqueue(Number { n: 0 }).await.unwrap();
    let pool = WorkerPool::new(client).job(|job: Number, ctx: Context| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ctx.client().enqueue(Number { n: job.n + 1 }).await.map(drop)
    });
    let drained = pool.drain(Duration::from_secs(30)).await.unwrap();
    assert!(!drained.complete);
    assert!((29..=31).contains(&drained.tally.done), "{drained:?}");
    assert_eq!(drained.left.queued, [(name("number"), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_holds_over_several_pools_and_a_pause_stops_and_resumes() {
    let (store, client) = store();
    client.enqueue_many((0..50).map(|n| Number { n })).await.unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let pool = || {
        let (now, most) = (now.clone(), most.clone());
        WorkerPool::new(client.clone()).concurrency(5).job_with(
            JobOptions::new().max_concurrency(3),
            move |_: Number, _: Context| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let now = now.clone();
                async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                }
            },
        )
    };
    let (one, two) = (pool().start().await.unwrap(), pool().start().await.unwrap());
    tokio::time::sleep(Duration::from_millis(5500)).await;
    store.set_paused(&name("number"), true);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let paused = store.snapshot().queue("number");
    assert_eq!(paused.running(), 0);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(store.snapshot().queue("number").jobs.len(), paused.jobs.len());
    store.set_paused(&name("number"), false);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(store.snapshot().jobs(), 0);
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let done = one.stop().await.done + two.stop().await.done;
    assert_eq!(done, 50);
}

#[tokio::test(start_paused = true)]
async fn an_idle_pool_starts_a_job_at_once_and_asks_for_next_to_nothing_meanwhile() {
    let (_, client) = store();
    let log = Log::default();
    let seen = log.clone();
    let started = tokio::time::Instant::now();
    let pool = WorkerPool::new(client.clone())
        .job(move |_: Number, _: Context| {
            seen.add(started.elapsed().as_millis());
            async {}
        })
        .start()
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(12_345)).await;
    client.enqueue(Number { n: 1 }).await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(log.lines(), ["12345"]);
    pool.stop().await;
}
