//! Every golden vector of the wire format: jobs, decoding, unique keys.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

mod go_value;
mod properties;

use go_value::{GoValue, base64_decode};
use serde_json::Value;
use shiftwork_core::job::{NewJob, RawJob, args_from_json, args_to_json, unique_key, unique_keys_to_free};

fn golden(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    // One of the vectors is a hundred levels deep.
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    deserializer.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut deserializer).unwrap()
}

/// `{"str": …}` or `{"b64": …}`.
fn bytes(value: &Value) -> Vec<u8> {
    match value.get("str") {
        Some(text) => text.as_str().unwrap().as_bytes().to_vec(),
        None => base64_decode(value["b64"].as_str().unwrap()),
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(&bytes(value)).into_owned()
}

/// Go escapes what was not UTF-8 and writes a U+FFFD that was there as it is. A Rust string is always UTF-8, so the
/// former can't be asked of it, and both stand for the same text.
fn same_replacement(text: &str) -> String {
    text.replace("\\ufffd", "\u{fffd}")
}

/// Where the args hold Go types whose order of keys no Rust value has (structs, raw messages): there ours are sorted, as a
/// Go worker sorts them when it writes the job again.
fn keeps_go_order(case: &Value) -> bool {
    let args = case.to_string();
    args.contains("RawMessage") || args.contains("labStruct")
}

fn encode(job: &Value) -> Result<Vec<u8>, String> {
    let args = args_to_json(&GoValue(&job["args"])).map_err(|error| error.to_string())?;
    let mut trace: Vec<(String, String)> = job["trace"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| text(value), str::to_owned)))
        .collect();
    trace.sort();
    let name = job["name"].as_str().map_or_else(|| text(&job["name"]), str::to_owned);
    let bytes = NewJob {
        name: &name,
        id: job["id"].as_str().unwrap(),
        enqueued_at: job["t"].as_i64().unwrap(),
        args: args.as_deref(),
        unique: job["unique"].as_bool().unwrap(),
        expires_at: job["d"].as_i64().unwrap(),
        trace: &trace,
    }
    .encode();
    let (fails, failed_at) = (job["fails"].as_i64().unwrap(), job["failed_at"].as_i64().unwrap());
    let error = String::from_utf8_lossy(&self::bytes(&job["err"])).into_owned();
    let raw = RawJob::parse(bytes).unwrap();
    Ok(raw.patch().fails(fails).error(&error).failed_at(failed_at).build().bytes().to_vec())
}

#[test]
fn jobs_are_encoded_as_go_does() {
    let golden = golden("job_json");
    let cases = golden["cases"].as_array().unwrap();
    let mut checked = 0;
    for case in cases {
        let name = &case["case"];
        let encoded = encode(&case["job"]);
        if case.get("error").is_some() {
            // `chan` has no counterpart in serde; the vector's stand-in refuses to serialise.
            assert!(encoded.is_err(), "{name}");
        } else {
            let wanted = text(&case[if keeps_go_order(case) { "reserialized" } else { "bytes" }]);
            let encoded = String::from_utf8(encoded.unwrap()).unwrap();
            assert_eq!(same_replacement(&encoded), same_replacement(&wanted), "{name}");
        }
        checked += 1;
    }
    assert_eq!(checked, 41);
}

#[test]
fn jobs_are_decoded_and_come_back_unchanged() {
    let golden = golden("job_json");
    let mut checked = 0;
    for case in golden["cases"].as_array().unwrap() {
        for form in ["bytes", "reserialized", "after_lua_requeue", "after_lua_requeue_reserialized"] {
            let Some(form) = case.get(form) else { continue };
            let bytes = bytes(form);
            let raw = RawJob::parse(bytes.clone()).unwrap();
            assert_eq!(raw.bytes(), bytes);
            assert_eq!(raw.id(), case["job"]["id"].as_str().unwrap());
            assert_eq!(raw.fails(), case["job"]["fails"].as_i64().unwrap());
            assert_eq!(raw.expires_at().unwrap_or(0), case["job"]["d"].as_i64().unwrap());
            assert_eq!(raw.is_unique(), case["job"]["unique"].as_bool().unwrap());
            checked += 1;
        }
    }
    assert_eq!(checked, 38 * 4);
}

