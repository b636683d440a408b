//! Periodic jobs: each tick once, none missed while a pool lives, and what the watchdog makes of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shiftwork_core::cron::Schedule;
use shiftwork_core::job::RawJob;
use shiftwork_core::{CatchUp, Context, JobOptions, PeriodicOptions, RunningPool, SkippedTick};

use super::*;

const SPEC: &str = "0 */15 * * * *";
const NIGHTLY: &str = "0 30 2 * * *";

fn store_at(time: &str) -> (MemoryStore, Client) {
    let store = MemoryStore::at(time.parse::<Timestamp>().unwrap());
    (store.clone(), Client::from(store))
}

/// The ticks that ran, by the job's id.
type Ran = Arc<Mutex<BTreeMap<String, usize>>>;

fn pool(client: &Client, ran: &Ran) -> WorkerPool {
    let handler = |ran: Ran| {
        move |job: RawJob, _: Context| {
            *ran.lock().unwrap().entry(job.id().to_owned()).or_default() += 1;
            async {}
        }
    };
    WorkerPool::new(client.clone())
        .concurrency(2)
        .time_zone(TimeZone::get("Europe/Paris").unwrap())
        .raw("report", JobOptions::new(), handler(ran.clone()))
        .raw("nightly", JobOptions::new(), handler(ran.clone()))
}

async fn start(client: &Client, ran: &Ran) -> RunningPool {
    pool(client, ran).periodic(SPEC, "report").periodic(NIGHTLY, "nightly").start().await.unwrap()
}

async fn minutes(minutes: u64) {
    tokio::time::sleep(Duration::from_secs(60 * minutes)).await;
}

/// All ids of ticks later than `after` and earlier than `until`.
fn ids(spec: &str, name: &str, after: i64, until: i64) -> Vec<String> {
    let schedule = Schedule::parse(spec, &TimeZone::get("Europe/Paris").unwrap()).unwrap();
    schedule.ticks(after, until).map(|at| format!("periodic:{name}:{spec}:{at}")).collect()
}

/// Three pools over a week with a change of the clock in it, restarts, and times when only one of them lives.
async fn a_week(begin: &str) -> (Ran, i64, i64) {
    let (store, client) = store_at(begin);
    let ran = Ran::default();
    let began = store.now().as_second();
    let mut pools = [start(&client, &ran).await, start(&client, &ran).await, start(&client, &ran).await];
    for day in 0..7 {
        // Each day one pool is away for some hours, and comes back.
        let away = day % 3;
        minutes(6 * 60 + 7).await;
        let gone = std::mem::replace(&mut pools[away], start(&client, &ran).await);
        gone.stop().await;
        minutes(9 * 60 + 11).await;
        if day == 4 {
            // A pause of less than the time ahead for which ticks are put in, and of all pools.
            store.set_outage(true);
            minutes(3).await;
            store.set_outage(false);
        }
        minutes(8 * 60).await;
    }
    let ended = store.now().as_second();
    for pool in pools {
        pool.stop().await;
    }
    (ran, began, ended)
}

fn assert_each_once(ran: &Ran, began: i64, ended: i64) {
    let ran = ran.lock().unwrap();
    let wanted: Vec<String> =
        ids(SPEC, "report", began, ended).into_iter().chain(ids(NIGHTLY, "nightly", began, ended)).collect();
    assert!(wanted.len() > 600, "{}", wanted.len());
    let missed: Vec<_> = wanted.iter().filter(|id| !ran.contains_key(*id)).collect();
    assert!(missed.is_empty(), "missed: {missed:?}");
    let twice: Vec<_> = ran.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "more than once: {twice:?}");
}

#[tokio::test(start_paused = true)]
async fn each_tick_runs_once_in_the_week_when_summer_begins() {
    let (ran, began, ended) = a_week("2026-03-26T10:00:30Z").await;
    assert_each_once(&ran, began, ended);
    // 02:30 does not exist on the 29th.
    assert_eq!(ran.lock().unwrap().keys().filter(|id| id.contains("nightly")).count(), 6);
}

