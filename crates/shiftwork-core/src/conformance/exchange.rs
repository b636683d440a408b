//! `exchange`: finishing and claiming; and `own_claims`.

use std::collections::HashSet;

use super::*;

/// The main road.
pub async fn a_claim_moves_a_job_and_a_finish_ends_it(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    let jobs = fill(&store, "a", 3).await;
    let claims = claim(&store, &pool, "a", 2).await;
    assert_eq!(bytes_of(&claims), jobs[..2]);
    let held = subject.snapshot().await.queue("a");
    assert_eq!(held.jobs, jobs[2..]);
    assert_eq!(held.claims[&pool], jobs[..2]);
    let reply = store.finish(&pool, claims.iter().map(done).collect()).await.expect("a finish").value;
    assert_eq!((reply.lost, reply.claims), (vec![], vec![]));
    let left = subject.snapshot().await;
    assert_eq!((left.jobs(), left.queue("a").running()), (1, 0));
}

/// Retry, scheduled, dead: with the new bytes and the given second.
pub async fn finishes_go_where_they_say(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    fill(&store, "a", 4).await;
    let claims = claim(&store, &pool, "a", 4).await;
    let new = |id: &str| job("a", id);
    let to = [
        Destination::Retry { at: 4_000_000_001, job: new("r") },
        Destination::Scheduled { at: 4_000_000_002, job: new("s") },
        Destination::Dead { at: 4_000_000_003, job: new("d") },
        Destination::Gone,
    ];
    let finishes = claims.into_iter().zip(to).map(|(claim, to)| Finish { claim, to }).collect();
    store.finish(&pool, finishes).await.expect("a finish");
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.retry, [(4_000_000_001, new("r"))]);
    assert_eq!(snapshot.scheduled, [(4_000_000_002, new("s"))]);
    assert_eq!(snapshot.dead, [(4_000_000_003, new("d"))]);
    assert_eq!(snapshot.jobs(), 3);
}

/// A claim ends once, and only by the pool that holds it; what is lost is named and leaves no trace.
pub async fn finishing_is_idempotent_and_fenced(subject: &impl Subject) {
    let (store, ours, theirs) = (subject.store(), pool("ours"), pool("theirs"));
    fill(&store, "a", 3).await;
    let claims = claim(&store, &ours, "a", 3).await;
    let bury = |claim: &Claim| Finish {
        claim: claim.clone(),
        to: Destination::Dead { at: 9, job: job("a", "buried") },
    };
    let stolen = store.finish(&theirs, vec![bury(&claims[0])]).await.expect("a finish").value;
    assert_eq!(stolen.lost, [0]);
    store.finish(&ours, vec![done(&claims[1])]).await.expect("a finish");
    let again =
        vec![bury(&claims[1]), done(&claims[0]), bury(&claims[1]), done(&claims[2]), done(&claims[2])];
    let reply = subject.another().finish(&ours, again).await.expect("a finish").value;
    assert_eq!(reply.lost, [0, 2, 4]);
    assert_eq!(subject.snapshot().await.jobs(), 0);
}

/// Nothing asked, nothing given.
pub async fn a_limit_of_zero_claims_nothing(subject: &impl Subject) {
    let store = subject.store();
    fill(&store, "a", 2).await;
    assert_eq!(claim(&store, &pool("p"), "a", 0).await, []);
    assert_eq!(store.claim(&pool("p"), request(&[], 5)).await.expect("a claim").value, []);
    assert_eq!(subject.snapshot().await.queue("a").jobs.len(), 2);
}

/// A call's work is bounded, whatever it asks for.
pub async fn no_more_than_a_thousand_at_a_time(subject: &impl Subject) {
    let store = subject.store();
    let jobs = fill(&store, "a", 1200).await;
    assert_eq!(bytes_of(&claim(&store, &pool("p"), "a", 5000).await), jobs[..1000]);
    assert_eq!(bytes_of(&claim(&store, &pool("p"), "a", 5000).await), jobs[1000..]);
}

/// Not even to a call that also asks others.
pub async fn a_paused_queue_gives_nothing(subject: &impl Subject) {
    let store = subject.store();
    fill(&store, "a", 2).await;
    fill(&store, "b", 2).await;
    subject.set_paused(&queue("a"), true).await;
    let claims = store.claim(&pool("p"), request(&[("a", 9), ("b", 1)], 4)).await.expect("a claim").value;
    assert!(claims.iter().all(|claim| claim.queue == queue("b")) && claims.len() == 2, "{claims:?}");
    subject.set_paused(&queue("a"), false).await;
    assert_eq!(claim(&store, &pool("p"), "a", 4).await.len(), 2);
}

