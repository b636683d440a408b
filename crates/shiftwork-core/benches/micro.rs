//! What single steps of a job cost: encode, decode, patch, unique key, the next tick of schedules, the shares of a batch.
//! `cargo bench -p shiftwork-core --bench micro`
//!
//! Encoding and decoding are measured beside `serde_json` on the same job: look at the ratios.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use shiftwork_core::cron::Schedule;
use shiftwork_core::job::{NewJob, RawJob, args_to_json, unique_key};
use shiftwork_core::store::{Available, allot};

#[derive(Serialize, Deserialize)]
struct Order {
    user_id: u64,
    email: String,
    items: Vec<u32>,
    express: bool,
}

/// The envelope as `serde_json` would have it.
#[derive(Serialize, Deserialize)]
struct Envelope {
    name: String,
    id: String,
    t: i64,
    args: Order,
}

fn order() -> Order {
    Order { user_id: 4_711, email: "ada@example.com".to_owned(), items: vec![1, 20, 300], express: true }
}

fn new_job(args: &[u8]) -> NewJob<'_> {
    NewJob {
        name: "send_order",
        id: "0123456789abcdef01234567",
        enqueued_at: 1_700_000_000,
        args: Some(args),
        ..NewJob::default()
    }
}

fn jobs(criterion: &mut Criterion) {
    let order = order();
    let args = args_to_json(&order).expect("args").expect("not null");
    let bytes = new_job(&args).encode();
    let envelope: Envelope = serde_json::from_slice(&bytes).expect("the envelope");

    let mut encode = criterion.benchmark_group("encode");
    encode.bench_function("shiftwork", |bencher| {
        bencher.iter(|| {
            let args = args_to_json(black_box(&order)).expect("args");
            new_job(args.as_deref().unwrap_or_default()).encode()
        });
    });
    encode.bench_function("serde_json", |bencher| {
        bencher.iter(|| serde_json::to_vec(black_box(&envelope)).expect("text"));
    });
    encode.finish();

    let mut decode = criterion.benchmark_group("decode");
    decode.bench_function("shiftwork", |bencher| {
        bencher.iter(|| {
            let job = RawJob::parse(black_box(&bytes[..])).expect("a job");
            shiftwork_core::job::decode_args::<Order>(job.args()).expect("args")
        });
    });
    decode.bench_function("serde_json", |bencher| {
        bencher.iter(|| serde_json::from_slice::<Envelope>(black_box(&bytes)).expect("a job"));
    });
    decode.finish();

    let job = RawJob::parse(&bytes[..]).expect("a job");
    criterion.bench_function("patch a failure in", |bencher| {
        bencher
            .iter(|| black_box(&job).patch().fails(3).error("no such user").failed_at(1_700_000_100).build());
    });
    criterion.bench_function("unique key", |bencher| {
        bencher.iter(|| unique_key(black_box("send_order"), Some(&args)));
    });
}

fn schedules(criterion: &mut Criterion) {
    let paris = TimeZone::get("Europe/Paris").expect("a zone");
    let mut group = criterion.benchmark_group("next tick");
    for (name, spec) in [
        ("each minute", "0 * * * * *"),
        ("working days", "0 30 9 * * MON-FRI"),
        ("leap days", "0 0 0 29 2 *"),
    ] {
        let schedule = Schedule::parse(spec, &paris).expect("a schedule");
        group.bench_function(name, |bencher| {
            bencher.iter(|| schedule.next_after(black_box(1_700_000_000)));
        });
    }
    group.finish();
}

fn shares(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("shares of 100 jobs");
    for queues in [10_u32, 100, 1000] {
        let available: Vec<_> =
            (0..queues).map(|queue| Available { weight: 1 + queue % 7, jobs: 1000 }).collect();
        group.bench_function(format!("{queues} queues"), |bencher| {
            bencher.iter(|| allot(black_box(&available), 100, 0.42));
        });
    }
    group.finish();
}

criterion_group!(benches, jobs, schedules, shares);
criterion_main!(benches);
