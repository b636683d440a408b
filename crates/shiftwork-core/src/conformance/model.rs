//! A store against the reference model: random sequences of verbs, compared after every step.

use std::fmt::Debug;
use std::future::Future;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use super::*;
use crate::job::RawJob;
use crate::store::{Beat, QueueLimit, Recover, Recovery, Start, Tick, Witness};

const QUEUES: [&str; 3] = ["a", "b", "c"];
const POOLS: [&str; 3] = ["p", "q", "r"];
const KEYS: [&str; 3] = ["k1", "k2", "k3"];
/// The clock goes ahead by whole hours, and jobs are due at half hours: the two stores' clocks differ by less.
const HOUR: i64 = 3600;
/// Less than the life of a unique key, which a real server does not count by our clock.
const MOST_HOURS: i64 = 20;

/// One step.
#[derive(Debug, Clone)]
enum Step {
    Push(Vec<(usize, u8, Option<i64>, Option<usize>)>),
    Exchange { pool: usize, finishes: Vec<(usize, u8)>, weights: [u32; 3], limit: usize, draw: f64 },
    FinishForeign { pool: usize, which: usize },
    Start { key: usize, owner: u8 },
    Release { pool: usize, count: usize },
    Promote { limit: usize },
    Beat { pool: usize, register: bool, limit: Option<u32> },
    Leave { pool: usize },
    Pause { queue: usize, paused: bool },
    Limit { queue: usize, limit: Option<u32> },
    PlantMalformed { queue: Option<usize>, kind: usize },
    Advance { hours: i64 },
    Tick { queue: usize, hours: i64, late: bool },
    Die { pool: usize, limit: usize, bury: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let queue = 0..QUEUES.len();
    let pool = || 0..POOLS.len();
    let hours = || prop::option::weighted(0.3, -3..6i64);
    prop_oneof![
        6 => prop::collection::vec((queue.clone(), 0..12u8, hours(), prop::option::weighted(0.3, 0..KEYS.len())), 1..6)
            .prop_map(Step::Push),
        8 => (pool(), prop::collection::vec((0..6usize, 0..4u8), 0..4), prop::array::uniform3(1..20u32), 0..8usize, 0.0..1.0)
            .prop_map(|(pool, finishes, weights, limit, draw)| Step::Exchange { pool, finishes, weights, limit, draw }),
        1 => (pool(), 0..6usize).prop_map(|(pool, which)| Step::FinishForeign { pool, which }),
        1 => (0..KEYS.len(), 0..12u8).prop_map(|(key, owner)| Step::Start { key, owner }),
        2 => (pool(), 1..5usize).prop_map(|(pool, count)| Step::Release { pool, count }),
        3 => (0..6usize).prop_map(|limit| Step::Promote { limit }),
        1 => (pool(), any::<bool>(), prop::option::of(0..4u32))
            .prop_map(|(pool, register, limit)| Step::Beat { pool, register, limit }),
        1 => pool().prop_map(|pool| Step::Leave { pool }),
        1 => (queue.clone(), any::<bool>()).prop_map(|(queue, paused)| Step::Pause { queue, paused }),
        1 => (queue.clone(), prop::option::of(0..4u32)).prop_map(|(queue, limit)| Step::Limit { queue, limit }),
        1 => (prop::option::of(queue), 0..3usize).prop_map(|(queue, kind)| Step::PlantMalformed { queue, kind }),
        2 => (1..4i64).prop_map(|hours| Step::Advance { hours }),
        2 => (0..QUEUES.len(), -2..4i64, any::<bool>())
            .prop_map(|(queue, hours, late)| Step::Tick { queue, hours, late }),
        2 => (pool(), 1..4usize, prop::bool::weighted(0.2)).prop_map(|(pool, limit, bury)| Step::Die { pool, limit, bury }),
    ]
}

/// Compares stores from `factory` with the memory store. `SHIFTWORK_MODEL_CASES` sets how many sequences are tried.
///
/// # Panics
///
/// If the two differ, with the shortest sequence found that makes them.
pub fn compare<S: Subject, F: Future<Output = S>>(factory: impl Fn() -> F) {
    let cases =
        std::env::var("SHIFTWORK_MODEL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48);
    // Seeds of failures are kept beside the tests of the store, and are tried first from then on.
    let seeds = FileFailurePersistence::Direct("proptest-regressions/model.txt");
    let config = Config {
        cases,
        failure_persistence: Some(Box::new(seeds)),
        max_shrink_iters: 400,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let result = TestRunner::new(config).run(&prop::collection::vec(step(), 1..60), |steps| {
        runtime.block_on(async {
            let subject = factory().await;
            let start = subject.store().time().await.expect("the time").now;
            let model = MemorySubject(MemoryStore::at(start));
            let mut run = Run { subject, model, base: start.as_second(), hours: 0, held: Vec::new() };
            for (number, step) in steps.iter().enumerate() {
                run.step(step).await.map_err(|difference| {
                    TestCaseError::fail(format!("step {number}, {step:?}: {difference}"))
                })?;
            }
            Ok(())
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

struct Run<S> {
    subject: S,
    model: MemorySubject,
    base: i64,
    hours: i64,
    /// Claims that a pool holds, as the model gave them.
    held: Vec<(usize, Claim)>,
}

fn same<T: PartialEq + Debug>(what: &str, store: T, model: T) -> Result<(), String> {
    if store == model { Ok(()) } else { Err(format!("{what}: the store has {store:?}, the model {model:?}")) }
}

impl<S: Subject> Run<S> {
    async fn step(&mut self, step: &Step) -> Result<(), String> {
        let (store, model) = (self.subject.store(), self.model.store());
        match step {
            Step::Push(jobs) => {
                let pushes: Vec<_> = jobs.iter().map(|job| self.push(*job)).collect();
                let replies = (store.push(&pushes).await, model.push(&pushes).await);
                same("pushed", replies.0.expect("a push").value, replies.1.expect("a push").value)?;
            }
            Step::Exchange { pool, finishes, weights, limit, draw } => {
                let queues =
                    QUEUES.iter().zip(weights).map(|(name, weight)| (*name, *weight)).collect::<Vec<_>>();
                let claim = ClaimRequest { draw: *draw, ..request(&queues, *limit) };
                let finishes =
                    finishes.iter().filter_map(|(which, to)| self.finish(*pool, *which, *to)).collect();
                let request = Exchange { pool: super::pool(POOLS[*pool]), finishes, claim };
                let reply = exchange(&model, request.clone()).await;
                for finish in &request.finishes {
                    self.forget(*pool, &finish.claim);
                }
                self.held.extend(reply.claims.iter().map(|claim| (*pool, claim.clone())));
                let ours = exchange(&store, request).await;
                same("lost", &ours.lost, &reply.lost)?;
                same("claims", sorted(&ours.claims), sorted(&reply.claims))?;
            }
            Step::FinishForeign { pool, which } => {
                let foreign = self.held.iter().filter(|(holder, _)| holder != pool).nth(*which);
                if let Some((_, claim)) = foreign {
                    let finishes = vec![done(claim)];
                    let id = super::pool(POOLS[*pool]);
                    let replies =
                        (store.finish(&id, finishes.clone()).await, model.finish(&id, finishes).await);
                    // It may hold an equal one.
                    let lost = replies.1.expect("a finish").value.lost;
                    same("lost", replies.0.expect("a finish").value.lost, lost.clone())?;
                    if lost.is_empty() {
                        let claim = claim.clone();
                        self.forget(*pool, &claim);
                    }
                }
            }
            Step::Start { key, owner } => {
                let starts = [Start { keys: vec![KEYS[*key].to_owned()], owner: owner.to_string() }];
                store.start(&starts).await.expect("a start");
                model.start(&starts).await.expect("a start");
            }
            Step::Release { pool, count } => {
                let claims: Vec<_> = self
                    .held
                    .iter()
                    .filter(|(holder, _)| holder == pool)
                    .take(*count)
                    .map(|(_, c)| c.clone())
                    .collect();
                claims.iter().for_each(|claim| self.forget(*pool, claim));
                let id = super::pool(POOLS[*pool]);
                let replies = (store.release(&id, &claims).await, model.release(&id, &claims).await);
                same("released", replies.0.expect("a release").value, replies.1.expect("a release").value)?;
            }
            Step::Promote { limit } => {
                self.same_second().await;
                let replies = (store.promote(*limit).await, model.promote(*limit).await);
                same(
                    "promoted",
                    replies.0.expect("a promotion").value,
                    replies.1.expect("a promotion").value,
                )?;
            }
            Step::Beat { pool, register, limit } => {
                let beat = beat(POOLS[*pool], *register, *limit);
                let replies = (store.beat(&beat).await, model.beat(&beat).await);
                same("beat", replies.0.expect("a beat").value, replies.1.expect("a beat").value)?;
            }
            Step::Leave { pool } => {
                let (id, queues) = (super::pool(POOLS[*pool]), QUEUES.map(queue));
                store.leave(&id, &queues).await.expect("a leave");
                model.leave(&id, &queues).await.expect("a leave");
            }
            Step::Pause { queue, paused } => {
                let queue = super::queue(QUEUES[*queue]);
                self.subject.set_paused(&queue, *paused).await;
                self.model.set_paused(&queue, *paused).await;
            }
            Step::Limit { queue, limit } => {
                let queue = super::queue(QUEUES[*queue]);
                self.subject.set_max_concurrency(&queue, *limit).await;
                self.model.set_max_concurrency(&queue, *limit).await;
            }
            Step::PlantMalformed { queue, kind } => {
                let bytes: &[u8] = [b"not json".as_slice(), b"\xff\x00", br#"{"id":"nameless"}"#][*kind];
                let queue = queue.map(|queue| super::queue(QUEUES[queue]));
                let place = queue.as_ref().map_or(Place::Scheduled(self.base - HOUR / 2), Place::Queue);
                self.subject.plant(place, bytes).await;
                self.model.plant(place, bytes).await;
            }
            Step::Die { pool, limit, bury } => self.die(*pool, *limit, *bury).await?,
            Step::Tick { queue, hours, late } => {
                let at = self.base + (self.hours + hours) * HOUR + HOUR / 2;
                let name = QUEUES[*queue];
                let tick = Tick {
                    schedule: format!("{name}:spec"),
                    at,
                    queue: super::queue(name),
                    job: job(name, &format!("tick-{at}")),
                    late: *late,
                    remember: Duration::from_secs(86_400),
                };
                let (ticks, keys) = ([tick.clone()], [tick.schedule]);
                let replies = (store.tick(&ticks).await, model.tick(&ticks).await);
                same("ticks", replies.0.expect("a tick").value, replies.1.expect("a tick").value)?;
                let last = (store.last_ticks(&keys).await, model.last_ticks(&keys).await);
                same("last ticks", last.0.expect("the last").value, last.1.expect("the last").value)?;
            }
            Step::Advance { hours } => {
                if self.hours + hours <= MOST_HOURS {
                    self.hours += hours;
                    let by = Duration::from_secs(u64::try_from(hours * HOUR).expect("a positive time"));
                    self.subject.advance(by);
                    self.model.advance(by);
                }
            }
        }
        let (ours, wanted) = (self.subject.snapshot().await, self.model.snapshot().await);
        let queues: Vec<_> = QUEUES.map(queue).into();
        for pool in POOLS {
            let own = (
                store.own_claims(&super::pool(pool), &queues).await.expect("own claims").value,
                model.own_claims(&super::pool(pool), &queues).await.expect("own claims").value,
            );
            same("own claims", own.0, own.1)?;
        }
        same(
            "backlog",
            store.backlog(&queues).await.expect("a backlog").value,
            model.backlog(&queues).await.expect("a backlog").value,
        )?;
        same("running", ours.queues.values().map(|queue| queue.running()).sum(), self.held.len())?;
        same("namespace", normal(ours), normal(wanted))
    }

    /// A pool dies, and a reaper takes some of its claims, or all.
    async fn die(&mut self, pool: usize, limit: usize, bury: bool) -> Result<(), String> {
        let (store, model) = (self.subject.store(), self.model.store());
        let (id, queues) = (super::pool(POOLS[pool]), QUEUES.map(queue));
        store.leave(&id, &[]).await.expect("a leave");
        model.leave(&id, &[]).await.expect("a leave");
        let held = model.held(&id, &queues, limit).await.expect("the claims").value;
        same("held", store.held(&id, &queues, limit).await.expect("the claims").value, held.clone())?;
        let recoveries: Vec<_> = held
            .iter()
            .map(|held| Recovery {
                claim: held.claim.clone(),
                id: RawJob::parse(held.claim.job.clone())
                    .ok()
                    .map(|job| job.id().to_owned())
                    .filter(|id| !id.is_empty()),
                record: format!("crash {}", held.crashes.len()),
                bury: bury.then(|| job(&held.claim.queue, "buried")),
            })
            .collect();
        for held in &held {
            self.forget(pool, &held.claim);
        }
        let recover = Recover { pool: id, witness: Witness::Unregistered, queues: queues.into(), recoveries };
        self.same_second().await;
        let replies = (store.recover(&recover).await, model.recover(&recover).await);
        same("recovered", replies.0.expect("a recovery").value, replies.1.expect("a recovery").value)
    }

    /// Sets the model's clock to the store's, in a second that has some time left: promoted jobs carry the second.
    async fn same_second(&self) {
        loop {
            let now = self.subject.store().time().await.expect("the time").now;
            let left = 1_000_000_000 - now.subsec_nanosecond();
            if left > 200_000_000 {
                self.model.0.set_now(now);
                return;
            }
            let left = Duration::from_nanos(u64::try_from(left).expect("a positive time"));
            tokio::time::sleep(left).await;
        }
    }

    fn push(&self, (queue, id, hours, key): (usize, u8, Option<i64>, Option<usize>)) -> Push {
        let id = id.to_string();
        let run_at = hours.map(|hours| self.base + (self.hours + hours) * HOUR + HOUR / 2);
        match key {
            Some(key) => Push { run_at, ..unique_push(QUEUES[queue], &id, KEYS[key]) },
            None => Push { run_at, ..push(QUEUES[queue], job(QUEUES[queue], &id)) },
        }
    }

    /// The end of one of the claims that the pool holds; with another claim for each time it is asked.
    fn finish(&self, pool: usize, which: usize, to: u8) -> Option<Finish> {
        let (_, claim) = self.held.iter().filter(|(holder, _)| *holder == pool).nth(which)?;
        let at = self.base + (self.hours + i64::from(to)) * HOUR + HOUR / 2;
        let job = job(&claim.queue, &format!("after-{which}"));
        let to = match to {
            0 => Destination::Gone,
            1 => Destination::Retry { at, job },
            2 => Destination::Scheduled { at, job },
            _ => Destination::Dead { at, job },
        };
        Some(Finish { claim: claim.clone(), to })
    }

    fn forget(&mut self, pool: usize, claim: &Claim) {
        if let Some(position) = self.held.iter().position(|held| *held == (pool, claim.clone())) {
            self.held.remove(position);
        }
    }
}

fn beat(pool: &str, register: bool, limit: Option<u32>) -> Beat {
    Beat {
        pool: super::pool(pool),
        register,
        started_at: 0,
        queues: QUEUES.iter().map(|name| QueueLimit { queue: queue(name), max_concurrency: limit }).collect(),
        concurrency: 1,
        worker_ids: vec!["w".to_owned()],
        host: "h".to_owned(),
        pid: 1,
        quiet: false,
        look_after: Duration::from_secs(2),
    }
}

/// Queues may come in any order, each with its jobs in theirs.
fn sorted(claims: &[Claim]) -> Vec<Claim> {
    let mut claims = claims.to_vec();
    claims.sort_by(|one, other| one.queue.cmp(&other.queue));
    claims
}

/// Without what is random or the exact moment: ids of wrapped items, `t` of promoted jobs, when something was buried.
fn normal(mut snapshot: Snapshot) -> Snapshot {
    for queue in snapshot.queues.values_mut() {
        queue.jobs = queue.jobs.iter().map(without_time).collect();
        for claims in queue.claims.values_mut() {
            *claims = claims.iter().map(without_time).collect();
        }
    }
    for (at, job) in &mut snapshot.dead {
        if job.windows(5).any(|window| window == b"\"_raw") {
            *at = 0;
            *job = RawJob::parse(job.clone())
                .ok()
                .and_then(|raw| Some(raw.args()?.into()))
                .expect("a wrapped item");
        }
    }
    snapshot.dead.sort();
    snapshot
}

fn without_time(job: &JobBytes) -> JobBytes {
    match RawJob::parse(job.clone()) {
        Ok(raw) => raw.patch().enqueued_at(0).build().into_bytes(),
        Err(_) => job.clone(),
    }
}
