//! Cron: every case that was measured from the Go library, properties, and schedules in words.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::Value;
use shiftwork_core::cron::Schedule;

/// From the fifth on, clocks change at midnight or by half an hour, and the Go library's search has its flaw.
const ZONES: [&str; 10] = [
    "UTC",
    "Europe/Paris",
    "America/New_York",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Santiago",
    "Atlantic/Azores",
];
const FLAWLESS: usize = 5;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn parse(spec: &str) -> Schedule {
    Schedule::parse(spec, &TimeZone::UTC).unwrap()
}

fn message(spec: &str) -> String {
    let error = Schedule::parse(spec, &TimeZone::UTC).unwrap_err();
    assert!(error.is_invalid_input());
    error.to_string()
}

/// For `@every` only the parsing counts: Go anchors it at now. Where Go panics or never returns, there is an error.
#[test]
fn schedules_are_those_of_the_go_library() {
    let text = include_str!("golden/cron.json");
    let golden: Value = serde_json::from_str(text).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 165);
    let (mut ticks, mut errors) = (0, 0);
    for case in cases {
        let spec = case["spec"].as_str().unwrap();
        let starts = case["starts"].as_array().map(Vec::as_slice).unwrap_or_default();
        if case.get("error").is_some() || case.get("panic").is_some() {
            assert!(Schedule::parse(spec, &TimeZone::UTC).is_err(), "{spec:?} must be refused: {case}");
            errors += 1;
            continue;
        }
        let never = starts
            .iter()
            .all(|start| start["next"].as_array().is_none_or(|next| next.iter().all(Value::is_null)));
        if Schedule::parse(spec, &TimeZone::UTC).is_err() {
            assert!(never, "{spec:?} is refused, but fires in Go: {case}");
            errors += 1;
            continue;
        }
        for start in starts {
            let schedule = Schedule::parse(spec, &zone(start["tz"].as_str().unwrap())).unwrap();
            if spec.contains("@every") {
                continue;
            }
            let mut now = start["now"].as_i64().unwrap();
            for next in start["next"].as_array().unwrap() {
                let ours = schedule.next_after(now);
                assert_eq!(ours, next.as_i64(), "{spec:?} after {now} in {}", start["tz"]);
                let Some(next) = ours else { break };
                now = next;
                ticks += 1;
            }
        }
    }
    assert!(ticks > 3000 && errors > 20, "{ticks} ticks and {errors} errors were compared");
}

#[test]
fn every_is_aligned_to_the_epoch() {
    let schedule = parse("@every 90s");
    assert_eq!(
        schedule.ticks(1_000_000, 1_000_400).collect::<Vec<_>>(),
        [1_000_080, 1_000_170, 1_000_260, 1_000_350]
    );
    assert!(schedule.is_due(1_000_080) && !schedule.is_due(1_000_081));
    assert_eq!(parse("@every 500ms").next_after(7), Some(8), "as in Go, never less than a second");
}

#[test]
fn ticks_are_between_their_bounds() {
    let schedule = parse("0 * * * * *");
    assert_eq!(schedule.ticks(60, 240).collect::<Vec<_>>(), [120, 180]);
    assert_eq!(schedule.ticks(59, 60).collect::<Vec<_>>(), [] as [i64; 0]);
}

/// The ticks are Go's, but for the one that its search passes over on Lord Howe Island, where 02:15 comes once on that day, too.
#[test]
fn what_go_finds_is_a_tick_and_nothing_lies_between() {
    let golden: Value = serde_json::from_str(include_str!("golden/cron.json")).unwrap();
    let (mut compared, mut passed_over) = (0, Vec::new());
    for case in golden["cases"].as_array().unwrap() {
        let spec = case["spec"].as_str().unwrap();
        if spec.contains("@every") {
            continue;
        }
        for start in case["starts"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let zone = zone(start["tz"].as_str().unwrap());
            let Ok(schedule) = Schedule::parse(spec, &zone) else { continue };
            let mut now = start["now"].as_i64().unwrap();
            for next in start["next"].as_array().unwrap() {
                let until = next.as_i64().map_or(i64::MAX, |next| next + 1);
                let mut ticks = schedule.ticks(now, until);
                let Some(next) = next.as_i64() else {
                    assert_eq!(ticks.next(), None, "{spec:?} after {now}");
                    break;
                };
                assert!(schedule.is_due(next), "{spec:?} at {next}");
                let ticks: Vec<i64> = ticks.collect();
                if ticks != [next] {
                    passed_over.push((spec, ticks));
                }
                now = next;
                compared += 1;
            }
        }
    }
    assert!(compared > 3000, "{compared}");
    assert_eq!(passed_over, [("TZ=Australia/Lord_Howe 15 2 * * *", vec![1_712_418_300, 1_712_504_700])]);
}