#[tokio::test(start_paused = true)]
async fn each_tick_runs_once_in_the_week_when_winter_begins() {
    let (ran, began, ended) = a_week("2026-10-22T10:00:30Z").await;
    assert_each_once(&ran, began, ended);
    // 02:30 comes twice on the 25th.
    assert_eq!(ran.lock().unwrap().keys().filter(|id| id.contains("nightly")).count(), 8);
}

#[tokio::test(start_paused = true)]
async fn a11_pools_with_different_schedules_do_not_starve_each_other() {
    let (store, client) = store_at("2026-01-01T00:00:30Z");
    let ran = Ran::default();
    let began = store.now().as_second();
    let one = pool(&client, &ran).periodic("0 * * * * *", "report").start().await.unwrap();
    let other = pool(&client, &ran).periodic("30 * * * * *", "nightly").start().await.unwrap();
    minutes(120).await;
    let ended = store.now().as_second();
    one.stop().await;
    other.stop().await;
    let ran = ran.lock().unwrap();
    for id in
        ids("0 * * * * *", "report", began, ended).iter().chain(&ids("30 * * * * *", "nightly", began, ended))
    {
        assert_eq!(ran.get(id), Some(&1), "{id}");
    }
}

async fn catching_up(policy: CatchUp) -> Vec<i64> {
    let (_, client) = store_at("2026-01-01T00:00:30Z");
    let ran = Ran::default();
    let options = PeriodicOptions::new().catch_up(policy);
    let start = async || {
        pool(&client, &ran).periodic_with("0 */10 * * * *", "report", options.clone()).start().await.unwrap()
    };
    let first = start().await;
    minutes(25).await;
    first.stop().await;
    ran.lock().unwrap().clear();
    // Nobody lives from 00:25:30 to 01:15:30.
    minutes(50).await;
    let second = start().await;
    minutes(10).await;
    second.stop().await;
    let base = store_at("2026-01-01T00:00:00Z").0.now().as_second();
    let at = |id: &String| (id.rsplit(':').next().unwrap().parse::<i64>().unwrap() - base) / 60;
    assert!(ran.lock().unwrap().values().all(|times| *times == 1));
    ran.lock().unwrap().keys().map(at).collect()
}

#[tokio::test(start_paused = true)]
async fn missed_ticks_are_caught_up_with_by_policy() {
    assert_eq!(catching_up(CatchUp::Skip).await, [80]);
    assert_eq!(catching_up(CatchUp::Last).await, [70, 80]);
    assert_eq!(catching_up(CatchUp::All { at_most: 3 }).await, [50, 60, 70, 80]);
    assert_eq!(catching_up(CatchUp::All { at_most: 100 }).await, [30, 40, 50, 60, 70, 80]);
}

#[tokio::test(start_paused = true)]
async fn a57_a_tick_that_nobody_started_in_time_is_dropped_counted_and_told() {
    let (store, client) = store_at("2026-01-01T00:00:30Z");
    let ran = Ran::default();
    let skipped: Arc<Mutex<Vec<SkippedTick>>> = Arc::default();
    let told = skipped.clone();
    let pool = pool(&client, &ran)
        .periodic("0 * * * * *", "report")
        .on_skipped_tick(move |tick| told.lock().unwrap().push(tick.clone()))
        .start()
        .await
        .unwrap();
    minutes(3).await;
    store.set_paused(&name("report"), true);
    minutes(5).await;
    store.set_paused(&name("report"), false);
    minutes(3).await;
    let stats = pool.periodic_stats();
    let tally = pool.stop().await;
    // Of the five that waited, the last one was still in time.
    assert_eq!(tally.expired, 4);
    assert_eq!(stats.len(), 1);
    let stats = &stats[0];
    assert_eq!((stats.name.as_str(), &*stats.spec), ("report", "0 * * * * *"));
    assert_eq!(stats.planned, stats.picked_up + stats.skipped);
    assert_eq!(stats.skipped, 4, "{stats:?}");
    assert!(stats.planned >= 9, "{stats:?}");
    let skipped = skipped.lock().unwrap();
    assert_eq!(skipped.len(), 4);
    assert!(skipped.windows(2).all(|pair| pair[1].at == pair[0].at + 60), "{skipped:?}");
}

