//! `wait`: being woken.

use tokio::task::JoinHandle;

use super::*;
use crate::store::WaitFor;

/// Longer than any store's fallback poll.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is seen at once is seen well within this.
const AT_ONCE: Duration = Duration::from_secs(5);

fn work(queues: &[&str]) -> WaitFor {
    WaitFor::Work { queues: queues.iter().map(|name| queue(name)).collect() }
}

async fn returns(store: &Arc<dyn Store>, wait: WaitFor) {
    tokio::time::timeout(AT_ONCE, store.wait(wait)).await.expect("it is seen at once").expect("a wait");
}

/// A wait that is under way: it has looked at least once when this returns.
async fn waiting(subject: &impl Subject, wait: WaitFor) -> JoinHandle<()> {
    let store = subject.store();
    let waiting = tokio::spawn(async move { store.wait(wait).await.expect("a wait") });
    tokio::task::yield_now().await;
    // Another call over the same handle: by the time it is answered, the first look has been sent.
    subject.store().time().await.expect("the time");
    assert!(!waiting.is_finished(), "there is nothing to wake for");
    waiting
}

async fn wakes(waiting: JoinHandle<()>) {
    tokio::time::timeout(PATIENCE, waiting).await.expect("it wakes").expect("the task ends");
}

/// The wait begins by looking.
pub async fn work_that_is_there_is_seen_at_once(subject: &impl Subject) {
    let store = subject.store();
    fill(&store, "b", 1).await;
    returns(&store, work(&["a", "b"])).await;
    subject.plant(Place::Retry(4_000_000_000), b"x").await;
    returns(&store, WaitFor::EarlierDue { than: None }).await;
    returns(&store, WaitFor::EarlierDue { than: Some(4_000_000_001) }).await;
}

/// By another process.
pub async fn a_push_wakes(subject: &impl Subject) {
    let waiting = waiting(subject, work(&["a", "b"])).await;
    fill(&subject.another(), "b", 1).await;
    wakes(waiting).await;
}

/// A queue that is paused or full has nothing to give, however long it is.
pub async fn what_cannot_be_claimed_does_not_wake(subject: &impl Subject) {
    let store = subject.store();
    fill(&store, "paused", 3).await;
    subject.set_paused(&queue("paused"), true).await;
    subject.set_max_concurrency(&queue("full"), Some(1)).await;
    fill(&store, "full", 3).await;
    assert_eq!(claim(&store, &pool("p"), "full", 3).await.len(), 1);
    fill(&store, "foreign", 1).await;
    subject.plant(Place::Scheduled(4_000_000_000), b"x").await;
    let waiting_for_work = waiting(subject, work(&["paused", "full", "empty"])).await;
    let waiting_for_due = waiting(subject, WaitFor::EarlierDue { than: Some(4_000_000_000) }).await;
    for _ in 0..20 {
        store.time().await.expect("the time");
    }
    assert!(!waiting_for_work.is_finished() && !waiting_for_due.is_finished());
    waiting_for_work.abort();
    waiting_for_due.abort();
}

/// A pause that ends is work that begins.
pub async fn an_unpause_wakes(subject: &impl Subject) {
    fill(&subject.store(), "a", 1).await;
    subject.set_paused(&queue("a"), true).await;
    let waiting = waiting(subject, work(&["a"])).await;
    subject.set_paused(&queue("a"), false).await;
    wakes(waiting).await;
}

/// By whichever pool.
pub async fn a_finish_that_makes_room_wakes(subject: &impl Subject) {
    let other = subject.another();
    fill(&other, "a", 2).await;
    subject.set_max_concurrency(&queue("a"), Some(1)).await;
    let held = claim(&other, &pool("q"), "a", 2).await;
    let waiting = waiting(subject, work(&["a"])).await;
    other.finish(&pool("q"), held.iter().map(done).collect()).await.expect("a finish");
    wakes(waiting).await;
}

/// The scheduler sleeps until the next job is due.
pub async fn an_earlier_due_job_wakes(subject: &impl Subject) {
    subject.plant(Place::Scheduled(4_000_000_000), b"x").await;
    let waiting = waiting(subject, WaitFor::EarlierDue { than: Some(4_000_000_000) }).await;
    let earlier = Push { run_at: Some(3_999_999_999), ..push("a", job("a", "1")) };
    subject.another().push(&[earlier]).await.expect("a push");
    wakes(waiting).await;
}

/// Whatever the moment of the push is, between the last claim and the wait or in it.
pub async fn no_wake_up_is_lost(subject: &impl Subject) {
    const JOBS: usize = 40;
    let producer = subject.another();
    let pushing = tokio::spawn(async move {
        for id in 0..JOBS {
            for _ in 0..id % 7 {
                tokio::task::yield_now().await;
            }
            producer.push(&[push("a", job("a", &id.to_string()))]).await.expect("a push");
        }
    });
    let (store, pool) = (subject.store(), pool("p"));
    let mut taken = 0;
    while taken < JOBS {
        let claims = claim(&store, &pool, "a", 3).await;
        taken += claims.len();
        store.finish(&pool, claims.iter().map(done).collect()).await.expect("a finish");
        if claims.is_empty() {
            tokio::time::timeout(PATIENCE, store.wait(work(&["a"])))
                .await
                .expect("it wakes")
                .expect("a wait");
        }
    }
    pushing.await.expect("the task ends");
}
