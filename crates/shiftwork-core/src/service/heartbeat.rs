//! The heartbeat: how a pool shows that it lives, and learns that it was taken for dead.
//!
//! It has a thread, a runtime and a connection of its own: a handler that blocks the user's runtime, or a flood of jobs on
//! the connection, must not make others take the pool's jobs. A store that lives inside the process has nothing to
//! isolate, and its heartbeat is a plain task.
//!
//! A pool that can't beat does not know whether others have taken its jobs. After half the time in which they would, it
//! claims no more. When the store answers again, the reply to the beat says whether the registration still stands. If it
//! does, nothing has happened. If it does not, the claims are gone, and the pool registers anew under a fresh id.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::{self, Instant};
use crate::error::Error;
use crate::job::{JobName, PoolId, WorkerId};
use crate::pool::{Link, Shared};
use crate::service::reaper::LOOK_PERIOD;
use crate::store::{Beat, Store};

/// Time between beats, as in the Go library.
const PERIOD: Duration = Duration::from_secs(5);
/// Time between attempts while the store does not answer: the sooner a beat gets through, the better.
const RETRY_PERIOD: Duration = Duration::from_millis(500);
/// Half the time after which others take a silent pool for dead, and a little more, so that one beat may be late.
const AT_RISK_AFTER: Duration = Duration::from_millis(5500);
/// How long leaving may take at the end.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
const LEAVE_RETRY_PERIOD: Duration = Duration::from_millis(100);

/// A heart that beats.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    membership: watch::Receiver<PoolId>,
    quiet: Arc<AtomicBool>,
    stop: oneshot::Sender<Arc<[JobName]>>,
    stopped: JoinHandle<()>,
}

struct Heart {
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    beat: Beat,
    membership: watch::Sender<PoolId>,
    quiet: Arc<AtomicBool>,
    link: Link,
    last_beat: Instant,
}

impl Heartbeat {
    /// Registers the pool; it beats from then on.
    pub(crate) async fn start(shared: Arc<Shared>, workers: &[WorkerId]) -> Result<Self, Error> {
        let started_at = shared.client.now().await?.as_second();
        let mut worker_ids: Vec<String> = workers.iter().map(|worker| worker.to_string()).collect();
        worker_ids.sort();
        let beat = Beat {
            pool: PoolId::random(),
            register: true,
            started_at,
            queues: shared.registry.limits(),
            concurrency: workers.len(),
            worker_ids,
            host: host_name(),
            pid: std::process::id(),
            quiet: false,
            look_after: LOOK_PERIOD,
        };
        let (membership, members) = watch::channel(beat.pool.clone());
        let quiet = Arc::new(AtomicBool::new(false));
        let (stop, stop_asked) = oneshot::channel();
        let link = Link::new("heartbeat", &shared.outage);
        let heart = Heart {
            store: shared.store().clone(),
            shared,
            beat,
            membership,
            quiet: quiet.clone(),
            link,
            last_beat: clock::now(),
        };
        let (registered, first_beat) = oneshot::channel();
        let isolated = heart.store.dedicated().is_some();
        let stopped = match isolated {
            false => tokio::spawn(heart.live(registered, stop_asked)),
            true => {
                let life = move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime.block_on(heart.live(registered, stop_asked)),
                    Err(error) => {
                        let error =
                            Error::config(format!("no runtime for the heartbeat can be made: {error}"));
                        let _ = registered.send(Err(error));
                    }
                };
                // A thread of its own, not one of the runtime's blocking ones: those may all be busy.
                let (ended, end) = oneshot::channel();
                std::thread::Builder::new()
                    .name("shiftwork-heartbeat".to_owned())
                    .spawn(move || {
                        life();
                        let _ = ended.send(());
                    })
                    .map_err(|error| {
                        Error::config(format!("no thread for the heartbeat can be made: {error}"))
                    })?;
                tokio::spawn(async move { drop(end.await) })
            }
        };
        first_beat.await.map_err(|_| Error::config("the heartbeat ended before its first beat"))??;
        Ok(Self { membership: members, quiet, stop, stopped })
    }

    /// The id under which the pool is registered.
    pub(crate) fn pool(&self) -> PoolId {
        self.membership.borrow().clone()
    }

    pub(crate) fn membership(&self) -> watch::Receiver<PoolId> {
        self.membership.clone()
    }

    /// Shows from now on that the pool claims no more.
    pub(crate) fn set_quiet(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    /// Takes the pool out of the store and stops.
    pub(crate) async fn stop(self, queues: &Arc<[JobName]>) {
        let _ = self.stop.send(queues.clone());
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, self.stopped).await;
    }
}

