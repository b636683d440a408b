//! Durations as Go writes them: `1h30m`, `90s`, `1.5h`.

/// The duration in nanoseconds, or why it is none.
pub(super) fn parse(text: &str) -> Result<i128, String> {
    let wrong = || format!("{text:?} is no duration; write for example 90s, 15m or 1h30m");
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(number);
        let unit = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        total += part(number, unit).ok_or_else(wrong)?;
        if total > i128::from(i64::MAX) {
            return Err(format!("{text:?} is too long"));
        }
        rest = tail;
    }
    Ok(if negative { -total } else { total })
}

fn part(number: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let none = whole.is_empty() && fraction.is_empty();
    let whole = whole.trim_start_matches('0');
    if none || fraction.contains('.') || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = whole.checked_mul(unit)?;
    let mut digit = unit;
    for figure in fraction.bytes() {
        digit /= 10;
        nanos += i128::from(figure - b'0') * digit;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, seconds) in [
            ("90s", 90),
            ("1h30m", 5400),
            ("1.5h", 5400),
            ("00000000000000000000090s", 90),
            ("+5m", 300),
            ("0", 0),
            ("-2s", -2),
        ] {
            assert_eq!(parse(text), Ok(seconds * 1_000_000_000), "{text}");
        }
        assert_eq!(parse("1500ms"), Ok(1_500_000_000));
        for text in ["", "-", "5", "s", "1x", "1 h", "1..5s", ".s", "1d", "99999999999h"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
