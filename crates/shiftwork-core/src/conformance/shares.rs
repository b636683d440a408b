//! How a batch is shared among queues.

use super::*;
use crate::store::{Available, allot};

fn count(claims: &[Claim], name: &str) -> usize {
    claims.iter().filter(|claim| *claim.queue == *name).count()
}

/// Within a batch, too.
pub async fn a_batch_is_shared_by_weight(subject: &impl Subject) {
    let store = subject.store();
    for name in ["a", "b", "c"] {
        fill(&store, name, 100).await;
    }
    let claims =
        store.claim(&pool("p"), request(&[("a", 1), ("b", 2), ("c", 7)], 50)).await.expect("a claim").value;
    assert_eq!(["a", "b", "c"].map(|name| count(&claims, name)), [5, 10, 35]);
}

/// The same draw gives the same batch in every store.
pub async fn batches_are_those_of_allot(subject: &impl Subject) {
    let store = subject.store();
    let mut random = fastrand::Rng::with_seed(11);
    let names = ["a", "b", "c", "d", "e"];
    for round in 0..60 {
        let pool = pool(&format!("p{round}"));
        let mut available = Vec::new();
        let mut wanted = request(&[], random.usize(1..40));
        wanted.draw = random.f64();
        for name in names {
            let jobs = random.usize(0..25);
            fill(&store, name, jobs).await;
            let weight = [1, 2, 3, 50, 100_000][random.usize(0..5)];
            available.push(Available { weight, jobs });
            wanted.queues.push(QueueShare { queue: queue(name), weight });
        }
        let expected = allot(&available, wanted.limit, wanted.draw);
        let claims = store.claim(&pool, wanted.clone()).await.expect("a claim").value;
        let got: Vec<_> = names.iter().map(|name| count(&claims, name)).collect();
        assert_eq!(got, expected, "round {round}: {available:?} {wanted:?}");
        // Empty the queues for the next round.
        wanted.limit = 1000;
        store.claim(&pool, wanted).await.expect("a claim");
    }
}

/// Single claims, each on its own draw, add up to the weights.
pub async fn shares_hold_in_the_long_run(subject: &impl Subject) {
    let store = subject.store();
    fill(&store, "a", 1000).await;
    fill(&store, "b", 1000).await;
    let mut taken = [0, 0];
    for round in 0..400 {
        let mut wanted = request(&[("a", 1), ("b", 3)], 1);
        wanted.draw = f64::from(round % 100) / 100.0;
        let claims = store.claim(&pool("p"), wanted).await.expect("a claim").value;
        taken[0] += count(&claims, "a");
        taken[1] += count(&claims, "b");
    }
    assert_eq!(taken, [100, 300]);
}
