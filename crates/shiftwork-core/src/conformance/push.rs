//! `push` and `backlog`.

use super::*;

/// Jobs come out in the order in which they went in.
pub async fn jobs_keep_their_order(subject: &impl Subject) {
    let store = subject.store();
    let mut jobs = fill(&store, "a", 3).await;
    let later = job("a", "later");
    store.push(&[push("b", job("b", "0")), push("a", later.clone())]).await.expect("a push");
    jobs.push(later);
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.queue("a").jobs, jobs);
    assert_eq!(snapshot.queue("b").jobs, [job("b", "0")]);
    assert_eq!(snapshot.known.into_iter().collect::<Vec<_>>(), [queue("a"), queue("b")]);
}

/// An empty push is the cheapest way to ask for the time, and time goes on.
pub async fn nothing_gives_the_time(subject: &impl Subject) {
    let store = subject.store();
    let first = store.push(&[]).await.expect("a push");
    assert_eq!(first.value, []);
    subject.advance(Duration::from_secs(3600));
    let second = store.time().await.expect("the time").now;
    let passed = second.duration_since(first.now).as_secs();
    assert!((3600..3630).contains(&passed), "{passed} s");
    assert_eq!(subject.snapshot().await, Snapshot::default());
}

/// Thousands in one call.
pub async fn a_large_push_arrives_whole(subject: &impl Subject) {
    let jobs = fill(&subject.store(), "a", 3500).await;
    assert_eq!(subject.snapshot().await.queue("a").jobs, jobs);
}

/// The key is taken with the job, in the queue and in the scheduled set alike, and comes free with time.
pub async fn a_unique_job_keeps_an_equal_one_out(subject: &impl Subject) {
    let store = subject.store();
    let pushes =
        [unique_push("a", "1", "a:x\n"), unique_push("a", "2", "a:x\n"), unique_push("a", "3", "a:y\n")];
    let pushed = store.push(&pushes).await.expect("a push").value;
    assert_eq!(pushed, [Pushed::Enqueued, Pushed::Duplicate, Pushed::Enqueued]);
    let scheduled = Push { run_at: Some(4_000_000_000), ..unique_push("a", "4", "a:x\n") };
    assert_eq!(subject.another().push(&[scheduled]).await.expect("a push").value, [Pushed::Duplicate]);
    let scheduled = Push { run_at: Some(4_000_000_000), ..unique_push("a", "5", "a:z\n") };
    assert_eq!(store.push(&[scheduled]).await.expect("a push").value, [Pushed::Enqueued]);
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.queue("a").jobs, [job("a", "1"), job("a", "3")]);
    assert_eq!(snapshot.scheduled, [(4_000_000_000, job("a", "5"))]);
    let held: Vec<_> = snapshot.unique.into_iter().collect();
    let wanted = [("a:x\n", "1"), ("a:y\n", "3"), ("a:z\n", "5")]
        .map(|(key, owner)| (key.to_owned(), owner.to_owned()));
    assert_eq!(held, wanted);
}

/// A time makes it a scheduled job; two jobs with equal bytes are one there, at the later call's time.
pub async fn scheduled_jobs_go_to_the_scheduled_set(subject: &impl Subject) {
    let store = subject.store();
    let at = |id: &str, run_at| Push { run_at: Some(run_at), ..push("a", job("a", id)) };
    store
        .push(&[at("late", 4_000_000_002), at("soon", 4_000_000_001), at("late", 4_000_000_003)])
        .await
        .expect("a push");
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.scheduled, [(4_000_000_001, job("a", "soon")), (4_000_000_003, job("a", "late"))]);
    assert_eq!(snapshot.known.into_iter().collect::<Vec<_>>(), [queue("a")]);
}

/// Bytes are opaque: no store reads, mends or re-encodes them.
pub async fn any_bytes_come_out_as_they_went_in(subject: &impl Subject) {
    let store = subject.store();
    let all: Vec<u8> = (0..=255).collect();
    let samples: [&[u8]; 6] = [
        b"",
        &all,
        b"\xff\xfe\x00\r\n$5\r\n",
        br#"{"name":"a","id":"1","t":1,"args":{"n":9007199254740993,"l":[],"f":1.0,"s":"a\/b\u003c"}}"#,
        "{\"name\":\"日本\"}".as_bytes(),
        &vec![b'x'; 1024 * 1024],
    ];
    let pushes: Vec<_> = samples.iter().map(|sample| push("a", JobBytes::from(*sample))).collect();
    store.push(&pushes).await.expect("a push");
    let claims = claim(&store, &pool("p"), "a", 10).await;
    assert_eq!(bytes_of(&claims), samples.map(JobBytes::from));
    let to = |claim: &Claim| Destination::Dead { at: 5, job: claim.job.clone() };
    let finishes = claims.iter().map(|claim| Finish { claim: claim.clone(), to: to(claim) }).collect();
    assert_eq!(store.finish(&pool("p"), finishes).await.expect("a finish").value.lost, Vec::<usize>::new());
    let mut wanted: Vec<_> = samples.map(JobBytes::from).into();
    wanted.sort();
    let dead: Vec<_> = subject.snapshot().await.dead.into_iter().map(|(_, job)| job).collect();
    assert_eq!(dead, wanted);
}

/// A queue is a list, not a set.
pub async fn equal_bytes_are_two_jobs_in_a_queue(subject: &impl Subject) {
    let store = subject.store();
    store.push(&[push("a", job("a", "x")), push("a", job("a", "x"))]).await.expect("a push");
    assert_eq!(subject.snapshot().await.queue("a").jobs, [job("a", "x"), job("a", "x")]);
}

/// Whatever commands a store makes of one call, each queue keeps its order.
pub async fn order_holds_between_plain_and_unique_jobs(subject: &impl Subject) {
    let store = subject.store();
    let pushes = [
        push("a", job("a", "1")),
        unique_push("a", "2", "k"),
        push("b", job("b", "1")),
        push("a", job("a", "3")),
        unique_push("a", "dup", "k"),
        unique_push("a", "4", "l"),
        push("a", job("a", "5")),
    ];
    store.push(&pushes).await.expect("a push");
    let wanted = ["1", "2", "3", "4", "5"].map(|id| job("a", id));
    assert_eq!(subject.snapshot().await.queue("a").jobs, wanted);
}

/// The backlog names queues that have jobs, and counts both due sets.
pub async fn the_backlog_is_counted(subject: &impl Subject) {
    let store = subject.store();
    fill(&store, "a", 3).await;
    subject.plant(Place::Retry(4_000_000_000), b"one").await;
    subject.plant(Place::Scheduled(4_000_000_000), b"two").await;
    subject.plant(Place::Scheduled(4_000_000_000), b"three").await;
    let backlog = store.backlog(&[queue("b"), queue("a")]).await.expect("a backlog").value;
    assert_eq!(backlog.queued, [(queue("a"), 3)]);
    assert_eq!((backlog.scheduled, backlog.retry), (2, 1));
}
