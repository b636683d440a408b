//! The reaper: gives the jobs of dead pools to the living.
//!
//! A pool that is killed leaves claims behind. Every pool has a reaper, none is the leader: whoever looks first looks for
//! all ([`Store::look`](crate::store::Store::look)), and what has been seen of the others is kept in the store. The reply to a
//! heartbeat says when nobody has looked for a while; besides, each reaper has a timer that is the slower the more pools
//! there are. So the fleet as a whole looks every three seconds, however large it is.
//!
//! A pool is dead if its heartbeat has stood still for [`SILENT_FOR`]. What is done about it is fenced: the step that
//! takes its claims does nothing if it has shown any sign of life since ([`Witness`]). Three passes, as in the Go library: pools
//! whose heartbeat is old, pools that hold something and that nobody knows, and bookkeeping that is not what is in progress.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::{Pause, Service};
use crate::clock;
use crate::error::Error;
use crate::job::{JobName, PoolId, RawJob};
use crate::pool::Shared;
use crate::store::{Held, Look, Looked, Observation, QueueAudit, Recover, Recovery, Store, Witness};

/// How long a heartbeat has to stand still, as in the Go library: two beats.
const SILENT_FOR: Duration = Duration::from_secs(10);
/// The whole fleet looks about this often.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_secs(3);
/// Two looks closer together than this are one too many.
const LOOKED_JUST_NOW: Duration = Duration::from_millis(1500);
/// Each pool's own timer, for each pool that there is.
const LOOK_PERIOD_PER_POOL: Duration = Duration::from_millis(500);
/// Longer than beats and timers together leave between two looks, if the store and any pool were there.
const GAP: Duration = Duration::from_secs(8);
/// How often the bookkeeping is compared with what is in progress. Also how long a pool has to be unknown.
const AUDIT_PERIOD: Duration = Duration::from_secs(15);
/// Claims of one queue that are taken in one step.
const SLICE: usize = 200;
/// How long the lock holds if its holder dies. It is renewed with each step.
const LOCK_HOLD: Duration = Duration::from_secs(30);
/// A pool that has been silent for so long is reaped though somebody else has the lock: its holder may be dead.
const PATIENCE_WITH_LOCK: Duration = Duration::from_secs(13);

/// What a reaper found and did. It is handed to the hook of
/// [`WorkerPool::on_reap`](crate::WorkerPool::on_reap) whenever there is anything in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReapReport {
    /// What went wrong. One pool or queue that can't be mended never keeps the reaper from the others.
    pub errors: Vec<String>,
    /// Pools whose heartbeat had stopped.
    pub dead_pools: Vec<ReapedPool>,
    /// Pools that held jobs, or that the bookkeeping said did, and that were not registered.
    pub unknown_pools: Vec<ReapedPool>,
    /// Job types whose bookkeeping was not what was in progress, and was set right.
    pub dangling_locks: Vec<JobName>,
}

/// A pool that was reaped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReapedPool {
    /// Its id.
    pub pool: PoolId,
    /// Job types of which it held jobs.
    pub jobs: Vec<JobName>,
    /// Jobs that went back to the head of their queues.
    pub returned: usize,
    /// Jobs that went to the dead set, since too many workers have died with them.
    pub buried: usize,
}

impl ReapReport {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A function that is told what a reaper did.
pub(crate) type ReapHook = Arc<dyn Fn(&ReapReport) + Send + Sync>;

/// What users set.
#[derive(Clone)]
pub(crate) struct ReaperOptions {
    pub(crate) hook: Option<ReapHook>,
    /// How many workers may die with a job before it goes to the dead set.
    pub(crate) max_crashes: usize,
}

impl Default for ReaperOptions {
    fn default() -> Self {
        Self { hook: None, max_crashes: 3 }
    }
}

pub(crate) struct Reaper {
    shared: Arc<Shared>,
    own: watch::Receiver<PoolId>,
    /// Names this reaper as the holder of the lock.
    token: String,
    /// Pools that there were at the last look.
    pools: u32,
    report: ReapReport,
}

impl Reaper {
    pub(crate) fn new(shared: Arc<Shared>, own: watch::Receiver<PoolId>) -> Self {
        let token = PoolId::random().to_string();
        Self { shared, own, token, pools: 1, report: ReapReport::default() }
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.shared.store()
    }

