//! What a Go service sees: exact keys and bytes, from the golden snapshots of the Go library.

use shiftwork_core::store::{Beat, Destination, Finish, QueueLimit, Start, Store, UniqueLock};
use shiftwork_core::{Client, Enqueue};
use test_servers::{RedisServer, Value};

use super::*;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The vector's dump of a scenario: key without namespace, as JSON.
fn golden(scenario: &str, at: usize) -> serde_json::Map<String, serde_json::Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shiftwork-core/tests/golden/snapshots.json");
    let golden: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let scenarios = golden["scenarios"].as_array().unwrap();
    let found = scenarios.iter().find(|found| found["scenario"] == scenario).unwrap();
    found["dumps"][at]["keys"].as_object().unwrap().clone()
}

#[tokio::test]
async fn two_jobs_are_enqueued_as_go_enqueues_them() {
    let server = RedisServer::start();
    let client =
        Client::from(RedisStore::builder(&server.url()).namespace("labsnap").connect().await.unwrap());
    let one = client.enqueue(Enqueue::named("foo", &())).await.unwrap();
    let two = client.enqueue(Enqueue::json("foo", r#"{"b":1,"a":"<x>"}"#)).await.unwrap();
    let wanted = golden("enqueue_two", 0);
    let dump = server.dump("labsnap:");
    assert_eq!(dump.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    let Value::List(items) = &dump["labsnap:jobs:foo"] else { panic!("{dump:?}") };
    let wanted = wanted["labsnap:jobs:foo"]["value"].as_array().unwrap();
    for (item, (wanted, receipt)) in items.iter().zip(wanted.iter().zip([&two, &one])) {
        let wanted = wanted.as_str().unwrap().replace("<JOB2>", two.id()).replace("<JOB1>", one.id());
        let wanted = wanted.replace("1700000000", &receipt.job().enqueued_at().to_string());
        assert_eq!(text(item), wanted);
    }
    assert_eq!(dump["labsnap:known_jobs"], Value::set(["foo"]));
}

#[tokio::test]
async fn unique_jobs_set_the_keys_that_go_sets() {
    let server = RedisServer::start();
    let client =
        Client::from(RedisStore::builder(&server.url()).namespace("labsnap").connect().await.unwrap());
    for job in [Enqueue::json("foo", r#"{"b":1,"a":"<"}"#), Enqueue::json("foo", "null")] {
        assert!(client.enqueue(job.clone().unique()).await.unwrap().is_enqueued());
        assert!(client.enqueue(job.unique()).await.unwrap().is_duplicate());
    }
    let keys = |name: &str| name.starts_with("labsnap:unique:");
    let wanted: Vec<_> = golden("unique", 0).keys().filter(|key| keys(key)).cloned().collect();
    let ours: Vec<_> = server.dump("labsnap:").into_keys().filter(|key| keys(key)).collect();
    assert!(!wanted.is_empty());
    assert_eq!(ours, wanted);
    for key in ours {
        let seconds = server.run(&["TTL", &key]).int();
        assert!((86_390..=86_400).contains(&seconds), "{seconds}");
    }
    let delayed = Enqueue::json("foo", r#"{"c":1}"#).unique().after(std::time::Duration::from_secs(1000));
    client.enqueue(delayed).await.unwrap();
    let seconds = server.run(&["TTL", "labsnap:unique:foo:{\"c\":1}\n"]).int();
    assert!(
        (87_390..=87_401).contains(&seconds),
        "a35: the key lives a day longer than the delay: {seconds}"
    );
}

#[tokio::test]
async fn a_claim_is_where_go_expects_it() {
    let server = RedisServer::start();
    let store = RedisStore::builder(&server.url()).namespace("labsnap").connect().await.unwrap();
    let (first, second) = (r#"{"name":"foo","id":"1","t":1700000000,"args":{"a":1}}"#, job("foo", "2"));
    server.run(&["LPUSH", "labsnap:jobs:foo", first, &text(&second)]);
    let claim = super::claim(&store, "foo", 1).await.remove(0);
    assert_eq!(text(&claim.job), first);
    let dump = server.dump("labsnap:");
    for (key, value) in golden("in_progress", 0) {
        let key = key.replace("<POOL1>", "pool");
        let about_this_claim =
            ["jobs:foo", "inprogress", "lock", "lock_info"].iter().any(|end| key.ends_with(end));
        if about_this_claim {
            assert_eq!(value["type"].as_str().unwrap(), type_of(&dump[&key]), "{key}");
        }
    }
    assert_eq!(dump["labsnap:jobs:foo:pool:inprogress"], Value::list([first]));
    assert_eq!(dump["labsnap:jobs:foo:lock"], Value::string("1"));
    assert_eq!(dump["labsnap:jobs:foo:lock_info"], Value::hash([("pool", "1")]));
    let to = Destination::Retry { at: 1_700_000_042, job: second.clone() };
    store.finish(&pool(), vec![Finish { claim, to }]).await.unwrap();
    let dump = server.dump("labsnap:");
    assert_eq!(dump["labsnap:jobs:foo:lock"], Value::string("0"));
    assert_eq!(dump["labsnap:jobs:foo:lock_info"], Value::hash([("pool", "0")]));
    assert_eq!(dump["labsnap:retry"], Value::sorted_set([(&*second, 1_700_000_042.0)]));
    store.leave(&pool(), &[name("foo")]).await.unwrap();
    assert!(
        !server.dump("labsnap:").contains_key("labsnap:jobs:foo:lock_info"),
        "a18: no residue of a stopped pool"
    );
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::List(_) => "list",
        Value::Set(_) => "set",
        Value::SortedSet(_) => "zset",
        Value::Hash(_) => "hash",
    }
}

fn beat(register: bool) -> Beat {
    Beat {
        pool: pool(),
        register,
        started_at: 1_700_000_000,
        queues: vec![
            QueueLimit { queue: name("foo"), max_concurrency: Some(2) },
            QueueLimit { queue: name("bar"), max_concurrency: None },
        ],
        concurrency: 3,
        worker_ids: ["w1", "w2", "w3"].map(str::to_owned).into(),
        host: "host".to_owned(),
        pid: 7,
        quiet: false,
        look_after: std::time::Duration::from_secs(2),
    }
}

#[tokio::test]
async fn a_heartbeat_has_the_fields_that_go_reads() {
    let server = RedisServer::start();
    let store = RedisStore::builder(&server.url()).namespace("labsnap").connect().await.unwrap();
    store.beat(&beat(true)).await.unwrap();
    let dump = server.dump("labsnap:");
    assert_eq!(dump["labsnap:worker_pools"], Value::set(["pool"]));
    assert_eq!(dump["labsnap:jobs:foo:max_concurrency"], Value::string("2"));
    assert_eq!(dump["labsnap:known_jobs"], Value::set(["bar", "foo"]));
    let Value::Hash(fields) = &dump["labsnap:worker_pools:pool"] else { panic!("{dump:?}") };
    let field = |name: &str| text(&fields[name.as_bytes()]);
    let fields_of_go = golden("heartbeat", 0);
    let (_, heartbeat) = fields_of_go.iter().find(|(key, _)| key.contains("worker_pools:")).unwrap();
    for name in heartbeat["value"].as_object().unwrap().keys() {
        assert!(!field(name).is_empty(), "{name}");
    }
    assert_eq!(["job_names", "worker_ids"].map(field), ["bar,foo", "w1,w2,w3"]);
    assert_eq!(["concurrency", "host", "pid", "started_at"].map(field), ["3", "host", "7", "1700000000"]);
    let now = server.run(&["TIME"]).list()[0].int();
    assert!((now - 2..=now).contains(&field("heartbeat_at").parse().unwrap()));
    assert_eq!(server.run(&["TTL", "labsnap:worker_pools:pool"]).int(), -1);
}

/// Each verb of the trait with something to do.
pub(crate) async fn every_verb_once(store: &RedisStore) {
    let unique = Some(UniqueLock {
        key: "a:{}\n".to_owned(),
        owner: "1".to_owned(),
        ttl: std::time::Duration::from_secs(60),
    });
    store.beat(&beat(true)).await.unwrap();
    let scheduled = Push { run_at: Some(1), ..push("a", "3") };
    store.push(&[Push { unique, ..push("a", "1") }, push("a", "2"), scheduled]).await.unwrap();
    let promoted = store.promote(10).await.unwrap().value;
    assert_eq!(promoted.moved, 1);
    let claims = claim(store, "a", 3).await;
    assert_eq!(claims.len(), 3);
    store.start(&[Start { keys: vec!["a:{}\n".to_owned()], owner: "1".to_owned() }]).await.unwrap();
    let to = [Destination::Gone, Destination::Dead { at: 1, job: job("a", "d") }];
    let finishes = claims.iter().cloned().zip(to).map(|(claim, to)| Finish { claim, to }).collect();
    assert!(store.finish(&pool(), finishes).await.unwrap().value.lost.is_empty());
    assert_eq!(store.own_claims(&pool(), &[name("a")]).await.unwrap().value.len(), 1);
    assert_eq!(store.release(&pool(), &claims).await.unwrap().value, 1);
    assert_eq!(store.backlog(&[name("a")]).await.unwrap().value.queued, [(name("a"), 1)]);
    store.wait(shiftwork_core::store::WaitFor::Work { queues: [name("a")].into() }).await.unwrap();
    assert!(store.beat(&beat(false)).await.unwrap().value.registered);
    store.leave(&pool(), &[name("a")]).await.unwrap();
}
