//! What becomes of jobs.

use std::time::Duration;

use shiftwork_core::memory::Fault;
use shiftwork_core::memory::Verb;
use shiftwork_core::store::{Push, Store};
use shiftwork_core::{BoxError, Context, Enqueue, JobOptions, Outcome, WorkerPool};

use super::*;

#[tokio::test(start_paused = true)]
async fn jobs_run_in_order_and_leave_nothing_behind() {
    let (store, client) = store();
    client.enqueue_many((0..5).map(|n| Number { n })).await.unwrap();
    let log = Log::default();
    let seen = log.clone();
    let pool = WorkerPool::new(client).concurrency(1).job(move |job: Number, _: Context| {
        let seen = seen.clone();
        async move { seen.add(job.n) }
    });
    let drained = drain(pool).await;
    assert_eq!(log.lines(), ["0", "1", "2", "3", "4"]);
    assert_eq!((drained.tally.done, drained.complete), (5, true));
    let snapshot = store.snapshot();
    assert_eq!(snapshot.jobs(), 0);
    assert!(snapshot.pools.is_empty(), "the pool has signed off");
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_is_retried_with_its_error_and_then_buried() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let options = JobOptions::new().max_fails(2).backoff(|fails| Duration::from_secs(u64::from(fails) * 42));
    let pool = || {
        WorkerPool::new(client.clone()).job_with(options.clone(), |_: Number, _: Context| async {
            Err::<(), _>(std::io::Error::other("sorry"))
        })
    };
    let drained = drain(pool()).await;
    assert_eq!((drained.tally.retried, drained.left.retry), (1, 1));
    let retry = jobs(&store.snapshot().retry);
    let (at, job) = &retry[0];
    assert_eq!((job.fails(), job.error(), job.failed_at()), (1, Some("sorry"), Some(1_700_000_000)));
    assert!((1_700_000_042..=1_700_000_043).contains(at), "{at}");
    assert!(job.bytes().starts_with(br#"{"name":"number","id":""#), "Go's order of fields");

    store.advance(Duration::from_secs(43));
    store.promote(10).await.unwrap();
    let drained = drain(pool()).await;
    assert_eq!(drained.tally.dead, 1);
    let dead = jobs(&store.snapshot().dead);
    assert_eq!((dead[0].1.fails(), dead[0].1.error()), (2, Some("sorry")));
    assert_nothing_runs(&store.snapshot());
}

#[tokio::test(start_paused = true)]
async fn a_running_pool_retries_by_itself_when_the_time_has_come() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let (done, finished) = tokio::sync::oneshot::channel();
    let done = Mutex::new(Some(done));
    let pool = WorkerPool::new(client)
        .job_with(JobOptions::new().backoff(|_| Duration::from_secs(600)), move |_: Number, ctx: Context| {
            let done = (ctx.attempt() == 2).then(|| done.lock().unwrap().take()).flatten();
            async move {
                match done {
                    Some(done) => done.send(()).map_err(|()| "nobody waits any more"),
                    None => Err("not yet"),
                }
            }
        })
        .start()
        .await
        .unwrap();
    let started = tokio::time::Instant::now();
    finished.await.unwrap();
    let waited = started.elapsed();
    assert!((600..602).contains(&waited.as_secs()), "{waited:?}");
    pool.stop().await;
    assert_eq!(store.snapshot().jobs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a1_skip_dead_means_after_the_retries() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let options = JobOptions::new().max_fails(2).skip_dead().backoff(|_| Duration::from_secs(1));
    let pool = || {
        WorkerPool::new(client.clone())
            .job_with(options.clone(), |_: Number, _: Context| async { Err::<(), BoxError>("no".into()) })
    };
    assert_eq!(drain(pool()).await.tally.retried, 1);
    store.advance(Duration::from_secs(2));
    store.promote(10).await.unwrap();
    let drained = drain(pool()).await;
    assert_eq!((drained.tally.dropped, drained.tally.dead), (1, 0));
    assert_eq!(store.snapshot().jobs(), 0);
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_are_no_failures_do_what_they_say() {
    let (store, client) = store();
    client.enqueue_many((0..5).map(|n| Number { n })).await.unwrap();
    let pool = WorkerPool::new(client).job(|job: Number, _: Context| async move {
        match job.n {
            0 => Outcome::Done,
            1 => Outcome::snooze(Duration::from_secs(30)),
            2 => Outcome::retry_after(Duration::from_secs(60), "rate limited"),
            3 => Outcome::discard("not wanted"),
            _ => Outcome::die("hopeless"),
        }
    });
    let tally = drain(pool).await.tally;
    assert_eq!((tally.done, tally.snoozed, tally.retried, tally.dropped, tally.dead), (1, 1, 1, 1, 1));
    let snapshot = store.snapshot();
    let (at, snoozed) = &jobs(&snapshot.scheduled)[0];
    assert_eq!((*at, snoozed.fails(), snoozed.error()), (1_700_000_030, 0, None));
    let (at, retried) = &jobs(&snapshot.retry)[0];
    assert_eq!((*at, retried.fails(), retried.error()), (1_700_000_060, 1, Some("rate limited")));
    let (_, dead) = &jobs(&snapshot.dead)[0];
    assert_eq!((dead.fails(), dead.error()), (1, Some("hopeless")));
}

#[tokio::test(start_paused = true)]
async fn panics_and_timeouts_are_failures_with_their_message() {
    let (store, client) = store();
    client.enqueue_many((0..3).map(|n| Number { n })).await.unwrap();
    client.enqueue(Other { n: 0 }).await.unwrap();
    let once = JobOptions::new().max_fails(1);
    let pool = WorkerPool::new(client)
        .job_with(once.clone(), |job: Number, _: Context| {
            assert!(job.n != 0, "boom before the future");
            async move {
                assert!(job.n != 1, "boom {}", job.n);
                if job.n == 2 {
                    std::panic::panic_any(5);
                }
            }
        })
        .job_with(once.timeout(Duration::from_secs(7)), |_: Other, ctx: Context| async move {
            ctx.cancelled().await;
            std::future::pending::<()>().await;
        });
    assert_eq!(drain(pool).await.tally.dead, 4);
    let mut errors: Vec<String> =
        jobs(&store.snapshot().dead).iter().map(|(_, job)| job.error().unwrap().to_owned()).collect();
    errors.sort();
    let wanted = [
        "boom 1",
        "boom before the future",
        "the handler panicked with a value that is not text",
        "timed out after 7s",
    ];
    assert_eq!(errors, wanted);
    assert_nothing_runs(&store.snapshot());
}

#[tokio::test(start_paused = true)]
async fn a_backoff_function_that_panics_costs_one_job_and_not_the_pool() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let pool = WorkerPool::new(client)
        .job_with(JobOptions::new().backoff(|_| panic!("bad sums")), |_: Number, _: Context| async {
            Err::<(), _>("failed")
        });
    assert_eq!(drain(pool).await.tally.retried + 1, 1);
    let dead = jobs(&store.snapshot().dead);
    assert_eq!(dead[0].1.error(), Some("the backoff function panicked: bad sums"));
}

#[tokio::test(start_paused = true)]
async fn a56_a_huge_error_is_cut_and_says_so() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let pool =
        WorkerPool::new(client).job(|_: Number, _: Context| async { Err::<(), _>("é".repeat(1_000_000)) });
    drain(pool).await;
    let (_, job) = &jobs(&store.snapshot().retry)[0];
    let error = job.error().unwrap();
    assert!(error.len() <= 4096 && error.ends_with("(2000000 bytes in all)"), "{} bytes", error.len());
}

/// Puts bytes straight into a queue, as a foreign client may.
async fn plant(store: &MemoryStore, queue: &str, bytes: &[u8]) {
    let push = Push { queue: name(queue), job: bytes.into(), run_at: None, unique: None };
    store.push(&[push]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a4_a26_items_that_cannot_run_go_to_the_dead_set_with_the_reason() {
    let (store, client) = store();
    plant(&store, "number", b"not json").await;
    plant(&store, "number", b"\xff\xfe").await;
    plant(&store, "number", br#"{"name":"ghost","id":"g1","t":1,"args":null}"#).await;
    client.enqueue(Number { n: 1 }).await.unwrap();
    let pool = WorkerPool::new(client).job(|_: Number, _: Context| async {});
    let tally = drain(pool).await.tally;
    assert_eq!((tally.done, tally.refused), (1, 3));
    let snapshot = store.snapshot();
    assert_nothing_runs(&snapshot);
    let dead: Vec<_> = jobs(&snapshot.dead).into_iter().map(|(_, job)| job).collect();
    let find = |text: &str| dead.iter().find(|job| job.error().unwrap().contains(text)).unwrap();
    assert_eq!(find("stray job").id(), "g1");
    let malformed: Vec<_> =
        dead.iter().filter(|job| job.error().unwrap().contains("malformed job")).collect();
    let args: Vec<_> = malformed.iter().map(|job| job.args_text().unwrap().into_owned()).collect();
    assert!(args.contains(&r#"{"_raw":"not json"}"#.to_owned()), "{args:?}");
    assert!(args.contains(&r#"{"_raw_base64":"//4="}"#.to_owned()), "{args:?}");
}

#[tokio::test(start_paused = true)]
async fn a10_a57_an_expired_tick_is_dropped_at_its_first_delivery_only() {
    let (store, client) = store();
    plant(&store, "number", br#"{"name":"number","id":"late","t":1,"args":{"n":1},"d":1699999999}"#).await;
    plant(&store, "number", br#"{"name":"number","id":"on time","t":1,"args":{"n":2},"d":1700000000}"#).await;
    plant(
        &store,
        "number",
        br#"{"name":"number","id":"again","t":1,"args":{"n":3},"fails":1,"d":1699999999}"#,
    )
    .await;
    let log = Log::default();
    let seen = log.clone();
    let pool = WorkerPool::new(client).concurrency(1).job(move |_: Number, ctx: Context| {
        seen.add(ctx.id());
        async {}
    });
    let tally = drain(pool).await.tally;
    assert_eq!(log.lines(), ["on time", "again"]);
    assert_eq!((tally.done, tally.expired), (2, 1));
    assert_eq!(store.snapshot().jobs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a33_a_unique_key_is_free_when_the_job_starts_and_not_before() {
    let (store, client) = store();
    let unique = || Enqueue::job(Number { n: 1 }).unique();
    assert!(client.enqueue(unique()).await.unwrap().is_enqueued());
    assert!(client.enqueue(unique()).await.unwrap().is_duplicate());
    // The first answer to "free the key" is lost: the job must wait for a second one.
    store.inject(Verb::Start, Fault::Unavailable);
    let log = Log::default();
    let seen = log.clone();
    let pool = WorkerPool::new(client.clone()).concurrency(1).job(move |_: Number, ctx: Context| {
        let seen = seen.clone();
        async move {
            let push = async |job| Ok::<_, BoxError>(ctx.client().enqueue(job).await?.is_enqueued());
            let unique = || Enqueue::job(Number { n: 1 }).unique();
            match seen.lines().len() {
                // The first job's key is free while it runs: a second one is taken, a third is a duplicate of that.
                0 => {
                    seen.add(format!("first {} {}", push(unique()).await?, push(unique()).await?));
                    Err::<(), BoxError>("once more".into())
                }
                1 => {
                    seen.add(format!("second {}", push(unique().after(Duration::from_secs(3600))).await?));
                    Ok(())
                }
                // The retry of the first job has no key of its own: the one of the job in an hour is not its to free.
                _ => {
                    seen.add(format!("retry {}", push(unique()).await?));
                    Ok(())
                }
            }
        }
    });
    let running = pool.start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(200)).await;
    running.stop().await;
    assert_eq!(log.lines(), ["first true false", "second true", "retry false"]);
    let snapshot = store.snapshot();
    assert_eq!((snapshot.unique.len(), snapshot.scheduled.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a69_a_backoff_of_any_size_is_held_between_now_and_ten_years() {
    let (store, client) = store();
    client.enqueue_many([Number { n: 0 }, Number { n: 1 }]).await.unwrap();
    client.enqueue(Other { n: 0 }).await.unwrap();
    let pool = WorkerPool::new(client)
        .job_with(JobOptions::new().backoff(|_| Duration::MAX), |job: Number, _: Context| async move {
            if job.n == 0 { Ok(Outcome::snooze(Duration::MAX)) } else { Err("later") }
        })
        .job_with(JobOptions::new().max_fails(2).backoff(|_| Duration::ZERO), |_: Other, _: Context| async {
            Err::<(), _>("now")
        });
    let _ = pool.start().await.unwrap().drain(Duration::from_secs(5)).await.unwrap();
    let snapshot = store.snapshot();
    let ten_years = 1_700_000_000 + 10 * 365 * 24 * 3600;
    assert!((ten_years..ten_years + 2).contains(&snapshot.scheduled[0].0), "{}", snapshot.scheduled[0].0);
    let retry: Vec<_> = snapshot.retry.iter().map(|(at, _)| *at).collect();
    assert!(
        retry.iter().all(|at| *at <= 1_700_000_006 || (ten_years..ten_years + 2).contains(at)),
        "{retry:?}"
    );
}
