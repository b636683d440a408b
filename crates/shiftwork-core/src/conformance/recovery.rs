//! `look`, `held`, `recover`, `audit`, `note_unknown`, `reaper_lock` and `observe`.

use super::*;
use crate::job::RawJob;
use crate::store::{
    Beat, Held, Look, Looked, Observation, ObservedJob, QueueLimit, Recover, Recovered, Recovery, Witness,
};

const LOOK: Look = Look {
    every: Duration::from_millis(1500),
    silent_for: Duration::from_secs(10),
    gap: Duration::from_secs(8),
    audit_every: Duration::from_secs(15),
};

fn beat(id: &str, register: bool) -> Beat {
    Beat {
        pool: pool(id),
        register,
        started_at: 1_700_000_000,
        queues: ["a", "b"].map(|name| QueueLimit { queue: queue(name), max_concurrency: None }).into(),
        concurrency: 2,
        worker_ids: vec!["w".to_owned()],
        host: "host".to_owned(),
        pid: 7,
        quiet: false,
        look_after: Duration::from_secs(2),
    }
}

async fn beats(store: &Arc<dyn Store>, id: &str) {
    assert!(store.beat(&beat(id, false)).await.expect("a beat").value.registered);
}

async fn registers(store: &Arc<dyn Store>, id: &str) {
    assert!(store.beat(&beat(id, true)).await.expect("a beat").value.registered);
}

async fn look(store: &Arc<dyn Store>) -> Looked {
    store.look(&LOOK).await.expect("a look").value
}

/// Looks every four seconds for so long, while `living` beats.
async fn time_passes(subject: &impl Subject, seconds: u64, living: &str) -> Looked {
    let mut last = Looked::default();
    for _ in 0..seconds / 4 {
        subject.advance(Duration::from_secs(4));
        beats(&subject.store(), living).await;
        last = look(&subject.store()).await;
        assert!(last.looked);
    }
    last
}

async fn held(store: &Arc<dyn Store>, id: &str, limit: usize) -> Vec<Held> {
    store.held(&pool(id), &[queue("a"), queue("b")], limit).await.expect("the claims").value
}

fn back(held: &[Held]) -> Vec<Recovery> {
    let recovery = |held: &Held| {
        let id = id_of(&held.claim);
        Recovery { claim: held.claim.clone(), id, record: "killed".to_owned(), bury: None }
    };
    held.iter().map(recovery).collect()
}

fn id_of(claim: &Claim) -> Option<String> {
    RawJob::parse(claim.job.clone()).ok().map(|job| job.id().to_owned())
}

async fn recover(
    store: &Arc<dyn Store>,
    id: &str,
    witness: &Witness,
    recoveries: Vec<Recovery>,
) -> Recovered {
    let queues = vec![queue("a"), queue("b")];
    let recover = Recover { pool: pool(id), witness: witness.clone(), queues, recoveries };
    store.recover(&recover).await.expect("a recovery").value
}

/// However many reapers there are, and whoever it is.
pub async fn only_one_looks_at_a_time(subject: &impl Subject) {
    registers(&subject.store(), "p").await;
    let first = look(&subject.store()).await;
    assert_eq!((first.looked, first.pools, first.audit), (true, 1, true));
    let second = look(&subject.another()).await;
    assert_eq!((second.looked, second.audit), (false, false));
    subject.advance(Duration::from_secs(2));
    let third = look(&subject.another()).await;
    assert_eq!((third.looked, third.audit), (true, false));
}

/// So that nobody has to poll.
pub async fn the_reply_to_a_beat_asks_for_a_look(subject: &impl Subject) {
    let store = subject.store();
    assert!(store.beat(&beat("p", true)).await.expect("a beat").value.look, "nobody ever looked");
    look(&store).await;
    assert!(!store.beat(&beat("p", false)).await.expect("a beat").value.look);
    subject.advance(Duration::from_secs(3));
    assert!(store.beat(&beat("p", false)).await.expect("a beat").value.look);
}

/// And no pool that beats, whoever looks.
pub async fn a_pool_that_falls_silent_is_found(subject: &impl Subject) {
    let store = subject.store();
    registers(&store, "dead").await;
    registers(&store, "living").await;
    look(&store).await;
    let before = time_passes(subject, 8, "living").await;
    assert_eq!(before.silent, [], "not yet");
    let after = time_passes(subject, 4, "living").await;
    let silent: Vec<_> = after.silent.iter().map(|silent| (&silent.pool, &*silent.host)).collect();
    assert_eq!(silent, [(&pool("dead"), "host")]);
    assert_eq!(after.silent[0].workers, ["w"]);
    let mut queues = after.silent[0].queues.clone();
    queues.sort();
    assert_eq!(queues, [queue("a"), queue("b")]);
    let mut known = after.known;
    known.sort();
    assert_eq!(known, [queue("a"), queue("b")]);
}

