//! A schedule in words, for screens. What is common is said as people say it; everything else field by field, and right.

use std::fmt;

use jiff::tz::TimeZone;

use super::Fields;
use super::field::Field;

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A fixed period.
pub(super) fn every(seconds: i64) -> String {
    let (count, unit) = match seconds {
        _ if seconds % 86_400 == 0 => (seconds / 86_400, "day"),
        _ if seconds % 3600 == 0 => (seconds / 3600, "hour"),
        _ if seconds % 60 == 0 => (seconds / 60, "minute"),
        _ => (seconds, "second"),
    };
    if count == 1 { format!("every {unit}") } else { format!("every {count} {unit}s") }
}

/// Six fields.
pub(super) fn fields(fields: &Fields, zone: &TimeZone) -> String {
    let days = days(fields);
    let (times, at_times) = times(fields);
    match (days, at_times) {
        (None, false) if same_everywhere(fields, zone) => times,
        (None, false) => format!("{times} in {}", zone_name(zone)),
        (None, true) => format!("every day {times} in {}", zone_name(zone)),
        (Some(days), true) => format!("{days} {times} in {}", zone_name(zone)),
        (Some(days), false) => format!("{times}, {days}, in {}", zone_name(zone)),
    }
}

/// Whether the zone can be left out. Zones are quarters of an hour apart: what repeats each quarter is the same in all.
fn same_everywhere(fields: &Fields, zone: &TimeZone) -> bool {
    let Field { bits, .. } = fields.minute;
    let by_quarter = (0..60).all(|minute| (bits >> minute) & 1 == (bits >> ((minute + 15) % 60)) & 1);
    fields.hour.is_all() && (by_quarter || *zone == TimeZone::UTC)
}

fn zone_name(zone: &TimeZone) -> String {
    match (zone.iana_name(), zone.to_fixed_offset()) {
        (Some(name), _) => name.to_owned(),
        (None, Ok(offset)) => format!("UTC{offset}"),
        (None, Err(_)) => "local time".to_owned(),
    }
}

/// When in a day, and whether that is a list of times of day.
fn times(fields: &Fields) -> (String, bool) {
    let Fields { second, minute, hour, .. } = fields;
    let hours: Vec<u32> = hour.numbers().collect();
    let minutes: Vec<u32> = minute.numbers().collect();
    let seconds: Vec<u32> = second.numbers().collect();
    if hours.len() * minutes.len() * seconds.len() <= 6 {
        let mut times = Vec::new();
        for hour in &hours {
            for minute in &minutes {
                for second in &seconds {
                    times.push(match second {
                        0 => format!("{hour:02}:{minute:02}"),
                        _ => format!("{hour:02}:{minute:02}:{second:02}"),
                    });
                }
            }
        }
        return (format!("at {}", list(&times)), true);
    }
    let text = match (&seconds[..], &minutes[..]) {
        ([0], [0]) => hourly(hour),
        ([0], _) => match step(minute) {
            _ if minute.is_all() => format!("every minute{}", within(hour)),
            Some(step) => format!("every {step} minutes{}", within(hour)),
            None => format!("at {} past the hour{}", counted("minute", minute), within(hour)),
        },
        _ => {
            let (often, seconds) = match step(second) {
                _ if second.is_all() => (true, "every second".to_owned()),
                Some(step) => (true, format!("every {step} seconds")),
                None if seconds[..] == [1] => (false, "at 1 second".to_owned()),
                None => (false, format!("at {} seconds", list(&runs(second, u32::to_string)))),
            };
            let minutes = counted("minute", minute);
            match (often, minute.is_all()) {
                (true, true) => format!("{seconds}{}", within(hour)),
                (true, false) => format!("{seconds} in {minutes} of the hour{}", within(hour)),
                (false, true) => format!("{seconds} past every minute{}", within(hour)),
                (false, false) => format!("{seconds} past {minutes} of the hour{}", within(hour)),
            }
        }
    };
    (text, false)
}

/// On the hour.
fn hourly(hour: &Field) -> String {
    match (step(hour), span(hour)) {
        _ if hour.is_all() => "every hour".to_owned(),
        (Some(step), _) => format!("every {step} hours"),
        (None, Some((first, last))) => format!("every hour from {first:02}:00 to {last:02}:00"),
        (None, None) => format!("on the hour{}", within(hour)),
    }
}

