//! Any text as a schedule: it is refused, or its ticks go forward and it can be said in words.
#![no_main]

use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use shiftwork_core::cron::Schedule;

fuzz_target!(|input: (String, i64)| {
    let (spec, second) = input;
    if let Ok(schedule) = Schedule::parse(&spec, &TimeZone::UTC) {
        assert!(schedule.next_after(second).is_none_or(|next| next > second && schedule.is_due(next)));
        assert!(!schedule.describe().is_empty());
    }
});
