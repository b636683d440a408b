//! `beat` and `leave`.

use super::*;
use crate::store::{Beat, QueueLimit};

fn beat(id: &str, register: bool, limit: Option<u32>) -> Beat {
    Beat {
        pool: pool(id),
        register,
        started_at: 1_700_000_000,
        queues: vec![
            QueueLimit { queue: queue("a"), max_concurrency: limit },
            QueueLimit { queue: queue("b"), max_concurrency: None },
        ],
        concurrency: 2,
        worker_ids: vec!["w1".to_owned(), "w2".to_owned()],
        host: "host".to_owned(),
        pid: 7,
        quiet: false,
        look_after: Duration::from_secs(2),
    }
}

async fn send(store: &Arc<dyn Store>, beat: &Beat) -> bool {
    store.beat(beat).await.expect("a beat").value.registered
}

/// Until it leaves.
pub async fn a_pool_registers_and_stays(subject: &impl Subject) {
    let store = subject.store();
    assert!(send(&store, &beat("p", true, None)).await);
    assert!(send(&subject.another(), &beat("q", true, None)).await);
    assert!(send(&store, &beat("p", false, None)).await);
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.pools.into_iter().collect::<Vec<_>>(), [pool("p"), pool("q")]);
    assert_eq!(snapshot.known.into_iter().collect::<Vec<_>>(), [queue("a"), queue("b")]);
    for id in ["p", "q"] {
        store.leave(&pool(id), &[queue("a"), queue("b")]).await.expect("a leave");
    }
    assert!(subject.snapshot().await.pools.is_empty());
}

/// A pool that others took for dead must not come back as if nothing had been.
pub async fn a_removed_pool_is_told_and_nothing_is_written(subject: &impl Subject) {
    let store = subject.store();
    assert!(!send(&store, &beat("p", false, Some(5))).await);
    assert_eq!(subject.snapshot().await, Snapshot::default());
    assert!(send(&store, &beat("p", true, None)).await);
    subject.another().leave(&pool("p"), &[queue("a")]).await.expect("a leave");
    let before = subject.snapshot().await;
    assert!(!send(&store, &beat("p", false, Some(5))).await);
    assert_eq!(subject.snapshot().await, before);
}

/// A37: a limit is written at registration; later only where it is missing. None leaves what is there.
pub async fn limits_are_set_once_and_restored(subject: &impl Subject) {
    let store = subject.store();
    let limit = async || subject.snapshot().await.queue("a").max_concurrency;
    send(&store, &beat("p", true, Some(5))).await;
    assert_eq!(limit().await, Some(5));
    subject.set_max_concurrency(&queue("a"), Some(9)).await;
    send(&store, &beat("p", false, Some(5))).await;
    assert_eq!(limit().await, Some(9));
    subject.set_max_concurrency(&queue("a"), None).await;
    send(&store, &beat("p", false, Some(5))).await;
    assert_eq!(limit().await, Some(5));
    send(&store, &beat("q", true, None)).await;
    assert_eq!(limit().await, Some(5));
    send(&store, &beat("r", true, Some(7))).await;
    assert_eq!(limit().await, Some(7));
}

/// Leaving forgets the pool, not its jobs.
pub async fn leaving_keeps_claims_accounted_for(subject: &impl Subject) {
    let store = subject.store();
    send(&store, &beat("p", true, None)).await;
    fill(&store, "a", 2).await;
    let claims = claim(&store, &pool("p"), "a", 2).await;
    store.finish(&pool("p"), vec![done(&claims[0])]).await.expect("a finish");
    store.leave(&pool("p"), &[queue("a"), queue("b")]).await.expect("a leave");
    let left = subject.snapshot().await.queue("a");
    assert_eq!(left.claims[&pool("p")], [claims[1].job.clone()]);
}
