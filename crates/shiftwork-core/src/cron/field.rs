//! One field of a spec: which numbers it takes.

/// What a field can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) name: &'static str,
    pub(super) min: u32,
    pub(super) max: u32,
    /// Names for numbers, from [`Range::min`] on.
    pub(super) names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

pub(super) const SECOND: Range = Range { name: "second", min: 0, max: 59, names: &[] };
pub(super) const MINUTE: Range = Range { name: "minute", min: 0, max: 59, names: &[] };
pub(super) const HOUR: Range = Range { name: "hour", min: 0, max: 23, names: &[] };
pub(super) const DAY_OF_MONTH: Range = Range { name: "day-of-month", min: 1, max: 31, names: &[] };
pub(super) const MONTH: Range = Range { name: "month", min: 1, max: 12, names: &MONTHS };
pub(super) const DAY_OF_WEEK: Range = Range { name: "day-of-week", min: 0, max: 6, names: &WEEKDAYS };

/// The numbers of a field as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) range: Range,
    pub(super) bits: u64,
    /// Whether it was written as a star, which matters for days: a star with a step above 1 is none.
    pub(super) star: bool,
}

impl Field {
    /// Reads a list of ranges.
    pub(super) fn parse(text: &str, range: Range) -> Result<Self, String> {
        let mut field = Self { range, bits: 0, star: false };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            field.add(part).map_err(|reason| {
                format!("{}, in the {} {text:?}; {}", reason, range.name, allowed(&range))
            })?;
        }
        if field.bits == 0 {
            return Err(format!("the {} {text:?} names no value; {}", range.name, allowed(&range)));
        }
        Ok(field)
    }

    /// All numbers, as `*` gives them.
    pub(super) fn all(range: Range) -> Self {
        Self { range, bits: bits(range.min, range.max, 1), star: true }
    }

    /// One number.
    pub(super) fn one(range: Range, number: u32) -> Self {
        Self { range, bits: 1 << number, star: false }
    }

    fn add(&mut self, part: &str) -> Result<(), String> {
        let range = self.range;
        let (numbers, step) = match part.split_once('/') {
            Some((_, step)) if step.contains('/') => return Err(format!("{part:?} has more than one slash")),
            Some((numbers, step)) => (numbers, Some(number(step, &[], 0)?)),
            None => (part, None),
        };
        let mut star = false;
        let (low, high) = match numbers.split_once('-') {
            _ if is_star(numbers.split('-').next().unwrap_or_default()) => {
                star = step.is_none_or(|step| step <= 1);
                (range.min, range.max)
            }
            Some((_, high)) if high.contains('-') => {
                return Err(format!("{part:?} has more than one hyphen"));
            }
            Some((low, high)) => (self.number(low)?, self.number(high)?),
            // "5/15" goes on to the maximum.
            None if step.is_some() => (self.number(numbers)?, range.max),
            None => {
                let number = self.number(numbers)?;
                (number, number)
            }
        };
        if step == Some(0) {
            return Err(format!("the step of {part:?} is 0"));
        }
        if low < range.min || high > range.max {
            return Err(format!("{part:?} goes beyond {} to {}", range.min, range.max));
        }
        if low > high {
            return Err(format!("{part:?} begins after its end"));
        }
        self.bits |= bits(low, high, step.unwrap_or(1));
        self.star |= star;
        Ok(())
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        number(text, self.range.names, self.range.min)
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.bits & (1 << number) != 0
    }

    /// The first of its numbers that is not below this one.
    pub(super) fn first_from(&self, number: u32) -> Option<u32> {
        let rest = self.bits.checked_shr(number)?;
        (rest != 0).then(|| number + rest.trailing_zeros())
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        (self.range.min..=self.range.max).filter(|number| self.has(*number))
    }

    /// Whether it takes every number, however that was written.
    pub(super) fn is_all(&self) -> bool {
        self.bits == Self::all(self.range).bits
    }
}

fn is_star(text: &str) -> bool {
    text == "*" || text == "?"
}

fn number(text: &str, names: &[&str], first: u32) -> Result<u32, String> {
    if let Some(position) = names.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        return Ok(first + u32::try_from(position).unwrap_or(0));
    }
    // As Go reads numbers: with a sign, if need be.
    match text.parse::<i64>() {
        Ok(number) if number >= 0 => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Ok(_) => Err(format!("{text:?} is negative")),
        Err(_) => Err(format!("{text:?} is no number")),
    }
}

fn bits(low: u32, high: u32, step: u32) -> u64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    (low..=high).step_by(step).fold(0, |bits, number| bits | 1 << number)
}

fn allowed(range: &Range) -> String {
    let numbers = format!("allowed are * and {} to {}", range.min, range.max);
    match range.names {
        [] => numbers,
        [first, .., last] => format!("{numbers}, or {first} to {last}"),
        [only] => format!("{numbers}, or {only}"),
    }
}
