//! Any text as a schedule: it is refused, or its ticks go forward and it can be said in words.
#![no_main]

use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use shiftwork_core::cron::Schedule;

/// With clocks that never change, change at night, at midnight, and by half an hour.
const ZONES: [&str; 4] = ["UTC", "Europe/Paris", "Africa/Cairo", "Australia/Lord_Howe"];

fuzz_target!(|input: (String, i64, u8)| {
    let (spec, second, zone) = input;
    let Ok(zone) = TimeZone::get(ZONES[usize::from(zone) % ZONES.len()]) else { return };
    if let Ok(schedule) = Schedule::parse(&spec, &zone) {
        assert!(schedule.next_after(second).is_none_or(|next| next > second));
        for tick in schedule.ticks(second, i64::MAX).take(3) {
            assert!(tick > second && schedule.is_due(tick));
        }
        assert!(!schedule.describe().is_empty());
    }
});
