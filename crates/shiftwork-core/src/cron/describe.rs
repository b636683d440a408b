//! A schedule in words, for screens. What is common is said as people say it; everything else field by field, and right.

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
    let zone = zone.iana_name().unwrap_or("local time");
    match (days, at_times) {
        // "every 5 minutes" is the same in every zone, nearly.
        (None, false) if fields.hour.is_all() => times,
        (None, false) => format!("{times} in {zone}"),
        (None, true) => format!("every day {times} in {zone}"),
        (Some(days), true) => format!("{days} {times} in {zone}"),
        (Some(days), false) => format!("{times}, {days}, in {zone}"),
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
    let within = if hour.is_all() { String::new() } else { format!(" {}", in_hours(hour)) };
    let text = match (&seconds[..], &minutes[..]) {
        ([0], [0]) if hour.is_all() => "every hour".to_owned(),
        ([0], [0]) => match step(hour) {
            Some(step) => format!("every {step} hours"),
            None => format!("at minute 0{within}"),
        },
        ([0], _) if minute.is_all() => format!("every minute{within}"),
        ([0], _) => match step(minute) {
            Some(step) => format!("every {step} minutes{within}"),
            None => format!("at minute {} past the hour{within}", list(&minutes)),
        },
        (_, _) if minute.is_all() && second.is_all() => format!("every second{within}"),
        (_, _) if minute.is_all() => match step(second) {
            Some(step) => format!("every {step} seconds{within}"),
            None => format!("at second {} of every minute{within}", list(&seconds)),
        },
        _ => {
            let seconds = if second.is_all() {
                "every second".to_owned()
            } else {
                format!("second {}", list(&seconds))
            };
            format!("at {seconds} of minute {}{within}", list(&minutes))
        }
    };
    (text, false)
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

fn in_hours(hour: &Field) -> String {
    let hours: Vec<u32> = hour.numbers().collect();
    match (hours.first(), hours.last()) {
        (Some(first), Some(last)) if hours.len() > 2 && (last - first) as usize + 1 == hours.len() => {
            format!("from {first:02}:00 to {last:02}:59")
        }
        _ => format!("in the hours {}", list(&hours)),
    }
}

/// On which days; `None` for all.
fn days(fields: &Fields) -> Option<String> {
    let Fields { day_of_month, month, day_of_week, .. } = fields;
    let months: Vec<&str> = month.numbers().map(|month| MONTHS[month as usize - 1]).collect();
    let of_months = if month.is_all() { "every month".to_owned() } else { list(&months) };
    let either = !day_of_month.star && !day_of_week.star;
    let (any_day, any_weekday) = (day_of_month.is_all(), day_of_week.is_all());
    // Either kind of day is enough, and one of them is every day.
    if either && (any_day || any_weekday) || (any_day && any_weekday) {
        return if month.is_all() { None } else { Some(format!("every day of {of_months}")) };
    }
    let of_month = || format!("on the {} of {of_months}", list(&ordinals(day_of_month)));
    let weekday = || {
        let days = weekdays(day_of_week);
        if month.is_all() { days } else { format!("{days} in {of_months}") }
    };
    Some(match (any_day, any_weekday) {
        (true, _) => weekday(),
        (_, true) => of_month(),
        _ if either => format!("{} and {}", of_month(), weekday()),
        _ => format!("{} if it is {}", of_month(), list(&names(day_of_week))),
    })
}

fn names(field: &Field) -> Vec<&'static str> {
    field.numbers().map(|day| WEEKDAYS[day as usize]).collect()
}

fn weekdays(field: &Field) -> String {
    match &field.numbers().collect::<Vec<_>>()[..] {
        [1, 2, 3, 4, 5] => "every weekday".to_owned(),
        [0, 6] => "every Saturday and Sunday".to_owned(),
        _ => format!("every {}", list(&names(field))),
    }
}

fn ordinals(field: &Field) -> Vec<String> {
    let ordinal = |day: u32| {
        let ending = match (day % 10, day) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        format!("{day}{ending}")
    };
    field.numbers().map(ordinal).collect()
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