#[test]
fn items_are_taken_and_refused_as_go_does() {
    let golden = golden("job_decode");
    let mut checked = 0;
    // A Lua script of the Go library may have made floats of these; they are whole, so they are taken.
    let better = [r#""t":1.0}"#, r#""t":1e3}"#, r#""t":1.7e+09}"#];
    for case in golden["cases"].as_array().unwrap() {
        let item = bytes(&case["in"]);
        let shown = String::from_utf8_lossy(&item).into_owned();
        let parsed = RawJob::parse(item.clone());
        match case.get("reserialized") {
            None if better.iter().any(|end| shown.ends_with(end)) => {
                assert!(matches!(parsed.unwrap().enqueued_at(), 1 | 1000 | 1_700_000_000), "{shown}");
            }
            None => assert!(parsed.is_err(), "{shown} was taken"),
            Some(again) => {
                let raw = parsed.unwrap_or_else(|error| panic!("{shown}: {error}"));
                let go = RawJob::parse(bytes(again)).unwrap();
                assert_eq!(raw.name(), go.name(), "{shown}");
                assert_eq!(raw.id(), go.id(), "{shown}");
                assert_eq!(raw.enqueued_at(), go.enqueued_at(), "{shown}");
                assert_eq!(raw.fails(), go.fails(), "{shown}");
                assert_eq!(raw.is_unique(), go.is_unique(), "{shown}");
                assert_eq!(raw.trace(), go.trace(), "{shown}");
                assert_eq!(raw.args().is_none(), case["args_nil"].as_bool().unwrap(), "{shown}");
                assert_eq!(unique_key(raw.name(), raw.args()), unique_key(go.name(), go.args()), "{shown}");
            }
        }
        checked += 1;
    }
    assert_eq!(checked, 37);
}

#[test]
fn a34_unique_keys_are_those_that_a_go_worker_frees() {
    let golden = golden("unique_key");
    let mut checked = 0;
    for case in golden["cases"].as_array().unwrap() {
        checked += 1;
        let args = args_to_json(&GoValue(&case["args"]));
        let Some(worker_key) = case.get("worker_key") else {
            assert!(args.is_err(), "{case}");
            continue;
        };
        let args = args.unwrap();
        let prefix = match case["namespace"].as_str().unwrap() {
            "" => "unique:".to_owned(),
            namespace => format!("{}:unique:", namespace.trim_end_matches(':')),
        };
        let name = text(&case["name"]);
        let ours = format!("{prefix}{}", unique_key(&name, args.as_deref()));
        assert_eq!(ours, same_replacement(&text(worker_key)), "{case}");
        // Whatever a Go enqueuer has set is freed, too.
        if !keeps_go_order(case) {
            let freed = unique_keys_to_free(&name, args.as_deref());
            let set = same_replacement(&text(&case["enqueue_key"]));
            assert!(freed.iter().any(|key| format!("{prefix}{key}") == set), "{set} is not among {freed:?}");
        }
        // The args as raw JSON text give the same key.
        if let Some(args) = &args {
            let again = args_from_json(args).unwrap();
            assert_eq!(unique_key(&name, again.as_deref()), unique_key(&name, Some(args)));
        }
    }
    assert_eq!(checked, 46);
}

#[test]
fn a_failed_job_is_written_as_a_go_worker_writes_it() {
    let golden = golden("snapshots");
    let failed = r#"{"name":"foo","id":"<JOB1>","t":1700000000,"args":{"a":1},"fails":1,"err":"sorry kid","failed_at":1700000000}"#;
    assert!(golden.to_string().contains(&failed.replace('"', "\\\"")), "the vectors have this member");
    let queued = r#"{"name":"foo","id":"<JOB1>","t":1700000000,"args":{"a":1}}"#;
    let raw = RawJob::parse(queued.as_bytes()).unwrap();
    let ours = raw.patch().fails(1).error("sorry kid").failed_at(1_700_000_000).build();
    assert_eq!(std::str::from_utf8(ours.bytes()).unwrap(), failed);
}
