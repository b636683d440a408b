//! `tick`, `last_ticks` and `watch`.

use super::*;
use crate::store::Tick;

fn tick(schedule: &str, at: i64) -> Tick {
    Tick {
        schedule: schedule.to_owned(),
        at,
        queue: queue("p"),
        job: job("p", &format!("periodic:{schedule}:{at}")),
        late: false,
        remember: Duration::from_secs(3600),
    }
}

async fn now(store: &Arc<dyn Store>) -> i64 {
    store.time().await.expect("the time").now.as_second()
}

async fn put(store: &Arc<dyn Store>, ticks: &[Tick]) -> Vec<bool> {
    store.tick(ticks).await.expect("ticks").value
}

/// A12: by whichever pool, and not again when it has been moved to its queue, or has run.
pub async fn a_tick_is_put_in_once(subject: &impl Subject) {
    let (one, other) = (subject.store(), subject.another());
    let first = now(&one).await + 100;
    let (a, b) = (tick("p:spec", first), tick("p:spec", first + 60));
    assert_eq!(put(&one, &[a.clone(), b.clone()]).await, [true, true]);
    assert_eq!(put(&other, &[a.clone(), b.clone(), tick("p:other spec", first)]).await, [false, false, true]);
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.scheduled.len(), 3);
    assert!(snapshot.scheduled.contains(&(first, a.job.clone())));
    assert!(snapshot.known.contains(&queue("p")));
    subject.advance(Duration::from_secs(130));
    assert_eq!(one.promote(10).await.expect("a promotion").value.moved, 2);
    // A pool whose clock is behind still thinks that it is due.
    assert_eq!(put(&other, &[Tick { late: true, ..a }, b]).await, [false, false]);
    assert_eq!(subject.snapshot().await.scheduled.len(), 1);
}

/// Not even by a pool that was stopped for a while in between.
pub async fn ticks_of_the_past_are_not_put_in_unless_they_may_be_late(subject: &impl Subject) {
    let store = subject.store();
    let past = now(&store).await - 30;
    let late = Tick { late: true, ..tick("p:spec", past) };
    assert_eq!(put(&store, &[tick("p:spec", past), late.clone(), late]).await, [false, true, false]);
    assert_eq!(subject.snapshot().await.scheduled.len(), 1);
}

/// So that missed ones can be caught up with.
pub async fn the_last_tick_of_a_schedule_is_remembered(subject: &impl Subject) {
    let store = subject.store();
    let now = now(&store).await;
    put(&store, &[tick("a:x", now + 20), tick("a:x", now + 10), tick("b:x", now + 5)]).await;
    let asked = ["a:x", "b:x", "c:x"].map(str::to_owned);
    let last = subject.another().last_ticks(&asked).await.expect("the last ticks").value;
    assert_eq!(last, [Some(now + 20), Some(now + 5), None]);
}

/// A41: whichever pool did it.
pub async fn ticks_that_were_picked_up_are_known_to_all(subject: &impl Subject) {
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let done = ids(&["periodic:a:* * * * *:60", "periodic:a:* * * * *:120"]);
    assert_eq!(subject.store().watch(&done, &[]).await.expect("marks").value, [] as [bool; 0]);
    let asked = ids(&["periodic:a:* * * * *:120", "periodic:b:* * * * *:120", "periodic:a:* * * * *:60"]);
    let known = subject.another().watch(&[], &asked).await.expect("marks").value;
    assert_eq!(known, [true, false, true]);
}