    /// Reaps what a look has found. Errors go into the report: each is one pool's or queue's.
    async fn reap(&mut self, looked: Looked, now: Timestamp) {
        let own = self.own.borrow().clone();
        let silent: Vec<_> = looked.silent.into_iter().filter(|silent| silent.pool != own).collect();
        let mut locked = false;
        if !silent.is_empty() {
            let lock = self.store().reaper_lock(&self.token, Some(LOCK_HOLD)).await;
            locked = lock.is_ok_and(|reply| reply.value);
            for silent in silent {
                let patience = clock::whole_seconds(PATIENCE_WITH_LOCK);
                if !locked && now.as_second() < silent.since.saturating_add(patience) {
                    continue;
                }
                let mut queues: BTreeSet<JobName> = silent.queues.into_iter().collect();
                queues.extend(looked.known.iter().cloned());
                queues.extend(self.shared.registry.queues().iter().cloned());
                let queues = queues.into_iter().collect();
                match self.recover(&silent.pool, &silent.host, silent.witness, queues, now).await {
                    Ok(Some(reaped)) => {
                        self.report.dead_pools.push(reaped);
                        self.clear_workers(silent.workers).await;
                    }
                    Ok(None) => {}
                    Err(error) => self.failed(format!("pool {}", &*silent.pool), &error),
                }
            }
        }
        if looked.audit
            && let Err(error) = self.audit(now).await
        {
            self.failed("audit".to_owned(), &error);
        }
        if locked && let Err(error) = self.store().reaper_lock(&self.token, None).await {
            tracing::debug!(target: "shiftwork", %error, "the reaper's lock could not be freed; it will expire");
        }
    }

    /// Takes all claims of a pool, slice by slice. `None`: it has shown signs of life.
    async fn recover(
        &self,
        pool: &PoolId,
        host: &str,
        witness: Witness,
        queues: Vec<JobName>,
        now: Timestamp,
    ) -> Result<Option<ReapedPool>, Error> {
        let record = format!("at {} in pool {}{}", whole(now), &**pool, on(host));
        let mut reaped = ReapedPool { pool: pool.clone(), jobs: Vec::new(), returned: 0, buried: 0 };
        loop {
            let held = self.store().held(pool, &queues, SLICE).await?.value;
            let recoveries: Vec<_> = held.into_iter().map(|held| self.decide(held, &record, now)).collect();
            for recovery in &recoveries {
                if !reaped.jobs.contains(&recovery.claim.queue) {
                    reaped.jobs.push(recovery.claim.queue.clone());
                }
            }
            let empty = recoveries.is_empty();
            let recover =
                Recover { pool: pool.clone(), witness: witness.clone(), queues: queues.clone(), recoveries };
            let reply = self.store().recover(&recover).await?.value;
            if !reply.fenced {
                return Ok(None);
            }
            reaped.returned += reply.returned;
            reaped.buried += reply.buried;
            if reply.removed {
                tracing::warn!(
                    target: "shiftwork", pool = &**pool, returned = reaped.returned, buried = reaped.buried,
                    "a dead pool is removed, and its jobs are given back"
                );
                return Ok(Some(reaped));
            }
            if empty {
                let reason = "its claims can't be read; see the keys of its lists";
                return Err(Error::rejected(format!("the dead pool {} can't be removed", &**pool), reason));
            }
            // Without the lock some other reaper may do the same work; it would do no harm.
            if let Err(error) = self.store().reaper_lock(&self.token, Some(LOCK_HOLD)).await {
                tracing::debug!(target: "shiftwork", %error, "the reaper's lock could not be renewed");
            }
        }
    }

    /// What workers of a dead pool are shown to run, they do not run any more.
    async fn clear_workers(&self, workers: Vec<String>) {
        let idle: Vec<_> = workers.into_iter().map(|worker| Observation { worker, job: None }).collect();
        for slice in idle.chunks(SLICE) {
            if let Err(error) = self.store().observe(slice).await {
                tracing::debug!(target: "shiftwork", %error, "what a dead pool ran stays shown until it expires");
            }
        }
    }