/// A23: the store was away, so nobody could beat, and nobody is to be blamed.
pub async fn after_a_gap_everybody_may_show_that_he_lives(subject: &impl Subject) {
    let store = subject.store();
    registers(&store, "living").await;
    registers(&store, "dead").await;
    look(&store).await;
    subject.advance(Duration::from_secs(60));
    assert_eq!(look(&store).await.silent, [], "all beats are old, and nobody is dead");
    let before = time_passes(subject, 8, "living").await;
    assert_eq!(before.silent, []);
    let after = time_passes(subject, 4, "living").await;
    assert_eq!(after.silent.len(), 1);
}

/// A28: not behind what has come since.
pub async fn jobs_of_a_dead_pool_go_to_the_head_in_their_old_order(subject: &impl Subject) {
    let store = subject.store();
    let jobs = fill(&store, "a", 7).await;
    subject.set_max_concurrency(&queue("a"), Some(5)).await;
    registers(&store, "p").await;
    claim(&store, &pool("p"), "a", 5).await;
    store.leave(&pool("p"), &[]).await.expect("a leave");
    // In slices, the newest first, so that the oldest ends up at the head.
    let newest = held(&store, "p", 2).await;
    assert_eq!(newest.iter().map(|held| &held.claim.job).collect::<Vec<_>>(), [&jobs[3], &jobs[4]]);
    let reply = recover(&store, "p", &Witness::Unregistered, back(&newest)).await;
    assert_eq!(reply, Recovered { fenced: true, returned: 2, buried: 0, removed: false });
    assert_eq!(subject.snapshot().await.queue("a").running(), 3);
    let rest = held(&store, "p", 10).await;
    let reply = recover(&store, "p", &Witness::Unregistered, back(&rest)).await;
    assert_eq!(reply, Recovered { fenced: true, returned: 3, buried: 0, removed: true });
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.queue("a").jobs, jobs);
    assert_eq!(claim(&store, &pool("q"), "a", 10).await.len(), 5, "there is room again");
}

/// A21, A22: whatever was seen before. One step decides.
pub async fn a_pool_that_shows_any_sign_of_life_is_left_alone(subject: &impl Subject) {
    let store = subject.store();
    registers(&store, "p").await;
    registers(&store, "living").await;
    fill(&store, "a", 3).await;
    claim(&store, &pool("p"), "a", 2).await;
    look(&store).await;
    let looked = time_passes(subject, 12, "living").await;
    let witness = looked.silent[0].witness.clone();
    let claims = held(&store, "p", 10).await;
    beats(&store, "p").await;
    let before = subject.snapshot().await;
    assert_eq!(recover(&store, "p", &witness, back(&claims)).await, Recovered::default());
    assert_eq!(recover(&store, "p", &Witness::NoHeartbeat, back(&claims)).await, Recovered::default());
    assert_eq!(recover(&store, "p", &Witness::Unregistered, back(&claims)).await, Recovered::default());
    assert_eq!(subject.snapshot().await, before);
}

/// And its late finishes do nothing; its next beat tells it.
pub async fn a_recovered_pool_is_gone_and_fenced(subject: &impl Subject) {
    let store = subject.store();
    registers(&store, "p").await;
    registers(&store, "living").await;
    fill(&store, "a", 1).await;
    let claims = claim(&store, &pool("p"), "a", 1).await;
    look(&store).await;
    let looked = time_passes(subject, 12, "living").await;
    let witness = looked.silent[0].witness.clone();
    let reply = recover(&store, "p", &witness, back(&held(&store, "p", 10).await)).await;
    assert!(reply.removed);
    assert!(!store.beat(&beat("p", false)).await.expect("a beat").value.registered);
    let late = store.finish(&pool("p"), claims.iter().map(done).collect()).await.expect("a finish").value;
    assert_eq!(late.lost, [0]);
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.queue("a").jobs.len(), 1);
    assert_eq!(snapshot.pools.into_iter().collect::<Vec<_>>(), [pool("living")]);
}

