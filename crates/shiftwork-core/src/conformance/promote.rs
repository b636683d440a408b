//! `promote`: due jobs go to their queues.

use super::*;
use crate::job::RawJob;

/// A second long ago.
const PAST: i64 = 1_600_000_000;
/// A second far ahead.
const FUTURE: i64 = 4_000_000_000;

fn ids(jobs: &[JobBytes]) -> Vec<String> {
    jobs.iter().map(|job| RawJob::parse(job.clone()).expect("a job").id().to_owned()).collect()
}

/// By time within each set.
pub async fn due_jobs_move_oldest_first(subject: &impl Subject) {
    let store = subject.store();
    for (place, id) in [
        (Place::Scheduled(PAST + 2), "s2"),
        (Place::Scheduled(PAST + 1), "s1"),
        (Place::Scheduled(FUTURE), "later"),
        (Place::Retry(PAST), "r1"),
        (Place::Retry(PAST + 5), "r2"),
    ] {
        subject.plant(place, &job("a", id)).await;
    }
    let promoted = store.promote(100).await.expect("a promotion").value;
    assert_eq!((promoted.moved, promoted.buried, promoted.next_due), (4, 0, Some(FUTURE)));
    let snapshot = subject.snapshot().await;
    assert_eq!(ids(&snapshot.queue("a").jobs), ["s1", "s2", "r1", "r2"]);
    assert_eq!(snapshot.scheduled.len(), 1);
    assert_eq!(store.promote(100).await.expect("a promotion").value.moved, 0);
}

/// A call's work is bounded, and the reply says that more is due.
pub async fn slices_are_bounded_and_say_what_is_left(subject: &impl Subject) {
    let store = subject.store();
    for number in 0..7 {
        subject.plant(Place::Scheduled(PAST + number), &job("a", &number.to_string())).await;
    }
    let first = store.promote(3).await.expect("a promotion").value;
    assert_eq!((first.moved, first.next_due), (3, Some(PAST + 3)));
    assert_eq!(store.promote(0).await.expect("a promotion").value.moved, 0);
    let second = store.promote(100).await.expect("a promotion").value;
    assert_eq!((second.moved, second.next_due), (4, None));
    assert_eq!(ids(&subject.snapshot().await.queue("a").jobs), ["0", "1", "2", "3", "4", "5", "6"]);
}

/// Large integers, empty lists, unknown fields, odd spacing: all but `t` stays.
pub async fn only_the_time_changes(subject: &impl Subject) {
    let store = subject.store();
    let before = br#"{"name":"a", "id":"x","extra":{"l":[]},"t":1,"args":{"n":9007199254740993,"f":1.0,"s":"\u003c\/"},"fails":2}"#;
    subject.plant(Place::Retry(PAST), before).await;
    let now = store.promote(1).await.expect("a promotion").now.as_second();
    let after = String::from_utf8(subject.snapshot().await.queue("a").jobs[0].to_vec()).expect("text");
    let raw = RawJob::parse(after.as_bytes()).expect("a job");
    assert!((now - 2..=now + 2).contains(&raw.enqueued_at()), "{after}");
    let restored = after.replace(&format!("\"t\":{}", raw.enqueued_at()), "\"t\":1");
    assert_eq!(restored.as_bytes(), before);
}

/// A5, A6, A7: what is no job goes to the dead set with its bytes; what is behind it runs.
pub async fn bad_members_do_not_block(subject: &impl Subject) {
    let store = subject.store();
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let bad: [&[u8]; 7] = [
        b"not json",
        br#"{"id":"x"}"#,
        b"123",
        br#"{"name":"a:lock","id":"1"}"#,
        b"\xff",
        deep.as_bytes(),
        b"",
    ];
    for (number, member) in bad.iter().enumerate() {
        let at = PAST + i64::try_from(number).expect("a small number");
        subject.plant(if number % 2 == 0 { Place::Scheduled(at) } else { Place::Retry(at) }, member).await;
    }
    subject.plant(Place::Scheduled(PAST + 100), &job("a", "good")).await;
    subject
        .plant(Place::Retry(PAST + 100), br#"{"name":"a","id":"null d","t":1,"args":null,"d":null}"#)
        .await;
    let promoted = store.promote(100).await.expect("a promotion").value;
    assert_eq!((promoted.moved, promoted.buried, promoted.next_due), (2, bad.len(), None));
    let snapshot = subject.snapshot().await;
    assert_eq!(ids(&snapshot.queue("a").jobs), ["good", "null d"]);
    let dead: Vec<_> =
        snapshot.dead.iter().map(|(_, job)| RawJob::parse(job.clone()).expect("a job")).collect();
    assert_eq!(dead.len(), bad.len());
    let args: Vec<_> = dead.iter().filter_map(|job| job.args_text().map(|args| args.into_owned())).collect();
    assert!(args.contains(&r#"{"_raw":"not json"}"#.to_owned()), "{args:?}");
    assert!(args.contains(&r#"{"_raw_base64":"/w=="}"#.to_owned()), "{args:?}");
    assert!(dead.iter().all(|job| job.error().is_some() && job.fails() == 1));
}

/// A9: whether or not anybody here knows them.
pub async fn unknown_types_are_moved_too(subject: &impl Subject) {
    let store = subject.store();
    subject.plant(Place::Scheduled(PAST), &job("nobody-knows", "1")).await;
    assert_eq!(store.promote(10).await.expect("a promotion").value.moved, 1);
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.queue("nobody-knows").jobs.len(), 1);
    assert!(snapshot.known.contains("nobody-knows"), "so that people see the queue");
}

/// Many pools share the work.
pub async fn two_promoters_move_each_job_once(subject: &impl Subject) {
    for number in 0..300 {
        subject.plant(Place::Scheduled(PAST + number), &job("a", &number.to_string())).await;
    }
    let promoter = |store: Arc<dyn Store>| {
        tokio::spawn(async move {
            let mut moved = 0;
            loop {
                let promoted = store.promote(20).await.expect("a promotion").value;
                moved += promoted.moved;
                if promoted.next_due.is_none() {
                    return moved;
                }
            }
        })
    };
    let (one, two) = (promoter(subject.store()), promoter(subject.another()));
    assert_eq!(one.await.expect("the task ends") + two.await.expect("the task ends"), 300);
    assert_eq!(subject.snapshot().await.queue("a").jobs.len(), 300);
}

/// By the store's clock, at the second and not before.
pub async fn promoted_jobs_come_due_with_time(subject: &impl Subject) {
    let store = subject.store();
    let now = store.time().await.expect("the time").now.as_second();
    subject.plant(Place::Scheduled(now + 1000), &job("a", "1")).await;
    let early = store.promote(10).await.expect("a promotion").value;
    assert_eq!((early.moved, early.next_due), (0, Some(now + 1000)));
    subject.advance(Duration::from_secs(1000));
    assert_eq!(subject.another().promote(10).await.expect("a promotion").value.moved, 1);
}
