//! Durations and times as people write them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, ZonedDateTime};

/// A delay: `90s`, `5m`, `1h30m`, `2 days`, or plain seconds.
pub(crate) fn delay(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let wrong = || format!("{text:?} is not a delay; write 90s, 5m, 1h30m or 2d");
    if let Ok(duration) = text.parse::<SignedDuration>() {
        return Duration::try_from(duration)
            .map_err(|_| format!("{text:?} is in the past; write a delay from now"));
    }
    // Days and weeks are spans of the calendar; here a day is 24 hours.
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| format!("{text:?} is in the past; write a delay from now"))
}

/// A time: RFC 3339 (`2026-12-24T18:00:00+01:00`, `…Z`), with a zone (`2026-12-24T18:00[Europe/Paris]`), or seconds since the
/// epoch.
pub(crate) fn instant(text: &str) -> Result<Timestamp, String> {
    if let Ok(seconds) = text.parse::<i64>() {
        return Timestamp::from_second(seconds).map_err(|error| format!("{text:?} is out of range: {error}"));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    text.parse::<ZonedDateTime>().map(|time| time.timestamp()).map_err(|_| {
        format!("{text:?} is not a time; write 2026-12-24T18:00:00Z, …+01:00, …[Europe/Paris], or seconds since the epoch")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("5m", 300),
            ("1h30m", 5400),
            ("1h 30m", 5400),
            ("2d", 172_800),
            ("1w", 604_800),
        ] {
            assert_eq!(delay(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "soon", "-5m", "5 parsecs"] {
            assert!(delay(wrong).unwrap_err().contains(&format!("{wrong:?}")), "{wrong}");
        }
    }

    #[test]
    fn times_are_read_with_zone_or_offset_and_not_without() {
        let christmas = Timestamp::from_second(1_798_131_600).unwrap();
        for text in [
            "2026-12-24T17:00:00Z",
            "2026-12-24T18:00:00+01:00",
            "2026-12-24T18:00[Europe/Paris]",
            "1798131600",
        ] {
            assert_eq!(instant(text), Ok(christmas), "{text}");
        }
        assert!(instant("2026-12-24T18:00:00").is_err(), "nobody knows where");
        assert!(instant("tomorrow").unwrap_err().contains("\"tomorrow\""));
    }
}
