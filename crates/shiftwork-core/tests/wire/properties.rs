//! What holds for any job, not only for those of the golden vectors.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use shiftwork_core::job::{
    MAX_ERROR_BYTES, NewJob, RawJob, args_from_json, args_to_json, decode_args, unique_key, wrap_malformed,
};

/// A JSON value, a few levels deep.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn args() -> impl Strategy<Value = BTreeMap<String, Value>> {
    prop::collection::btree_map(any::<String>(), value(), 0..6)
}

/// An envelope as somebody else may write it: fields in any order, strange ones among them, space anywhere.
fn envelope() -> impl Strategy<Value = (String, BTreeMap<String, Value>)> {
    let fields = (any::<String>(), any::<String>(), any::<i64>(), args(), prop::option::of(1..9i64), value());
    (fields, any::<u64>(), prop::sample::select(vec!["", " ", "\n\t"])).prop_map(
        |((name, id, t, args, fails, extra), seed, space)| {
            let mut members = vec![
                ("name", json!(name)),
                ("id", json!(id)),
                ("t", json!(t)),
                ("args", json!(args)),
                ("extra", extra.clone()),
                ("unique_key", json!("k")),
            ];
            if let Some(fails) = fails {
                members.push(("fails", json!(fails)));
                members.push(("err", json!("before")));
            }
            fastrand::Rng::with_seed(seed).shuffle(&mut members);
            let parts: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("{space}\"{key}\"{space}:{space}{value}{space}"))
                .collect();
            (
                format!("{{{}}}", parts.join(",")),
                members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            )
        },
    )
}

proptest! {
    #[test]
    fn parsing_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = RawJob::parse(bytes);
    }

    #[test]
    fn parsing_damaged_jobs_never_panics((text, _) in envelope(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(raw) = RawJob::parse(bytes) {
            let patched = raw.patch().fails(3).error("x").failed_at(5).enqueued_at(7).build();
            prop_assert_eq!((patched.fails(), patched.error(), patched.enqueued_at()), (3, Some("x"), 7));
        }
    }

    #[test]
    fn what_is_encoded_is_read_back(
        name in any::<String>(), id in any::<String>(), t in any::<i64>(), args in args(), unique in any::<bool>(),
        d in any::<i64>(), trace in prop::collection::btree_map(any::<String>(), any::<String>(), 0..3),
    ) {
        let text = args_to_json(&args).unwrap();
        let trace: Vec<_> = trace.into_iter().collect();
        let new =
            NewJob { name: &name, id: &id, enqueued_at: t, args: text.as_deref(), unique, expires_at: d, trace: &trace };
        let raw = RawJob::parse(new.encode()).unwrap();
        prop_assert_eq!((raw.name(), raw.id(), raw.enqueued_at(), raw.is_unique()), (&*name, &*id, t, unique));
        prop_assert_eq!(raw.expires_at().unwrap_or(0), d);
        prop_assert_eq!(raw.args(), text.as_deref());
        prop_assert_eq!(raw.trace(), trace);
        prop_assert!(std::str::from_utf8(raw.bytes()).is_ok());
    }

    #[test]
    fn args_survive_the_way(args in args()) {
        let text = args_to_json(&args).unwrap();
        let back: BTreeMap<String, Value> = decode_args(text.as_deref()).unwrap();
        // Floats are written as Go writes them, so a whole one comes back as an integer.
        prop_assert_eq!(args_to_json(&back).unwrap(), text);
    }

    #[test]
    fn a_patch_changes_what_it_says_and_nothing_else((text, members) in envelope(), error in any::<String>()) {
        let raw = RawJob::parse(text.as_bytes()).unwrap();
        let patched = raw.patch().fails(7).error(&error).failed_at(99).enqueued_at(42).build();
        let shown = String::from_utf8_lossy(patched.bytes()).into_owned();
        prop_assert_eq!((patched.fails(), patched.failed_at(), patched.enqueued_at()), (7, Some(99), 42), "{}", shown);
        if error.len() <= MAX_ERROR_BYTES {
            prop_assert_eq!(patched.error().unwrap_or_default(), &*error);
        }
        prop_assert_eq!((patched.name(), patched.id(), patched.args()), (raw.name(), raw.id(), raw.args()));
        let after: BTreeMap<String, Value> = serde_json::from_slice(patched.bytes()).unwrap();
        for key in ["name", "id", "args", "extra", "unique_key"] {
            prop_assert_eq!(&after[key], &members[key]);
        }
        // Undone, it is what it was.
        let fails = members.get("fails").and_then(Value::as_i64).unwrap_or(0);
        let back = patched.patch().fails(fails).error(raw.error().unwrap_or_default()).failed_at(0);
        let back = back.enqueued_at(raw.enqueued_at()).build();
        let again: BTreeMap<String, Value> = serde_json::from_slice(back.bytes()).unwrap();
        prop_assert_eq!(again, members);
    }

    #[test]
    fn a_unique_key_does_not_depend_on_the_order_of_keys(args in args(), seed in any::<u64>()) {
        let sorted = serde_json::to_string(&args).unwrap();
        let mut members: Vec<_> = args.iter().collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut members);
        let parts: Vec<_> = members.iter().map(|(key, value)| format!("{} : {value}", json!(key))).collect();
        let shuffled = format!("{{ {} }}", parts.join(" , "));
        prop_assert_eq!(unique_key("a", Some(sorted.as_bytes())), unique_key("a", Some(shuffled.as_bytes())));
    }

    #[test]
    fn what_is_no_job_is_kept_whole(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let wrapped = wrap_malformed("a", &bytes, "reason", 5);
        let args: BTreeMap<String, String> = decode_args(wrapped.args()).unwrap();
        let kept = match args.get("_raw") {
            Some(text) => text.as_bytes().to_vec(),
            None => super::base64_decode(&args["_raw_base64"]),
        };
        prop_assert_eq!(kept, bytes);
        prop_assert_eq!((wrapped.name(), wrapped.error(), wrapped.fails()), ("a", Some("reason"), 1));
    }
}

