//! The reaper: jobs of pools that died, of pools that nobody knows, and jobs that kill.

use shiftwork_core::job::PoolId;
use shiftwork_core::memory::{Fault, Verb};
use shiftwork_core::store::{Beat, Claim, ClaimRequest, QueueLimit, QueueShare, Store};
use shiftwork_core::{Context, ReapReport};

use super::*;

/// A pool that claims jobs and is never heard of again.
async fn a_pool_that_dies(store: &MemoryStore, id: &str, jobs: usize) -> Vec<Claim> {
    let pool = PoolId::from(id);
    let beat = Beat {
        pool: pool.clone(),
        register: true,
        started_at: 0,
        queues: vec![QueueLimit { queue: name("number"), max_concurrency: None }],
        concurrency: 5,
        worker_ids: vec![],
        host: "far-away".to_owned(),
        pid: 1,
        quiet: false,
        look_after: Duration::from_secs(2),
    };
    store.beat(&beat).await.unwrap();
    let queues = vec![QueueShare { queue: name("number"), weight: 1 }];
    store.claim(&pool, ClaimRequest { limit: jobs, queues, draw: 0.5 }).await.unwrap().value
}

/// A pool whose handler logs the number of each job, and whose reports are kept.
async fn survivor(
    client: &Client,
    log: &Log,
    reports: &Arc<Mutex<Vec<ReapReport>>>,
) -> shiftwork_core::RunningPool {
    let (log, reports) = (log.clone(), reports.clone());
    WorkerPool::new(client.clone())
        .concurrency(1)
        .job(move |job: Number, _: Context| {
            log.add(job.n);
            async {}
        })
        .on_reap(move |report| reports.lock().unwrap().push(report.clone()))
        .start()
        .await
        .unwrap()
}

async fn until(mut reached: impl FnMut() -> bool) -> Duration {
    let started = tokio::time::Instant::now();
    while !reached() {
        assert!(started.elapsed() < Duration::from_secs(600), "it never comes");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a59_jobs_of_a_killed_worker_run_elsewhere_within_fifteen_seconds() {
    let (store, client) = store();
    let (log, reports) = (Log::default(), Arc::<Mutex<Vec<ReapReport>>>::default());
    let pool = survivor(&client, &log, &reports).await;
    // It has been looking for a while.
    tokio::time::sleep(Duration::from_secs(60)).await;
    store.set_paused(&name("number"), true);
    client.enqueue_many((1..=3).map(|n| Number { n })).await.unwrap();
    store.set_paused(&name("number"), false);
    // Nothing else runs between these two lines.
    assert_eq!(a_pool_that_dies(&store, "dead", 3).await.len(), 3);
    let waited = until(|| log.lines().len() == 3).await;
    assert!((10..=15).contains(&waited.as_secs()), "{waited:?}");
    pool.stop().await;
    assert_nothing_runs(&store.snapshot());
    let reports = reports.lock().unwrap();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].dead_pools[0].returned, 3);
    assert_eq!(reports[0].dead_pools[0].jobs, [name("number")]);
}