/// `*/n`, where n divides the whole: the steps are then even over the boundary, too.
fn step(field: &Field) -> Option<u32> {
    let numbers: Vec<u32> = field.numbers().collect();
    let [first, second, ..] = numbers[..] else { return None };
    let (step, whole) = (second - first, field.range.max + 1);
    let even = first == 0 && whole % step == 0 && numbers.len() == (whole / step) as usize;
    let same = numbers.windows(2).all(|pair| pair[1] - pair[0] == step);
    (even && same && step > 1).then_some(step)
}

/// During which hours, to be put behind; nothing for all.
fn within(hour: &Field) -> String {
    match span(hour) {
        _ if hour.is_all() => String::new(),
        Some((first, last)) => format!(" from {first:02}:00 to {last:02}:59"),
        None => format!(" in the hours {}", list(&runs(hour, u32::to_string))),
    }
}

/// The first and the last number, if there is none between them that is missing.
fn span(field: &Field) -> Option<(u32, u32)> {
    let numbers: Vec<u32> = field.numbers().collect();
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    ((last - first) as usize + 1 == numbers.len()).then_some((first, last))
}

/// The numbers of a field with three or more in a row as `first to last`.
fn runs<T: fmt::Display>(field: &Field, name: impl Fn(&u32) -> T) -> Vec<String> {
    let numbers: Vec<u32> = field.numbers().collect();
    let mut parts = Vec::new();
    for run in numbers.chunk_by(|one, next| one + 1 == *next) {
        match run {
            [first, _, .., last] if run.len() > 2 => parts.push(format!("{} to {}", name(first), name(last))),
            _ => parts.extend(run.iter().map(|number| name(number).to_string())),
        }
    }
    parts
}

/// `minute 5`, `minutes 5 and 10`.
fn counted(unit: &str, field: &Field) -> String {
    let plural = if field.bits.count_ones() == 1 { "" } else { "s" };
    format!("{unit}{plural} {}", list(&runs(field, u32::to_string)))
}

/// On which days; `None` for all.
fn days(fields: &Fields) -> Option<String> {
    let Fields { day_of_month, month, day_of_week, .. } = fields;
    let of_months = || list(&runs(month, |month| MONTHS[*month as usize - 1]));
    let either = !day_of_month.star && !day_of_week.star;
    let (any_day, any_weekday) = (day_of_month.is_all(), day_of_week.is_all());
    // Either kind of day is enough, and one of them is every day.
    if either && (any_day || any_weekday) || (any_day && any_weekday) {
        return if month.is_all() { None } else { Some(format!("every day of {}", of_months())) };
    }
    let of_month = || {
        let days = list(&runs(day_of_month, |day| ordinal(*day)));
        let months = if month.is_all() { "every month".to_owned() } else { of_months() };
        format!("on the {days} of {months}")
    };
    let weekday = || {
        let days = weekdays(day_of_week);
        if month.is_all() { days } else { format!("{days} in {}", of_months()) }
    };
    Some(match (any_day, any_weekday) {
        (true, _) => weekday(),
        (_, true) => of_month(),
        // A star takes every day, so neither is one, and either is enough.
        _ => format!("{} and {}", of_month(), weekday()),
    })
}

fn weekdays(field: &Field) -> String {
    let name = |day: u32| WEEKDAYS[day as usize];
    match (&field.numbers().collect::<Vec<_>>()[..], span(field)) {
        ([1, 2, 3, 4, 5], _) => "every weekday".to_owned(),
        ([0, 6], _) => "every Saturday and Sunday".to_owned(),
        ([_, _, _, ..], Some((first, last))) => {
            format!("every day from {} to {}", name(first), name(last))
        }
        (days, _) => format!("every {}", list(&days.iter().map(|day| name(*day)).collect::<Vec<_>>())),
    }
}

fn ordinal(day: u32) -> String {
    let ending = match (day % 10, day) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{day}{ending}")
}

/// `a`, `a and b`, `a, b and c`.
fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    match &items[..] {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