impl Heart {
    async fn live(
        mut self,
        registered: oneshot::Sender<Result<(), Error>>,
        mut stop: oneshot::Receiver<Arc<[JobName]>>,
    ) {
        if let Err(error) = self.begin().await {
            let _ = registered.send(Err(error));
            return;
        }
        let _ = registered.send(Ok(()));
        let mut next = PERIOD;
        loop {
            tokio::select! {
                queues = &mut stop => {
                    // Without an order the handle was dropped: the pool runs on, and so does the heart.
                    let Ok(queues) = queues else { return self.live_on().await };
                    return self.leave(&queues).await;
                }
                () = tokio::time::sleep(next) => {}
            }
            next = self.beat_once().await;
        }
    }

    async fn live_on(mut self) {
        loop {
            let pause = self.beat_once().await;
            tokio::time::sleep(pause).await;
        }
    }

    async fn begin(&mut self) -> Result<(), Error> {
        if let Some(dedicated) = self.shared.store().dedicated() {
            self.store = dedicated.await?.value;
        }
        self.store.beat(&self.beat).await?;
        self.last_beat = clock::now();
        self.beat.register = false;
        Ok(())
    }

    /// One beat. Returns how long to wait for the next.
    async fn beat_once(&mut self) -> Duration {
        self.beat.quiet = self.quiet.load(Ordering::Relaxed);
        let (store, beat) = (self.store.clone(), self.beat.clone());
        let call = async move { store.beat(&beat).await };
        tokio::pin!(call);
        // A call that hangs must not keep the pool from knowing that it is at risk.
        let at_risk_at = self.last_beat + AT_RISK_AFTER;
        let result = tokio::select! {
            result = &mut call => result,
            () = tokio::time::sleep_until(at_risk_at) => {
                self.set_at_risk();
                call.await
            }
        };
        match result {
            Ok(reply) if reply.value.registered => {
                self.link.answered();
                self.last_beat = clock::now();
                self.beat.register = false;
                self.clear_at_risk();
                if reply.value.look {
                    self.shared.look_asked.notify_one();
                }
                self.shared.held.send_replace(reply.value.held);
                PERIOD
            }
            Ok(_) => {
                self.link.answered();
                self.come_back();
                Duration::ZERO
            }
            Err(error) => {
                self.link.failed(&error);
                if clock::now() >= at_risk_at {
                    self.set_at_risk();
                }
                RETRY_PERIOD
            }
        }
    }

    /// A reaper has removed the pool: its next beat registers it under a fresh id.
    fn come_back(&mut self) {
        if self.beat.register {
            return;
        }
        let pool = PoolId::random();
        tracing::warn!(
            target: "shiftwork", removed = &*self.beat.pool, pool = &*pool,
            "the pool was taken for dead and its jobs were given to others; it goes on under a new id"
        );
        self.beat.pool = pool.clone();
        self.beat.register = true;
        self.membership.send_replace(pool);
    }

    fn set_at_risk(&self) {
        if !self.shared.set_at_risk(true) {
            tracing::warn!(
                target: "shiftwork", silent_for = ?clock::now().saturating_duration_since(self.last_beat),
                "the heartbeat does not get through: no more claims until it does; running jobs go on"
            );
        }
    }

    fn clear_at_risk(&self) {
        if self.shared.set_at_risk(false) {
            tracing::info!(target: "shiftwork", "the heartbeat gets through again, and the registration still stands");
        }
    }

    /// Signs off. Tries until [`Heartbeat::stop`] loses patience: the connection may just have been cut.
    async fn leave(&self, queues: &[JobName]) {
        let give_up_at = clock::now() + LEAVE_TIMEOUT;
        while let Err(error) = self.store.leave(&self.beat.pool, queues).await {
            if clock::now() >= give_up_at || error.is_rejected() {
                tracing::warn!(target: "shiftwork", %error, "the pool could not sign off; a reaper will remove it");
                return;
            }
            tokio::time::sleep(LEAVE_RETRY_PERIOD).await;
        }
    }
}

/// The machine's name, as the kernel has it.
fn host_name() -> String {
    let name =
        std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