#[tokio::test(start_paused = true)]
async fn recovered_jobs_come_before_those_that_waited_behind_them() {
    let (store, client) = store();
    client.enqueue_many((1..=5).map(|n| Number { n })).await.unwrap();
    assert_eq!(a_pool_that_dies(&store, "dead", 5).await.len(), 5);
    client.enqueue_many((6..=7).map(|n| Number { n })).await.unwrap();
    store.set_paused(&name("number"), true);
    let (log, reports) = (Log::default(), Arc::default());
    let pool = survivor(&client, &log, &reports).await;
    until(|| !reports.lock().unwrap().is_empty()).await;
    store.set_paused(&name("number"), false);
    until(|| log.lines().len() == 7).await;
    assert_eq!(log.lines(), ["1", "2", "3", "4", "5", "6", "7"]);
    pool.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a28_a_job_that_kills_three_workers_goes_to_the_dead_set_with_its_history() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    store.set_paused(&name("number"), true);
    let (log, reports) = (Log::default(), Arc::<Mutex<Vec<ReapReport>>>::default());
    let pool = survivor(&client, &log, &reports).await;
    for crash in 0..3 {
        store.set_paused(&name("number"), false);
        // Nothing runs between these two lines.
        let claims = a_pool_that_dies(&store, &format!("victim-{crash}"), 1).await;
        assert_eq!(claims.len(), 1, "crash {crash}");
        store.set_paused(&name("number"), true);
        until(|| reports.lock().unwrap().len() == crash + 1).await;
    }
    let snapshot = store.snapshot();
    assert_eq!(snapshot.queue("number").jobs.len(), 0);
    let dead = jobs(&snapshot.dead);
    let error = dead[0].1.error().unwrap();
    assert!(error.starts_with("3 workers died with this job: at 2023-"), "{error}");
    for crash in 0..3 {
        assert!(error.contains(&format!("in pool victim-{crash} on far-away")), "{error}");
    }
    assert_eq!(dead[0].1.fails(), 1);
    assert_eq!(reports.lock().unwrap()[2].dead_pools[0].buried, 1);
    assert_eq!(log.lines().len(), 0);
    pool.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a23_after_an_outage_nobody_is_reaped() {
    let (store, client) = store();
    let (log, reports) = (Log::default(), Arc::<Mutex<Vec<ReapReport>>>::default());
    let others = [survivor(&client, &log, &reports).await, survivor(&client, &log, &reports).await];
    let ids = others.each_ref().map(|pool| pool.id());
    tokio::time::sleep(Duration::from_secs(20)).await;
    for outage in [15, 60, 3600] {
        store.set_outage(true);
        tokio::time::sleep(Duration::from_secs(outage)).await;
        store.set_outage(false);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(others.each_ref().map(|pool| pool.id()), ids, "they go on under the same ids");
    assert_eq!(*reports.lock().unwrap(), []);
    for pool in others {
        pool.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a68_a_clock_that_is_set_ahead_gets_nobody_reaped() {
    let (store, client) = store();
    let (log, reports) = (Log::default(), Arc::<Mutex<Vec<ReapReport>>>::default());
    let pools = [survivor(&client, &log, &reports).await, survivor(&client, &log, &reports).await];
    tokio::time::sleep(Duration::from_secs(20)).await;
    store.advance(Duration::from_secs(3600));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(*reports.lock().unwrap(), []);
    for pool in pools {
        pool.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a17_a_pool_that_nobody_knows_loses_its_jobs_only_after_a_while() {
    let (store, client) = store();
    client.enqueue_many((1..=2).map(|n| Number { n })).await.unwrap();
    let queues = vec![QueueShare { queue: name("number"), weight: 1 }];
    let claim = ClaimRequest { limit: 2, queues, draw: 0.5 };
    store.claim(&PoolId::from("unregistered"), claim).await.unwrap();
    let (log, reports) = (Log::default(), Arc::<Mutex<Vec<ReapReport>>>::default());
    let pool = survivor(&client, &log, &reports).await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(log.lines().len(), 0, "it may only be about to register");
    until(|| log.lines().len() == 2).await;
    assert_eq!(reports.lock().unwrap()[0].unknown_pools[0].returned, 2);
    pool.stop().await;
    assert_nothing_runs(&store.snapshot());
}

#[tokio::test(start_paused = true)]
async fn a20_one_pool_that_cannot_be_mended_does_not_keep_the_others() {
    let (store, client) = store();
    client.enqueue_many((1..=2).map(|n| Number { n })).await.unwrap();
    a_pool_that_dies(&store, "first", 1).await;
    a_pool_that_dies(&store, "second", 1).await;
    store.inject(Verb::Recover, Fault::Rejected);
    let (log, reports) = (Log::default(), Arc::<Mutex<Vec<ReapReport>>>::default());
    let pool = survivor(&client, &log, &reports).await;
    until(|| !reports.lock().unwrap().is_empty()).await;
    {
        let reports = reports.lock().unwrap();
        assert_eq!((reports[0].errors.len(), reports[0].dead_pools.len()), (1, 1), "{reports:?}");
        assert!(reports[0].errors[0].contains("pool first"), "{reports:?}");
    }
    until(|| log.lines().len() == 2).await;
    pool.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a65_a_hook_that_panics_does_no_harm() {
    let (store, client) = store();
    client.enqueue(Number { n: 1 }).await.unwrap();
    a_pool_that_dies(&store, "dead", 1).await;
    let log = Log::default();
    let lines = log.clone();
    let pool = WorkerPool::new(client.clone())
        .job(move |job: Number, _: Context| {
            lines.add(job.n);
            async {}
        })
        .on_reap(|_| panic!("a mistake of the user"))
        .start()
        .await
        .unwrap();
    until(|| log.lines().len() == 1).await;
    client.enqueue(Number { n: 2 }).await.unwrap();
    a_pool_that_dies(&store, "dead too", 1).await;
    until(|| log.lines().len() == 2).await;
    pool.stop().await;
}

/// The reply to a claim is lost without an error: a proxy answered for the store, say. Only the count tells.
#[tokio::test(start_paused = true)]
async fn a2_claims_that_nobody_here_knows_of_are_found_by_the_heartbeat() {
    let (store, client) = store();
    let (log, reports) = (Log::default(), Arc::default());
    let pool = survivor(&client, &log, &reports).await;
    store.set_paused(&name("number"), true);
    client.enqueue(Number { n: 1 }).await.unwrap();
    store.set_paused(&name("number"), false);
    // In the pool's name, and behind its back.
    let queues = vec![QueueShare { queue: name("number"), weight: 1 }];
    let claims = store.claim(&pool.id(), ClaimRequest { limit: 1, queues, draw: 0.5 }).await.unwrap().value;
    assert_eq!(claims.len(), 1);
    until(|| log.lines().len() == 1).await;
    pool.stop().await;
    assert_nothing_runs(&store.snapshot());
}
