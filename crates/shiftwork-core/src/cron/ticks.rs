//! The ticks: every moment whose local time matches, and no other.
//!
//! A zone's time is a row of spans in which its clocks keep one offset from UTC. Inside a span, local time is a plain calendar, and
//! the first match in it is found by looking at days and bits. If that lies beyond the span, the search goes on where the next
//! one begins. So hours that a change of the clock skips are in no span, those that it repeats are in two, and the answer does
//! not depend on where the search began.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::{Fields, YEARS};

/// The first tick strictly after this second.
pub(super) fn first_after(fields: &Fields, zone: &TimeZone, second: i64) -> Option<i64> {
    let mut from = Timestamp::from_second(second.checked_add(1)?).ok()?;
    let last_year = zone.to_datetime(from).year().saturating_add(YEARS);
    loop {
        let offset = zone.to_offset(from);
        let change = zone.following(from).next().map(|transition| transition.timestamp());
        // None in this calendar up to the last year: then there is none in the spans that follow, either.
        let local = fields.first_match(offset.to_datetime(from), last_year)?;
        match (offset.to_timestamp(local).ok(), change) {
            (Some(tick), None) => return Some(tick.as_second()),
            (Some(tick), Some(change)) if tick < change => return Some(tick.as_second()),
            (_, Some(change)) => from = change,
            (None, None) => return None,
        }
    }
}

impl Fields {
    /// Whether this local time matches.
    pub(super) fn matches(&self, local: DateTime) -> bool {
        self.month.has(number(local.month()))
            && self.matches_day(local.date())
            && self.hour.has(number(local.hour()))
            && self.minute.has(number(local.minute()))
            && self.second.has(number(local.second()))
    }

    pub(super) fn matches_day(&self, date: Date) -> bool {
        let day = self.day_of_month.has(number(date.day()));
        let weekday = self.day_of_week.has(number(date.weekday().to_sunday_zero_offset()));
        if self.day_of_month.star || self.day_of_week.star { day && weekday } else { day || weekday }
    }

    /// The first local time that matches, not before `from` and not after `last_year`, in a calendar without changes of the clock.
    fn first_match(&self, from: DateTime, last_year: i16) -> Option<DateTime> {
        let mut date = from.date();
        let mut time = self.first_time((number(from.hour()), number(from.minute()), number(from.second())));
        while date.year() <= last_year {
            if !self.month.has(number(date.month())) {
                date = date.last_of_month().tomorrow().ok()?;
            } else if let (true, Some((hour, minute, second))) = (self.matches_day(date), time) {
                let small = |number: u32| i8::try_from(number).ok();
                return Some(date.at(small(hour)?, small(minute)?, small(second)?, 0));
            } else {
                date = date.tomorrow().ok()?;
            }
            // On every later day the first time of all will do.
            time = self.first_time((0, 0, 0));
        }
        None
    }

    /// The first time of day that matches and is not before this one.
    fn first_time(&self, (hour, minute, second): (u32, u32, u32)) -> Option<(u32, u32, u32)> {
        let first_second = self.second.first_from(0)?;
        if self.hour.has(hour) {
            if self.minute.has(minute)
                && let Some(second) = self.second.first_from(second)
            {
                return Some((hour, minute, second));
            }
            if let Some(minute) = self.minute.first_from(minute + 1) {
                return Some((hour, minute, first_second));
            }
        }
        Some((self.hour.first_from(hour + 1)?, self.minute.first_from(0)?, first_second))
    }
}

/// What jiff counts in signed bytes is never negative.
fn number(of_calendar: i8) -> u32 {
    u32::from(of_calendar.unsigned_abs())
}