    /// Back to the queue, or to the dead set if too many workers have died with the job.
    fn decide(&self, held: Held, record: &str, now: Timestamp) -> Recovery {
        let Held { claim, mut crashes } = held;
        let job = RawJob::parse(claim.job.clone()).ok();
        let id = job.as_ref().map(|job| job.id().to_owned()).filter(|id| !id.is_empty());
        let bury = match job {
            Some(job) if crashes.len() + 1 >= self.shared.reaper.max_crashes => {
                crashes.push(record.to_owned());
                let error = format!("{} workers died with this job: {}", crashes.len(), crashes.join("; "));
                let second = now.as_second();
                let patch = job.patch().fails(job.fails().saturating_add(1)).error(&error).failed_at(second);
                Some(patch.build().into_bytes())
            }
            _ => None,
        };
        Recovery { claim, id, record: record.to_owned(), bury }
    }

    /// The other two passes: unknown pools, and bookkeeping that lies.
    async fn audit(&mut self, now: Timestamp) -> Result<(), Error> {
        let audits = self.store().audit(&self.shared.registry.queues()).await?.value;
        self.reap_unknown(&audits, now).await?;
        for audit in audits.iter().filter(|audit| !audit.is_sound() || audit.has_residue()) {
            match self.store().repair(audit).await {
                Ok(reply) if reply.value => {
                    tracing::warn!(
                        target: "shiftwork", queue = &*audit.queue,
                        "the count of running jobs was wrong; it is set to what is in progress"
                    );
                    self.report.dangling_locks.push(audit.queue.clone());
                }
                Ok(_) => {}
                Err(error) => self.failed(format!("queue {}", &*audit.queue), &error),
            }
        }
        Ok(())
    }

    async fn reap_unknown(&mut self, audits: &[QueueAudit], now: Timestamp) -> Result<(), Error> {
        let pools = audits.iter().flat_map(|audit| &audit.pools);
        let unknown = pools.filter(|pool| !pool.registered && pool.held > 0).map(|pool| pool.pool.clone());
        let unknown: Vec<PoolId> = unknown.collect::<BTreeSet<_>>().into_iter().collect();
        let since = self.store().note_unknown(&unknown).await?.value;
        let long_ago = clock::whole_seconds(AUDIT_PERIOD);
        for (pool, since) in unknown.into_iter().zip(since) {
            if now.as_second() < since.saturating_add(long_ago) {
                continue;
            }
            let holds = |audit: &&QueueAudit| audit.pools.iter().any(|other| other.pool == pool);
            let queues = audits.iter().filter(holds).map(|audit| audit.queue.clone()).collect();
            match self.recover(&pool, "", Witness::Unregistered, queues, now).await {
                Ok(Some(reaped)) => self.report.unknown_pools.push(reaped),
                Ok(None) => {}
                Err(error) => self.failed(format!("unknown pool {}", &*pool), &error),
            }
        }
        Ok(())
    }

    fn failed(&mut self, what: String, error: &Error) {
        tracing::warn!(target: "shiftwork", what, %error, "the reaper could not do all it wanted");
        self.report.errors.push(format!("{what}: {error}"));
    }

    fn tell(&mut self) {
        let report = std::mem::take(&mut self.report);
        if report.is_empty() {
            return;
        }
        if let Some(hook) = &self.shared.reaper.hook
            && std::panic::catch_unwind(AssertUnwindSafe(|| hook(&report))).is_err()
        {
            tracing::error!(target: "shiftwork", "the hook of the reaper panicked");
        }
    }
}

impl Service for Reaper {
    const NAME: &'static str = "reaper";

    async fn round(&mut self) -> Result<Pause, Error> {
        let look =
            Look { every: LOOKED_JUST_NOW, silent_for: SILENT_FOR, gap: GAP, audit_every: AUDIT_PERIOD };
        // A pool that can't tell whether it lives itself does not judge others.
        if !self.shared.at_risk() {
            let sent = clock::now();
            let reply = self.store().look(&look).await?;
            self.shared.clock().observe(sent, reply.now);
            self.pools = u32::try_from(reply.value.pools).unwrap_or(u32::MAX);
            if reply.value.looked {
                self.reap(reply.value, reply.now).await;
                self.tell();
            }
        }
        let period = LOOK_PERIOD.max(LOOK_PERIOD_PER_POOL.saturating_mul(self.pools));
        // Many pools that started together must not look together for ever.
        let at_most = period.mul_f64(0.75 + 0.5 * fastrand::f64());
        Ok(Pause { at_most, unless: None, wake: Some(self.shared.look_asked.clone()) })
    }
}

fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn on(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!(" on {host}") }
}