/// From the day before, the Go library's search meets no midnight and stays in the day after, or passes it over.
#[test]
fn a_midnight_that_the_clock_skips_does_not_move_a_tick_to_another_day() {
    let day = 86_400;
    for (zone_name, midnight, weekday) in [
        // Friday 25 April 2025, 01:00 at once after Thursday, 23:59:59.
        ("Africa/Cairo", 1_745_532_000, 5),
        ("Asia/Beirut", 1_743_285_600, 0),
        ("America/Santiago", 1_757_217_600, 0),
        ("Atlantic/Azores", 1_743_296_400, 0),
    ] {
        let zone = zone(zone_name);
        let before = (weekday + 6) % 7;
        let noon = |weekday: i64| Schedule::parse(&format!("0 12 * * {weekday}"), &zone).unwrap();
        let of = |schedule: &Schedule| schedule.ticks(midnight - day, midnight + day).collect::<Vec<_>>();
        // The skipped hour is missing in the morning.
        assert_eq!(of(&noon(weekday)), [midnight + 11 * 3600], "{zone_name}");
        assert_eq!(of(&noon(before)), [midnight - 12 * 3600], "{zone_name}");
        // What Go answers, for the job's bytes.
        assert_eq!(noon(before).next_after(midnight - 12 * 3600), Some(midnight + 11 * 3600), "{zone_name}");
        assert!(!noon(before).is_due(midnight + 11 * 3600), "{zone_name}");
    }
}

#[test]
fn an_error_names_the_field_the_value_and_what_is_allowed() {
    for (spec, parts) in [
        ("60 * * * * *", vec!["second", "60", "0 to 59"]),
        ("* 24 * * *", vec!["hour", "24", "0 to 23"]),
        ("* * 0 * *", vec!["day-of-month", "0", "1 to 31"]),
        ("* * * foo *", vec!["month", "foo", "jan to dec"]),
        ("* * * * 7", vec!["day-of-week", "7", "0 to 6", "sun to sat"]),
        ("*/0 * * * *", vec!["minute", "*/0", "step"]),
        ("5-1 * * * *", vec!["minute", "5-1", "begins after its end"]),
        (", * * * *", vec!["minute", "no value"]),
        ("* * *", vec!["3 fields", "five", "six"]),
        ("", vec!["0 fields"]),
        ("0 0 30 2 *", vec!["never fire", "30", "2"]),
        ("0 0 31 4,6 *", vec!["never fire"]),
        ("@fortnightly", vec!["@fortnightly", "@weekly"]),
        ("@every soon", vec!["soon", "1h30m"]),
        ("TZ=Europe/Paris", vec!["no space"]),
        ("TZ=Mars/Olympus 0 * * * *", vec!["Mars/Olympus", "Europe/Paris"]),
    ] {
        let message = message(spec);
        assert!(message.contains(&format!("{spec:?}")), "{message}");
        for part in parts {
            assert!(message.contains(part), "{part:?} is missing: {message}");
        }
    }
}

