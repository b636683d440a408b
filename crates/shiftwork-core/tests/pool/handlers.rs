//! What handlers see: args, context, state, middleware, threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shiftwork_core::job::RawJob;
use shiftwork_core::{Context, Enqueue, HandlerResult, JobOptions, Next, Outcome, WorkerPool};

use super::*;

#[tokio::test(start_paused = true)]
async fn args_that_do_not_fit_are_a_failure_that_names_the_field() {
    let (store, client) = store();
    client.enqueue(Enqueue::json("number", r#"{"n":"seven"}"#)).await.unwrap();
    client.enqueue(Enqueue::json("number", "null")).await.unwrap();
    let pool =
        WorkerPool::new(client).job_with(JobOptions::new().max_fails(1), |_: Number, _: Context| async {});
    drain(pool).await;
    let mut errors: Vec<String> =
        jobs(&store.snapshot().dead).iter().map(|(_, job)| job.error().unwrap().to_owned()).collect();
    errors.sort();
    assert_eq!(errors[0], "args.n: invalid type: string \"seven\", expected i64");
    assert_eq!(errors[1], "args: missing field `n` (the job has no args)");
}

#[tokio::test(start_paused = true)]
async fn a8_args_that_a_lua_script_has_mangled_are_still_read() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Mangled {
        id: i64,
        list: Vec<String>,
        inner: Inner,
    }
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Inner {
        big: u64,
        path: String,
    }
    impl Job for Mangled {
        const NAME: &str = "mangled";
    }
    let (_, client) = store();
    let args = r#"{"inner":{"path":"a\/b","big":1e+14},"list":{},"id":-1.2345678901234e+14}"#;
    client.enqueue(Enqueue::json("mangled", args)).await.unwrap();
    let log = Log::default();
    let seen = log.clone();
    let pool = WorkerPool::new(client).job(move |job: Mangled, _: Context| {
        seen.add(format!("{} {:?} {} {}", job.id, job.list, job.inner.big, job.inner.path));
        async {}
    });
    assert_eq!(drain(pool).await.tally.done, 1);
    assert_eq!(log.lines(), ["-123456789012340 [] 100000000000000 a/b"]);
}

#[tokio::test(start_paused = true)]
async fn middleware_wraps_in_order_and_can_attach_stop_and_change() {
    struct User(&'static str);
    let (_, client) = store();
    client.enqueue_many((0..3).map(|n| Number { n })).await.unwrap();
    let log = Log::default();
    let (outer, inner, handler) = (log.clone(), log.clone(), log.clone());
    let pool = WorkerPool::new(client)
        .concurrency(1)
        .state(100_u64)
        .middleware(move |ctx: Context, next: Next| {
            let outer = outer.clone();
            async move {
                ctx.attach(User("ada"));
                let result: HandlerResult = next.run(ctx.clone()).await;
                outer.add(format!("after {} {}", ctx.name(), result.is_ok()));
                result
            }
        })
        .middleware(move |ctx: Context, next: Next| {
            let inner = inner.clone();
            async move {
                if ctx.job().args() == Some(br#"{"n":1}"#) {
                    inner.add("stopped");
                    return Ok(Outcome::discard("not this one"));
                }
                next.run(ctx).await
            }
        })
        .job(move |job: Number, ctx: Context| {
            let handler = handler.clone();
            async move {
                let (user, number) = (ctx.state::<User>(), ctx.state::<u64>());
                assert!(ctx.try_state::<i8>().is_none());
                handler.add(format!("{} {} {}", job.n, user.0, number));
            }
        });
    let tally = drain(pool).await.tally;
    assert_eq!((tally.done, tally.dropped), (2, 1));
    let wanted =
        ["0 ada 100", "after number true", "stopped", "after number true", "2 ada 100", "after number true"];
    assert_eq!(log.lines(), wanted);
}

#[tokio::test(start_paused = true)]
async fn missing_state_fails_the_job_with_a_message_that_says_what_to_add() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    let pool = WorkerPool::new(client).job(|_: Number, ctx: Context| async move { drop(ctx.state::<u16>()) });
    drain(pool).await;
    let (_, job) = &jobs(&store.snapshot().retry)[0];
    assert!(job.error().unwrap().starts_with("no state of type `u16`: add it with `.state("));
}

#[tokio::test]
async fn blocking_handlers_run_on_the_pools_own_threads_and_no_more_than_it_has_slots() {
    let (_, client) = store();
    client.enqueue_many((0..40).map(|n| Number { n })).await.unwrap();
    let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let pool = WorkerPool::new(client).concurrency(4).blocking_with(
        JobOptions::new().max_fails(1),
        move |job: Number, _: Context| {
            assert_eq!(std::thread::current().name(), Some("shiftwork-blocking"));
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
            assert!(job.n != 7, "seven");
        },
    );
    let tally = drain(pool).await.tally;
    assert_eq!((tally.done, tally.dead), (39, 1));
    assert!(seen.load(Ordering::SeqCst) <= 4);
}

#[tokio::test(start_paused = true)]
async fn a_raw_handler_gets_the_job_as_it_is() {
    let (_, client) = store();
    let receipt = client.enqueue(Enqueue::json("anything", r#"{"b":1,"a":[]}"#)).await.unwrap();
    let log = Log::default();
    let seen = log.clone();
    let pool =
        WorkerPool::new(client).raw("anything", JobOptions::new(), move |job: RawJob, ctx: Context| {
            seen.add(job.args_text().unwrap());
            assert_eq!((job.id(), job.bytes()), (ctx.id(), ctx.job().bytes()));
            async {}
        });
    assert_eq!(drain(pool).await.tally.done, 1);
    assert_eq!(log.lines(), [r#"{"a":[],"b":1}"#]);
    assert_eq!(receipt.job().name(), "anything");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_described_wrongly_does_not_start_and_says_why() {
    let start = |pool: fn(WorkerPool) -> WorkerPool| async move {
        let (store, client) = store();
        let error = pool(WorkerPool::new(client)).start().await.unwrap_err();
        assert!(error.is_config());
        assert!(store.snapshot().pools.is_empty());
        error.to_string()
    };
    assert!(start(|pool| pool).await.contains("no job types"));
    let twice =
        |pool: WorkerPool| pool.job(|_: Number, _: Context| async {}).job(|_: Number, _: Context| async {});
    assert!(start(twice).await.contains("\"number\" is registered twice"));
    let no_slots = |pool: WorkerPool| pool.concurrency(0).job(|_: Number, _: Context| async {});
    assert!(start(no_slots).await.contains("concurrency 0"));
    let comma = |pool: WorkerPool| pool.raw("a,b", JobOptions::new(), |_: RawJob, _: Context| async {});
    assert!(start(comma).await.contains("\"a,b\""));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_refused_before_anything_is_stored() {
    let (store, client) = store();
    let refuse = async |job: Enqueue| {
        let error = client.enqueue(job).await.unwrap_err();
        assert!(error.is_invalid_input(), "{error}");
        error.to_string()
    };
    assert!(refuse(Enqueue::named("a:lock", &())).await.contains("\"a:lock\""));
    assert!(refuse(Enqueue::named("a", &(1, 2))).await.contains("a list"));
    assert!(refuse(Enqueue::named("a", "text")).await.contains("a string"));
    assert!(refuse(Enqueue::named("a", &5)).await.contains("i32 serialise to a number"));
    assert!(refuse(Enqueue::json("a", "[1]")).await.contains("a list"));
    assert!(refuse(Enqueue::json("a", "{")).await.contains("not JSON"));
    let not_a_number = std::collections::HashMap::from([("list", vec![1.0, f64::NAN])]);
    assert!(refuse(Enqueue::named("a", &not_a_number)).await.contains("list.1: NaN"));
    let big = Enqueue::named("a", &std::collections::HashMap::from([("x", "y".repeat(1024 * 1024))]));
    assert!(refuse(big).await.contains("the limit is 1048576"));
    let mixed = client.enqueue_many([Enqueue::named("good", &()), Enqueue::named("", &())]).await;
    assert!(mixed.is_err());
    assert_eq!(store.snapshot(), Snapshot::default());
}

#[tokio::test(start_paused = true)]
async fn a_job_put_off_is_never_early() {
    let (store, client) = store();
    store.advance(Duration::from_millis(300));
    client.enqueue(Enqueue::job(Number { n: 1 }).after(Duration::from_secs(10))).await.unwrap();
    // 1_700_000_010.3 is rounded up.
    assert_eq!(store.snapshot().scheduled[0].0, 1_700_000_011);
}
