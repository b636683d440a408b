//! What workers show of the jobs that they run.

use shiftwork_core::Context;
use shiftwork_core::memory::{Fault, Verb};
use shiftwork_core::store::ObservedJob;

use super::*;

/// What is shown, whichever worker shows it.
fn shown(store: &MemoryStore) -> Vec<ObservedJob> {
    store.snapshot().workers.into_values().collect()
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_running_job_is_shown_with_what_it_says_and_goes_with_its_end() {
    let (store, client) = store();
    let pool = WorkerPool::new(client.clone())
        .job(|job: Number, ctx: Context| async move {
            seconds(10).await;
            ctx.progress(1, 4);
            ctx.checkin(format!("i={}", job.n));
            seconds(10).await;
        })
        .start()
        .await
        .unwrap();
    client.enqueue(Number { n: 4000 }).await.unwrap();
    seconds(5).await;
    let job = &shown(&store)[0];
    assert_eq!((&*job.name, &*job.args, &job.checkin), ("number", br#"{"n":4000}"#.as_slice(), &None));
    assert_eq!(job.started_at, 1_700_000_000);
    seconds(7).await;
    assert_eq!(shown(&store)[0].checkin, Some(("i=4000".to_owned(), 1_700_000_010)));
    seconds(15).await;
    assert_eq!(shown(&store), []);
    pool.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a39_a_job_never_shows_what_the_one_before_it_said() {
    let (store, client) = store();
    let kept = Arc::new(Mutex::new(None::<Context>));
    let keep = kept.clone();
    let pool = WorkerPool::new(client.clone())
        .concurrency(1)
        .job(move |job: Number, ctx: Context| {
            if job.n == 1 {
                *keep.lock().unwrap() = Some(ctx.clone());
            }
            async move {
                if job.n == 1 {
                    ctx.checkin("of the first");
                }
                seconds(10).await;
            }
        })
        .start()
        .await
        .unwrap();
    client.enqueue_many([Number { n: 1 }, Number { n: 2 }]).await.unwrap();
    seconds(5).await;
    assert_eq!(shown(&store)[0].checkin.as_ref().unwrap().0, "of the first");
    seconds(10).await;
    // A clone of its context has outlived it.
    kept.lock().unwrap().as_ref().unwrap().checkin("from the grave");
    seconds(3).await;
    let second = &shown(&store)[0];
    assert_eq!((&*second.args, &second.checkin), (br#"{"n":2}"#.as_slice(), &None));
    pool.stop().await;
    assert_eq!(shown(&store), []);
}

#[tokio::test(start_paused = true)]
async fn checking_in_costs_one_write_a_second_and_none_for_jobs_that_are_over_at_once() {
    let (store, client) = store();
    let pool = WorkerPool::new(client.clone())
        .job(|_: Number, ctx: Context| async move {
            for step in 0..3000 {
                ctx.checkin(format!("step {step}"));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .job(|_: Other, _: Context| async {})
        .start()
        .await
        .unwrap();
    client.enqueue_many((0..100).map(|n| Other { n })).await.unwrap();
    client.enqueue(Number { n: 1 }).await.unwrap();
    seconds(3).await;
    let writes = store.calls(Verb::Observe);
    assert!((2..=5).contains(&writes), "{writes} writes in three seconds");
    pool.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_an_outage_kept_from_being_written_is_written_after_it() {
    let (store, client) = store();
    let pool = WorkerPool::new(client.clone())
        .job(|_: Number, ctx: Context| async move {
            ctx.checkin("here");
            seconds(60).await;
        })
        .start()
        .await
        .unwrap();
    client.enqueue(Number { n: 1 }).await.unwrap();
    store.inject(Verb::Observe, Fault::Unavailable);
    seconds(20).await;
    assert_eq!(shown(&store)[0].checkin.as_ref().unwrap().0, "here");
    pool.stop().await;
}
