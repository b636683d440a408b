//! The next tick as the Go library's search finds it, step by step.
//!
//! Field by field, from the month down to the second, time is moved on until it matches; when a step crosses into the next
//! larger unit, it begins again from the top. Months and days are steps of the calendar, hours and less are steps of elapsed
//! time. Nearly always that is the first of [`ticks`](super::ticks). Where a clock changes at midnight (Cairo, Santiago) or by half an
//! hour (Lord Howe Island), the walk can miss the crossing: from a Thursday it may find a Friday for a schedule of Thursdays, or pass
//! over a day. A Go pool enqueues nothing of that kind, for it looks only four minutes ahead; but the expiry `d` in its jobs
//! comes from such a walk, and the same tick with another `d` is another member of the scheduled set: it would run twice.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::{Fields, YEARS};

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;

pub(super) fn next_after(fields: &Fields, zone: &TimeZone, second: i64) -> Option<i64> {
    let mut time = Time::at(second.checked_add(1)?, zone)?;
    let last_year = time.local.year().saturating_add(YEARS);
    // Whether time was moved: from then on it stands at the beginning of some unit.
    let mut moved = false;
    'again: loop {
        if time.local.year() > last_year {
            return None;
        }
        while !fields.month.has(time.month()) {
            if !moved {
                moved = true;
                time = time.at_local(time.local.date().first_of_month(), 0)?;
            }
            time = time.next_month()?;
            if time.month() == 1 {
                continue 'again;
            }
        }
        while !fields.matches_day(time.local.date()) {
            if !moved {
                moved = true;
                time = time.at_local(time.local.date(), 0)?;
            }
            time = time.next_day()?;
            if time.local.day() == 1 {
                continue 'again;
            }
        }
        while !fields.hour.has(time.hour()) {
            if !moved {
                moved = true;
                time = time.at_local(time.local.date(), i64::from(time.hour()) * HOUR)?;
            }
            time = time.after(HOUR)?;
            if time.hour() == 0 {
                continue 'again;
            }
        }
        while !fields.minute.has(time.minute()) {
            if !moved {
                moved = true;
                time = time.after(-time.second.rem_euclid(MINUTE))?;
            }
            time = time.after(MINUTE)?;
            if time.minute() == 0 {
                continue 'again;
            }
        }
        while !fields.second.has(u32::from(time.local.second().unsigned_abs())) {
            moved = true;
            time = time.after(1)?;
            if time.local.second() == 0 {
                continue 'again;
            }
        }
        return Some(time.second);
    }
}

/// A moment, and what the clocks in a zone show then.
struct Time<'a> {
    second: i64,
    local: DateTime,
    zone: &'a TimeZone,
}

impl<'a> Time<'a> {
    fn at(second: i64, zone: &'a TimeZone) -> Option<Self> {
        let local = zone.to_datetime(Timestamp::from_second(second).ok()?);
        Some(Self { second, local, zone })
    }

    fn month(&self) -> u32 {
        u32::from(self.local.month().unsigned_abs())
    }

    fn hour(&self) -> u32 {
        u32::from(self.local.hour().unsigned_abs())
    }

    fn minute(&self) -> u32 {
        u32::from(self.local.minute().unsigned_abs())
    }

    /// So many seconds later.
    fn after(&self, seconds: i64) -> Option<Self> {
        Self::at(self.second.checked_add(seconds)?, self.zone)
    }

    /// When the clocks show this date and time of day. If they show it twice or never, the moment is that which Go takes: the
    /// offset is looked up as if the local time were UTC, and once more if it turns out to belong to another one.
    fn at_local(&self, date: Date, second_of_day: i64) -> Option<Self> {
        let as_utc =
            TimeZone::UTC.to_timestamp(date.to_datetime(jiff::civil::Time::midnight())).ok()?.as_second();
        let as_utc = as_utc.checked_add(second_of_day)?;
        let offset = |second: i64| {
            Some(i64::from(self.zone.to_offset(Timestamp::from_second(second).ok()?).seconds()))
        };
        let guess = offset(as_utc)?;
        let second = as_utc - guess;
        // The same again, unless a change of the clock lies between.
        let second = if guess == 0 { second } else { as_utc - offset(second)? };
        Self::at(second, self.zone)
    }

    fn second_of_day(&self) -> i64 {
        i64::from(self.hour()) * HOUR + i64::from(self.minute()) * MINUTE + i64::from(self.local.second())
    }

    fn next_month(&self) -> Option<Self> {
        let day = i64::from(self.local.day()) - 1;
        let first = self.local.date().last_of_month().tomorrow().ok()?;
        let date = first.checked_add(jiff::Span::new().try_days(day).ok()?).ok()?;
        self.at_local(date, self.second_of_day())
    }

    /// The next day's midnight, or the hour nearest to it if the clock changes around it.
    fn next_day(&self) -> Option<Self> {
        let next = self.at_local(self.local.date().tomorrow().ok()?, self.second_of_day())?;
        match i64::from(next.hour()) {
            0 => Some(next),
            hour if hour > 12 => next.after((24 - hour) * HOUR),
            hour => next.after(-hour * HOUR),
        }
    }
}