/// Whoever holds the claims; a limit that is lowered below what runs is waited for.
pub async fn a_limit_holds_over_pools(subject: &impl Subject) {
    let store = subject.store();
    fill(&store, "a", 10).await;
    subject.set_max_concurrency(&queue("a"), Some(3)).await;
    let first = claim(&store, &pool("p"), "a", 2).await;
    assert_eq!(first.len(), 2);
    assert_eq!(claim(&subject.another(), &pool("q"), "a", 2).await.len(), 1);
    assert_eq!(claim(&store, &pool("p"), "a", 2).await.len(), 0);
    subject.set_max_concurrency(&queue("a"), Some(1)).await;
    store.finish(&pool("p"), first.iter().map(done).collect()).await.expect("a finish");
    assert_eq!(claim(&store, &pool("p"), "a", 2).await.len(), 0);
    for no_limit in [Some(0), None] {
        subject.set_max_concurrency(&queue("a"), no_limit).await;
        assert_eq!(claim(&store, &pool("p"), "a", 2).await.len(), 2);
    }
}

/// Finishes come first.
pub async fn a_finish_makes_room_for_the_same_call(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    let jobs = fill(&store, "a", 3).await;
    subject.set_max_concurrency(&queue("a"), Some(1)).await;
    let held = claim(&store, &pool, "a", 3).await;
    assert_eq!(held.len(), 1);
    let request =
        Exchange { pool: pool.clone(), finishes: vec![done(&held[0])], claim: request(&[("a", 1)], 3) };
    let reply = exchange(&store, request).await;
    assert_eq!(bytes_of(&reply.claims), jobs[1..2]);
    assert_eq!(subject.snapshot().await.queue("a").running(), 1);
}

/// Finishing one of two equal claims leaves the other.
pub async fn equal_bytes_are_two_claims(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    store.push(&[push("a", job("a", "x")), push("a", job("a", "x"))]).await.expect("a push");
    let claims = claim(&store, &pool, "a", 2).await;
    assert_eq!(claims[0], claims[1]);
    store.finish(&pool, vec![done(&claims[0])]).await.expect("a finish");
    assert_eq!(subject.snapshot().await.queue("a").running(), 1);
    let reply = store.finish(&pool, vec![done(&claims[0]), done(&claims[0])]).await.expect("a finish").value;
    assert_eq!(reply.lost, [1]);
}

/// Several pools on several handles, at the same time.
pub async fn concurrent_claims_take_each_job_once(subject: &impl Subject) {
    let jobs = fill(&subject.store(), "a", 600).await;
    let tasks: Vec<_> = (0..6)
        .map(|number| {
            let store = if number % 2 == 0 { subject.store() } else { subject.another() };
            tokio::spawn(async move {
                let pool = pool(&format!("p{number}"));
                let mut taken = Vec::new();
                loop {
                    let claims = claim(&store, &pool, "a", 7).await;
                    if claims.is_empty() {
                        return taken;
                    }
                    store.finish(&pool, claims.iter().map(done).collect()).await.expect("a finish");
                    taken.extend(bytes_of(&claims));
                }
            })
        })
        .collect();
    let mut taken = Vec::new();
    for task in tasks {
        taken.extend(task.await.expect("the task ends"));
    }
    assert_eq!(taken.len(), 600);
    assert_eq!(taken.into_iter().collect::<HashSet<_>>(), jobs.into_iter().collect());
    assert_eq!(subject.snapshot().await.jobs(), 0);
}

/// What reconciliation works with.
pub async fn own_claims_are_listed_oldest_first(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    let jobs = fill(&store, "a", 5).await;
    claim(&store, &pool, "a", 2).await;
    claim(&store, &super::pool("q"), "a", 1).await;
    claim(&store, &pool, "a", 2).await;
    let own = store.own_claims(&pool, &[queue("b"), queue("a")]).await.expect("own claims").value;
    assert_eq!(bytes_of(&own), [0, 1, 3, 4].map(|index| jobs[index].clone()));
    assert!(own.iter().all(|claim| claim.queue == queue("a")));
}

/// A busy pool's groups are large.
pub async fn many_finishes_in_one_call(subject: &impl Subject) {
    let (store, pool) = (subject.store(), pool("p"));
    fill(&store, "a", 900).await;
    fill(&store, "b", 900).await;
    let mut claims = claim(&store, &pool, "a", 900).await;
    claims.extend(claim(&store, &pool, "b", 900).await);
    let retry = |claim: &Claim| Destination::Retry { at: 4_000_000_000, job: claim.job.clone() };
    let finishes = claims.iter().map(|claim| Finish { claim: claim.clone(), to: retry(claim) }).collect();
    assert_eq!(store.finish(&pool, finishes).await.expect("a finish").value.lost, Vec::<usize>::new());
    let snapshot = subject.snapshot().await;
    assert_eq!((snapshot.retry.len(), snapshot.jobs()), (1800, 1800));
}