#[test]
fn schedules_are_said_in_words() {
    for (spec, words) in [
        ("30 9 * * 1-5", "every weekday at 09:30 in UTC"),
        ("TZ=Europe/Paris 30 9 * * mon-fri", "every weekday at 09:30 in Europe/Paris"),
        ("@daily", "every day at 00:00 in UTC"),
        ("@hourly", "every hour"),
        ("@monthly", "on the 1st of every month at 00:00 in UTC"),
        ("@yearly", "on the 1st of January at 00:00 in UTC"),
        ("@weekly", "every Sunday at 00:00 in UTC"),
        ("@every 90s", "every 90 seconds"),
        ("@every 1h", "every hour"),
        ("@every 48h", "every 2 days"),
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/30 * * * * *", "every 30 seconds"),
        ("*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 past the hour"),
        ("30 * * * * *", "at 30 seconds past every minute"),
        ("1 * * * * *", "at 1 second past every minute"),
        ("1,2 * * * * *", "at 1 and 2 seconds past every minute"),
        ("30 15 * * * *", "at 30 seconds past minute 15 of the hour"),
        (
            "*/10 */5 8-17 * * *",
            "every 10 seconds in minutes 0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50 and 55 of the hour \
          from 08:00 to 17:59 in UTC",
        ),
        ("* 0-4 * * * *", "every second in minutes 0 to 4 of the hour"),
        ("15 * * * *", "at minute 15 past the hour"),
        ("0 */6 * * *", "every day at 00:00, 06:00, 12:00 and 18:00 in UTC"),
        ("0 */2 * * *", "every 2 hours in UTC"),
        ("*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:59, every weekday, in UTC"),
        ("0 12 1,15 * *", "on the 1st and 15th of every month at 12:00 in UTC"),
        ("0 12 22 6 *", "on the 22nd of June at 12:00 in UTC"),
        ("0 12 13 * 5", "on the 13th of every month and every Friday at 12:00 in UTC"),
        ("0 0 * 7,8 *", "every day of July and August at 00:00 in UTC"),
        ("0 0 * * 0,6", "every Saturday and Sunday at 00:00 in UTC"),
        ("0 8 * 12 mon", "every Monday in December at 08:00 in UTC"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00 in UTC"),
        ("0 22-23,0-5 * * *", "on the hour in the hours 0 to 5, 22 and 23 in UTC"),
        ("* 9 * * *", "every minute from 09:00 to 09:59 in UTC"),
        ("*/5 8,20 * * *", "every 5 minutes in the hours 8 and 20 in UTC"),
        ("0-10 * * * *", "at minutes 0 to 10 past the hour"),
        ("0 8 * * 2-5", "every day from Tuesday to Friday at 08:00 in UTC"),
        ("0 8 * * 1,3,5", "every Monday, Wednesday and Friday at 08:00 in UTC"),
        ("0 0 1-15,20 * *", "on the 1st to 15th and 20th of every month at 00:00 in UTC"),
        ("0 0 1 1-6 *", "on the 1st of January to June at 00:00 in UTC"),
        ("0 0 1-7 * 1", "on the 1st to 7th of every month and every Monday at 00:00 in UTC"),
        ("0 0 1-31 * 1", "every day at 00:00 in UTC"),
        ("* * 1 * *", "every minute, on the 1st of every month, in UTC"),
        // The same in all zones, or not.
        ("TZ=Asia/Kathmandu */5 * * * *", "every 5 minutes"),
        ("TZ=Asia/Kathmandu */15 * * * *", "every 15 minutes"),
        ("TZ=Asia/Kathmandu */10 * * * *", "every 10 minutes in Asia/Kathmandu"),
        ("TZ=Asia/Kathmandu @hourly", "every hour in Asia/Kathmandu"),
        ("5 30 6 * * *", "every day at 06:30:05 in UTC"),
    ] {
        assert_eq!(parse(spec).describe(), words, "{spec}");
    }
    for (zone, words) in [
        (TimeZone::fixed(jiff::tz::offset(2)), "every day at 09:30 in UTC+02"),
        (TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap(), "every day at 09:30 in local time"),
    ] {
        assert_eq!(Schedule::parse("30 9 * * *", &zone).unwrap().describe(), words);
    }
}

/// A spec that can be anything that is valid, and its fields as lists, expanded without our parser.
fn spec() -> impl Strategy<Value = (String, [Vec<i64>; 6], bool)> {
    let field = |min: i64, max: i64| {
        prop_oneof![
            3 => Just(("*".to_owned(), (min..=max).collect::<Vec<_>>())),
            2 => (min..=max).prop_map(|n| (n.to_string(), vec![n])),
            1 => (min..=max, 1..20i64).prop_map(move |(n, step)| {
                (format!("{n}/{step}"), (n..=max).step_by(step as usize).collect())
            }),
            1 => (min..=max, min..=max).prop_map(|(a, b)| {
                let (low, high) = (a.min(b), a.max(b));
                (format!("{low}-{high}"), (low..=high).collect())
            }),
            1 => (min..=max, min..=max).prop_map(|(a, b)| (format!("{a},{b}"), vec![a, b])),
        ]
    };
    (field(0, 59), field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)).prop_map(
        |(second, minute, hour, day, month, weekday)| {
            let star = day.0 == "*" || weekday.0 == "*";
            let parts = [second, minute, hour, day, month, weekday];
            let spec = parts.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" ");
            (spec, parts.map(|(_, numbers)| numbers), star)
        },
    )
}