/// A41: what another pool has run was not skipped.
#[tokio::test(start_paused = true)]
async fn a_tick_that_another_pool_picks_up_is_not_skipped() {
    let (_, client) = store_at("2026-01-01T00:00:30Z");
    let ran = Ran::default();
    // Knows the schedule but has no handler for it.
    let planner = WorkerPool::new(client.clone())
        .raw("something else", JobOptions::new(), |_, _: Context| async {})
        .periodic("0 * * * * *", "report")
        .start()
        .await
        .unwrap();
    // Has a handler and knows no schedule.
    let worker = pool(&client, &ran).start().await.unwrap();
    minutes(30).await;
    let stats = planner.periodic_stats();
    assert_eq!((stats[0].skipped, stats[0].picked_up), (0, stats[0].planned));
    assert!(stats[0].planned >= 28, "{stats:?}");
    planner.stop().await;
    worker.stop().await;
}

/// In Cairo the clocks skip the midnight before Friday, 25 April 2025. Asked on Thursday, the Go library's search finds a tick on
/// Friday for a schedule of Thursdays, and none for one of Fridays.
#[tokio::test(start_paused = true)]
async fn no_tick_is_expected_on_the_wrong_day_when_the_clocks_skip_midnight() {
    let (_, client) = store_at("2025-04-24T06:00:00Z");
    let ran = Ran::default();
    let pool = pool(&client, &ran)
        .periodic("TZ=Africa/Cairo 0 12 * * thu", "report")
        .periodic("TZ=Africa/Cairo 0 12 * * fri", "nightly")
        .start()
        .await
        .unwrap();
    minutes(36 * 60).await;
    let stats = pool.periodic_stats();
    pool.stop().await;
    let seen: Vec<_> =
        stats.iter().map(|stats| (stats.name.as_str(), stats.picked_up, stats.skipped)).collect();
    assert_eq!(seen, [("nightly", 1, 0), ("report", 1, 0)]);
    assert_eq!(ran.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a10_a_retry_of_a_tick_runs_though_the_next_one_is_due() {
    let (_, client) = store_at("2026-01-01T00:00:30Z");
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let log = attempts.clone();
    let options = JobOptions::new().backoff(|_| Duration::from_secs(150));
    let pool = WorkerPool::new(client)
        .raw("report", options, move |job: RawJob, ctx: Context| {
            let first = job.id().ends_with(":1767225660");
            if first {
                log.lock().unwrap().push(ctx.attempt());
            }
            async move { if first && ctx.attempt() == 1 { Err("not yet") } else { Ok(()) } }
        })
        .periodic("0 * * * * *", "report")
        .start()
        .await
        .unwrap();
    minutes(6).await;
    pool.stop().await;
    assert_eq!(*attempts.lock().unwrap(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn mistakes_in_periodic_jobs_are_told_at_the_start() {
    let (_, client) = store();
    let ran = Ran::default();
    let message = async |pool: WorkerPool| pool.start().await.map(|_| ()).unwrap_err().to_string();
    let never = message(pool(&client, &ran).periodic("0 0 30 2 *", "report")).await;
    assert!(never.contains("never fire"), "{never}");
    let twice = message(pool(&client, &ran).periodic(SPEC, "report").periodic(SPEC, "report")).await;
    assert!(twice.contains("twice"), "{twice}");
    let args = PeriodicOptions::new().args("[1]");
    let args = message(pool(&client, &ran).periodic_with(SPEC, "report", args)).await;
    assert!(args.contains("\"report\"") && args.contains("a list"), "{args}");
    let name = message(pool(&client, &ran).periodic(SPEC, "a,b")).await;
    assert!(name.contains("comma"), "{name}");
}
