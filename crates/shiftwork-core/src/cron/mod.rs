//! Cron schedules with exactly the semantics of the Go library's (robfig/cron v3 with optional seconds and descriptors).
//!
//! A mixed fleet fires once only if all compute the same ticks, so the parser is our own: no other has these rules. Five or six
//! fields (the first of six is seconds), names of three letters for months and weekdays, `?` as `*`, lists, ranges and steps;
//! `5/15` is from 5 to the maximum by 15. If day-of-month or day-of-week is a star, both must match, else one is enough; `*/2` is not a
//! star. `TZ=Europe/Paris ` or `CRON_TZ=…` in front names a zone. Local times that a clock change skips do not fire; those that it
//! repeats fire twice. `@every 90s` is aligned to multiples of its period since the epoch, so that everybody computes the same.
//!
//! Two searches, because the Go library's own has a flaw where a clock changes at midnight or by half an hour: what fires is
//! [`Schedule::ticks`], and [`Schedule::next_after`] is what Go would answer, which goes into a job's bytes.
//!
//! [`parse`] reads a spec, [`field`] is one field, [`mod@ticks`] finds what fires, [`next`] what Go takes for the next, [`describe`] says
//! a schedule in words.

mod describe;
mod duration;
mod field;
mod next;
mod parse;
mod ticks;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::Error;
use field::Field;

/// How many years to look ahead, as in Go.
const YEARS: i16 = 5;

/// When something happens again and again. Cheap to clone.
#[derive(Clone, PartialEq)]
pub struct Schedule {
    inner: Arc<Inner>,
}

#[derive(Debug, PartialEq)]
struct Inner {
    spec: String,
    zone: TimeZone,
    rule: Rule,
}

#[derive(Debug, PartialEq)]
enum Rule {
    /// Every so many seconds, counted from the epoch.
    Every(i64),
    Fields(Box<Fields>),
}

/// The six fields of a spec.
#[derive(Debug, PartialEq)]
struct Fields {
    second: Field,
    minute: Field,
    hour: Field,
    day_of_month: Field,
    month: Field,
    day_of_week: Field,
}

impl Schedule {
    /// Reads a spec. `default_zone` counts if it names no zone itself.
    ///
    /// # Errors
    ///
    /// [`Error::is_invalid_input`] if it can't be read, or would never fire (30 February). The message names the field,
    /// its value and what is allowed.
    pub fn parse(spec: &str, default_zone: &TimeZone) -> Result<Self, Error> {
        let (zone, rule) = parse::parse(spec, default_zone).map_err(|reason| {
            Error::invalid_input(format!("the schedule {spec:?} can't be used: {reason}"))
        })?;
        Ok(Self { inner: Arc::new(Inner { spec: spec.to_owned(), zone, rule }) })
    }

    /// The tick after this second since the epoch, as the Go library answers. `None` if it finds none within five years.
    ///
    /// Nearly always that is the first of [`Schedule::ticks`]. When the search crosses a change of the clock at midnight (in
    /// Cairo, Beirut, Havana, Santiago, on the Azores) or one of half an hour (Lord Howe Island), Go may answer with a day that
    /// the spec does not name, or pass over one, and so does this: the expiry of a periodic job has to be the same in both.
    pub fn next_after(&self, second: i64) -> Option<i64> {
        match &self.inner.rule {
            Rule::Every(period) => second.div_euclid(*period).checked_add(1)?.checked_mul(*period),
            Rule::Fields(fields) => next::next_after(fields, &self.inner.zone, second),
        }
    }

    /// Whether this second since the epoch is a tick.
    pub fn is_due(&self, second: i64) -> bool {
        match &self.inner.rule {
            Rule::Every(period) => second.rem_euclid(*period) == 0,
            Rule::Fields(fields) => Timestamp::from_second(second)
                .is_ok_and(|timestamp| fields.matches(self.inner.zone.to_datetime(timestamp))),
        }
    }

    /// All ticks strictly later than `after` and strictly earlier than `until` (seconds since the epoch), in order: the seconds
    /// whose local time matches the spec, wherever the search begins. Lazy, so `until` may be far away. It ends where
    /// there is none for five years.
    pub fn ticks(&self, after: i64, until: i64) -> impl Iterator<Item = i64> {
        let next = |second: &i64| match &self.inner.rule {
            Rule::Every(_) => self.next_after(*second),
            Rule::Fields(fields) => ticks::first_after(fields, &self.inner.zone, *second),
        };
        std::iter::successors(next(&after), next).take_while(move |tick| *tick < until)
    }

    /// The spec as it was given.
    pub fn spec(&self) -> &str {
        &self.inner.spec
    }

    /// The zone in which it is computed.
    pub fn zone(&self) -> &TimeZone {
        &self.inner.zone
    }

    /// The schedule in words, such as `every weekday at 09:30 in Europe/Paris`.
    pub fn describe(&self) -> String {
        match &self.inner.rule {
            Rule::Every(period) => describe::every(*period),
            Rule::Fields(fields) => describe::fields(fields, &self.inner.zone),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec())
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schedule").field(&self.inner.spec).finish()
    }
}
