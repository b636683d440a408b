//! From a spec to a rule.

use jiff::tz::TimeZone;

use super::field::{DAY_OF_MONTH, DAY_OF_WEEK, Field, HOUR, MINUTE, MONTH, SECOND};
use super::{Fields, Rule, duration};

const NANOS: i128 = 1_000_000_000;

pub(super) fn parse(spec: &str, default_zone: &TimeZone) -> Result<(TimeZone, Rule), String> {
    let (zone, fields) = match spec.strip_prefix("TZ=").or_else(|| spec.strip_prefix("CRON_TZ=")) {
        Some(rest) => {
            let (name, fields) =
                rest.split_once(' ').ok_or("after the zone there is no space and no schedule")?;
            (self::zone(name, default_zone)?, fields.trim())
        }
        None => (default_zone.clone(), spec),
    };
    let rule = match fields.strip_prefix('@') {
        Some(descriptor) => self::descriptor(descriptor)?,
        None => Rule::Fields(Box::new(self::fields(fields)?)),
    };
    Ok((zone, rule))
}

fn zone(name: &str, default_zone: &TimeZone) -> Result<TimeZone, String> {
    // As Go has it: no name is UTC, and Local is what counts where no zone is named.
    match name {
        "" | "UTC" => return Ok(TimeZone::UTC),
        "Local" => return Ok(default_zone.clone()),
        _ => {}
    }
    // In the exact spelling, as Go wants it.
    let zone = TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name));
    zone.ok_or_else(|| format!("there is no time zone {name:?}; write one such as Europe/Paris"))
}

fn descriptor(name: &str) -> Result<Rule, String> {
    let zero = |range| Field::one(range, 0);
    let first = |range| Field::one(range, 1);
    let midnight = Fields {
        second: zero(SECOND),
        minute: zero(MINUTE),
        hour: zero(HOUR),
        day_of_month: Field::all(DAY_OF_MONTH),
        month: Field::all(MONTH),
        day_of_week: Field::all(DAY_OF_WEEK),
    };
    let fields = match name {
        "yearly" | "annually" => {
            Fields { day_of_month: first(DAY_OF_MONTH), month: first(MONTH), ..midnight }
        }
        "monthly" => Fields { day_of_month: first(DAY_OF_MONTH), ..midnight },
        "weekly" => Fields { day_of_week: zero(DAY_OF_WEEK), ..midnight },
        "daily" | "midnight" => midnight,
        "hourly" => Fields { hour: Field::all(HOUR), ..midnight },
        _ => {
            let period = name.strip_prefix("every ").ok_or_else(|| {
                format!(
                    "@{name} is not known; there are @yearly, @annually, @monthly, @weekly, @daily, @midnight, \
                     @hourly and @every with a duration"
                )
            })?;
            // As in Go: whole seconds, and never less than one.
            let seconds = (duration::parse(period)? / NANOS).max(1);
            return Ok(Rule::Every(i64::try_from(seconds).unwrap_or(i64::MAX)));
        }
    };
    Ok(Rule::Fields(Box::new(fields)))
}

fn fields(text: &str) -> Result<Fields, String> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let (second, rest) = match parts.len() {
        5 => ("0", &parts[..]),
        6 => (parts[0], &parts[1..]),
        count => {
            return Err(format!(
                "it has {count} field{}; write five (minute, hour, day-of-month, month, day-of-week) or six with the \
                 second first",
                if count == 1 { "" } else { "s" }
            ));
        }
    };
    let fields = Fields {
        second: Field::parse(second, SECOND)?,
        minute: Field::parse(rest[0], MINUTE)?,
        hour: Field::parse(rest[1], HOUR)?,
        day_of_month: Field::parse(rest[2], DAY_OF_MONTH)?,
        month: Field::parse(rest[3], MONTH)?,
        day_of_week: Field::parse(rest[4], DAY_OF_WEEK)?,
    };
    if fields.never_match() {
        return Err(format!(
            "it would never fire: no month of {:?} has a day-of-month of {:?}",
            rest[3], rest[2]
        ));
    }
    Ok(fields)
}

impl Fields {
    /// Whether there is no such day in any year. Only then: when both kinds of day are given, a weekday is enough.
    fn never_match(&self) -> bool {
        let by_weekday = !self.day_of_month.star && !self.day_of_week.star;
        let longest = |month| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let first = self.day_of_month.numbers().next().unwrap_or(1);
        !by_weekday && !self.month.numbers().any(|month| first <= longest(month))
    }
}