/// A job that takes worker after worker with it must not kill them all.
pub async fn crashes_are_remembered_and_a_job_can_be_buried(subject: &impl Subject) {
    let store = subject.store();
    fill(&store, "a", 1).await;
    for crash in 0..2 {
        claim(&store, &pool("p"), "a", 1).await;
        let claims = held(&store, "p", 10).await;
        assert_eq!(claims[0].crashes, vec!["killed"; crash]);
        assert!(recover(&store, "p", &Witness::Unregistered, back(&claims)).await.removed);
    }
    claim(&store, &pool("p"), "a", 1).await;
    let mut recoveries = back(&held(&store, "p", 10).await);
    let buried = job("a", "buried");
    recoveries[0].bury = Some(buried.clone());
    let reply = recover(&store, "p", &Witness::Unregistered, recoveries).await;
    assert_eq!(reply, Recovered { fenced: true, returned: 0, buried: 1, removed: true });
    let snapshot = subject.snapshot().await;
    assert_eq!(snapshot.dead.iter().map(|(_, job)| job).collect::<Vec<_>>(), [&buried]);
    assert_eq!(snapshot.queue("a").jobs.len(), 0);
    assert_eq!(snapshot.crashes["0"], ["killed"; 3]);
}

/// A17, A19: a pool that holds something and that nobody knows; with the time since when.
pub async fn an_audit_finds_pools_that_nobody_knows(subject: &impl Subject) {
    let store = subject.store();
    registers(&store, "known").await;
    fill(&store, "a", 4).await;
    claim(&store, &pool("known"), "a", 1).await;
    claim(&store, &pool("unknown"), "a", 2).await;
    let audits = store.audit(&[]).await.expect("an audit").value;
    let audit = audits.iter().find(|audit| audit.queue == queue("a")).expect("the queue");
    assert!(audit.is_sound());
    assert_eq!(audit.lock, Some(3));
    let mut pools: Vec<_> =
        audit.pools.iter().map(|seen| (&*seen.pool, seen.registered, seen.held)).collect();
    pools.sort();
    assert_eq!(pools, [("known", true, 1), ("unknown", false, 2)]);
    assert!(!store.repair(audit).await.expect("a repair").value, "there is nothing to repair");

    let note = async |ids: &[&str]| {
        let pools: Vec<_> = ids.iter().map(|id| pool(id)).collect();
        store.note_unknown(&pools).await.expect("a note").value
    };
    let first = note(&["unknown"]).await;
    subject.advance(Duration::from_secs(20));
    let later = note(&["unknown", "other"]).await;
    assert_eq!(later[0], first[0]);
    assert!(later[1] >= first[0] + 20, "{later:?}");
    note(&["other"]).await;
    assert!(note(&["unknown"]).await[0] >= first[0] + 20, "forgotten meanwhile");
}

/// For as long as it holds.
pub async fn one_reaper_has_the_lock(subject: &impl Subject) {
    let (one, other) = (subject.store(), subject.another());
    let lock = async |store: &Arc<dyn Store>, token: &str, seconds: Option<u64>| {
        store.reaper_lock(token, seconds.map(Duration::from_secs)).await.expect("a lock").value
    };
    assert!(lock(&one, "one", Some(60)).await);
    assert!(!lock(&other, "other", Some(60)).await);
    assert!(lock(&one, "one", Some(60)).await, "renewed");
    assert!(!lock(&other, "other", None).await, "it is not the other's to free");
    assert!(!lock(&other, "other", Some(60)).await);
    assert!(!lock(&one, "one", None).await);
    assert!(lock(&other, "other", Some(60)).await);
}

/// A39: nothing of an old job stays with a new one.
pub async fn what_workers_run_is_shown_whole(subject: &impl Subject) {
    let store = subject.store();
    let job = |id: &str, checkin: Option<(&str, i64)>| ObservedJob {
        name: "a".to_owned(),
        id: id.to_owned(),
        started_at: 5,
        args: b"{\"n\":1}".as_slice().into(),
        checkin: checkin.map(|(text, at)| (text.to_owned(), at)),
    };
    let observe = async |seen: &[(&str, Option<ObservedJob>)]| {
        let seen: Vec<_> =
            seen.iter().map(|(id, job)| Observation { worker: (*id).to_owned(), job: job.clone() }).collect();
        store.observe(&seen).await.expect("an observation");
    };
    let first = job("1", Some(("i=4000", 9)));
    observe(&[("w1", Some(first.clone())), ("w2", Some(job("2", None)))]).await;
    let shown = subject.snapshot().await.workers;
    assert_eq!((&shown["w1"], &shown["w2"]), (&first, &job("2", None)));
    observe(&[("w1", Some(job("3", None))), ("w2", None)]).await;
    let shown = subject.snapshot().await.workers;
    assert_eq!(shown.into_iter().collect::<Vec<_>>(), [("w1".to_owned(), job("3", None))]);
}