/// Whether a second matches, field by field, through the calendar.
fn matches(second: i64, zone: &TimeZone, fields: &[Vec<i64>; 6], star: bool) -> bool {
    let local = zone.to_datetime(Timestamp::from_second(second).unwrap());
    let has = |field: usize, number: i64| fields[field].contains(&number);
    let day = has(3, local.day().into());
    let weekday = has(5, local.weekday().to_sunday_zero_offset().into());
    has(0, local.second().into())
        && has(1, local.minute().into())
        && has(2, local.hour().into())
        && has(4, local.month().into())
        && if star { day && weekday } else { day || weekday }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_next_tick_is_later_matches_and_skips_none(
        (spec, fields, star) in spec(),
        start in 1_600_000_000..2_000_000_000i64,
        index in 0..ZONES.len(),
    ) {
        let zone = zone(ZONES[index]);
        // The 31st of June never comes.
        let Ok(schedule) = Schedule::parse(&spec, &zone) else { return Ok(()) };
        let next = schedule.ticks(start, i64::MAX).next().unwrap();
        if index < FLAWLESS {
            prop_assert_eq!(schedule.next_after(start), Some(next), "{}", spec);
        }
        prop_assert!(next > start);
        prop_assert!(matches(next, &zone, &fields, star), "{spec} gives {next} after {start}");
        prop_assert!(schedule.is_due(next));
        // None skipped: looked for second by second, nearby and just before the tick.
        for second in (start + 1..next).take(5000).chain((start + 1).max(next - 5000)..next) {
            prop_assert!(!matches(second, &zone, &fields, star), "{spec} skips {second} after {start}");
            prop_assert!(!schedule.is_due(second));
        }
    }

    /// Around a change of the clock, in both directions, begun shortly or days before it.
    #[test]
    fn none_is_skipped_when_the_clock_changes(
        (spec, fields, star) in spec(),
        which in 0..8usize,
        index in 1..ZONES.len(),
        ahead in prop_oneof![Just(9000i64), 9000..400_000i64],
    ) {
        let zone = zone(ZONES[index]);
        let from = Timestamp::from_second(1_700_000_000).unwrap();
        // Kathmandu's clocks change no more.
        let Some(change) = zone.following(from).nth(which) else { return Ok(()) };
        let change = change.timestamp().as_second();
        let Ok(schedule) = Schedule::parse(&spec, &zone) else { return Ok(()) };
        let (after, until) = (change - 9000, change + 9000);
        let ours: Vec<i64> = schedule.ticks(change - ahead, until).filter(|tick| *tick > after).collect();
        let wanted: Vec<i64> =
            (after + 1..until).filter(|second| matches(*second, &zone, &fields, star)).collect();
        prop_assert_eq!(&ours, &wanted, "{} around {}", spec, change);
        if index < FLAWLESS {
            let first = schedule.next_after(after).filter(|next| *next < until);
            prop_assert_eq!(first, wanted.first().copied(), "{} after {}", spec, after);
        }
    }

    /// Whole weeks by the minute, over changes of the clock.
    #[test]
    fn weeks_have_every_minute_that_matches_and_no_other(
        (spec, mut fields, star) in spec(),
        start in 1_700_000_000..1_800_000_000i64,
        index in 0..ZONES.len(),
    ) {
        let zone = zone(ZONES[index]);
        let spec = format!("0{}", &spec[spec.find(' ').unwrap()..]);
        fields[0] = vec![0];
        let Ok(schedule) = Schedule::parse(&spec, &zone) else { return Ok(()) };
        let start = start - start % 60;
        let until = start + 30 * 86_400;
        let ours: Vec<i64> = schedule.ticks(start, until).collect();
        let wanted: Vec<i64> = (start + 60..until)
            .step_by(60)
            .filter(|second| matches(*second, &zone, &fields, star))
            .collect();
        prop_assert_eq!(ours, wanted, "{} from {}", spec, start);
    }

    #[test]
    fn nothing_makes_it_panic(spec in "\\PC*", second in any::<i64>()) {
        if let Ok(schedule) = Schedule::parse(&spec, &TimeZone::UTC) {
            let _ = (schedule.next_after(second), schedule.is_due(second), schedule.describe());
            let _ = schedule.ticks(second, i64::MAX).next();
        }
    }

    #[test]
    fn nothing_that_looks_like_a_spec_makes_it_panic(
        spec in "(TZ=|CRON_TZ=)?[A-Z]{0,3} ?@?[a-z]{0,6}[0-9*/?,@ -]{0,30}[a-z]{0,3}",
        second in -62_135_596_800..253_402_300_799i64,
    ) {
        if let Ok(schedule) = Schedule::parse(&spec, &TimeZone::UTC) {
            let next = schedule.next_after(second);
            prop_assert!(next.is_none_or(|next| next > second));
            prop_assert_eq!(schedule.ticks(second, i64::MAX).next(), next);
            prop_assert!(!schedule.describe().is_empty());
        }
    }
}
