//! `release`: giving claims back.

use super::*;

/// The first of the slice runs first, before everything that waits.
pub async fn claims_go_back_to_the_head_in_order(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    let jobs = fill(&store, "a", 4).await;
    let others = fill(&store, "b", 1).await;
    let mut claims = claim(&store, &pool, "a", 3).await;
    claims.extend(claim(&store, &pool, "b", 1).await);
    assert_eq!(store.release(&pool, &[]).await.expect("a release").value, 0);
    assert_eq!(store.release(&pool, &claims).await.expect("a release").value, 4);
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.queue("a").jobs, jobs);
    assert_eq!(snapshot.queue("b").jobs, others);
    assert_eq!(snapshot.queue("a").running() + snapshot.queue("b").running(), 0);
}

/// What another pool holds, or nobody, is passed over.
pub async fn foreign_claims_are_not_released(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    fill(&store, "a", 3).await;
    let claims = claim(&store, &pool, "a", 2).await;
    assert_eq!(store.release(&super::pool("q"), &claims).await.expect("a release").value, 0);
    store.finish(&pool, vec![done(&claims[0])]).await.expect("a finish");
    assert_eq!(store.release(&pool, &claims).await.expect("a release").value, 1);
    assert_eq!(store.release(&pool, &claims).await.expect("a release").value, 0);
    let left = subject.snapshot().await.queue("a");
    assert_eq!((left.jobs.len(), left.running()), (2, 0));
    assert_eq!(left.jobs[0], claims[1].job);
}

/// However many there are.
pub async fn many_are_released_in_order(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    let jobs = fill(&store, "a", 2500).await;
    let mut claims = Vec::new();
    while claims.len() < 2300 {
        claims.extend(claim(&store, &pool, "a", 1000).await);
    }
    let count = claims.len();
    assert_eq!(store.release(&pool, &claims).await.expect("a release").value, count);
    assert_eq!(subject.snapshot().await.queue("a").jobs, jobs);
}