#[test]
fn nesting_of_any_depth_neither_overflows_nor_fails() {
    let depth = 100_000;
    let args = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let text = format!("{{\"name\":\"deep\",\"id\":\"1\",\"t\":1,\"args\":{args},\"x\":{args}}}");
    let raw = RawJob::parse(text.into_bytes()).unwrap();
    assert_eq!(raw.args(), Some(args.as_bytes()));
    let patched = raw.patch().fails(1).build();
    assert_eq!((patched.fails(), patched.args()), (1, Some(args.as_bytes())));
    assert_eq!(args_from_json(args.as_bytes()).unwrap().as_deref(), Some(args.as_bytes()));
    assert_eq!(unique_key("deep", Some(args.as_bytes())), format!("deep:{args}\n"));
}

#[test]
fn values_of_serde_json_come_out_alike_whatever_its_features() {
    let value = json!({ "z": 1.0, "i": 9_007_199_254_740_993_i64, "e": 1e21, "s": 1e-7, "l": [1.5, -3], "u": u64::MAX });
    let text = String::from_utf8(args_to_json(&value).unwrap().unwrap()).unwrap();
    assert_eq!(
        text,
        r#"{"e":1e+21,"i":9007199254740993,"l":[1.5,-3],"s":1e-7,"u":18446744073709551615,"z":1}"#
    );
}

#[test]
fn map_keys_that_are_no_strings_are_written_as_text() {
    #[derive(serde::Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Colour {
        Red,
    }
    let numbers = BTreeMap::from([(10, "a"), (9, "b")]);
    assert_eq!(args_to_json(&numbers).unwrap().unwrap(), br#"{"10":"a","9":"b"}"#);
    assert_eq!(args_to_json(&BTreeMap::from([(Colour::Red, true)])).unwrap().unwrap(), br#"{"Red":true}"#);
    let lists = std::collections::HashMap::from([(vec![1], 1)]);
    assert!(args_to_json(&lists).unwrap_err().to_string().contains("a map key must be a string"));
}
