//! The envelope of a job: its exact bytes, and the few fields that the engine reads.
//!
//! Decoding is as tolerant as Go's (field names in any case, the last of two equal ones counts, unknown fields pass), and
//! a little more: numbers that a Lua script has turned into floats are taken if they are whole. Nothing is ever encoded
//! again from decoded fields; [`Patch`](super::Patch) changes single fields in the text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::patch::Patch;
use super::scan::{Scanner, SyntaxError, unescape};

/// A job as it lies in a store. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawJob {
    bytes: Arc<[u8]>,
    fields: Arc<Fields>,
}

/// Bytes that are not a job, and why. The bytes are with whoever asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed job: {0}")]
pub struct MalformedJob(pub(super) String);

impl From<SyntaxError> for MalformedJob {
    fn from(error: SyntaxError) -> Self {
        Self(error.to_string())
    }
}

/// The fields that the Go library knows, in the order in which it writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Name,
    Id,
    EnqueuedAt,
    Args,
    Unique,
    Fails,
    Error,
    FailedAt,
    ExpiresAt,
    Trace,
}

impl Field {
    pub(super) const ALL: [(Self, &'static str); 10] = [
        (Self::Name, "name"),
        (Self::Id, "id"),
        (Self::EnqueuedAt, "t"),
        (Self::Args, "args"),
        (Self::Unique, "unique"),
        (Self::Fails, "fails"),
        (Self::Error, "err"),
        (Self::FailedAt, "failed_at"),
        (Self::ExpiresAt, "d"),
        (Self::Trace, "trace"),
    ];

    pub(super) fn key(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The field of that key, which may be written in any case.
    pub(super) fn of_key(raw: &[u8]) -> Option<Self> {
        let key: Cow<'_, [u8]> = match unescape(raw) {
            Cow::Borrowed(_) => Cow::Borrowed(raw),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        let found = Self::ALL.iter().find(|(_, name)| name.as_bytes().eq_ignore_ascii_case(&key));
        found.map(|(field, _)| *field)
    }
}

/// A string of the envelope: where it lies, if it lies there as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Text {
    #[default]
    Empty,
    At(Range<usize>),
    Decoded(Box<str>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Fields {
    name: Text,
    id: Text,
    error: Text,
    enqueued_at: i64,
    fails: i64,
    failed_at: i64,
    expires_at: i64,
    unique: bool,
    args: Option<Range<usize>>,
    trace: Option<Range<usize>>,
}

impl RawJob {
    /// Reads the envelope. Takes what Go's decoder takes.
    pub fn parse(bytes: impl Into<Arc<[u8]>>) -> Result<Self, MalformedJob> {
        let bytes = bytes.into();
        let mut fields = Fields::default();
        let mut scanner = Scanner::new(&bytes);
        scanner.skip_space();
        if scanner.peek() == Some(b'{') {
            fields.read(&mut scanner)?;
        } else {
            // Go reads `null` into a job without fields; every other scalar is an error.
            let value = scanner.value()?;
            if &bytes[value] != b"null" {
                return Err(MalformedJob("not a JSON object".to_owned()));
            }
        }
        scanner.expect_end()?;
        Ok(Self { bytes, fields: Arc::new(fields) })
    }

    /// The name of the job type; empty if the job does not say.
    pub fn name(&self) -> &str {
        self.text(&self.fields.name)
    }

    /// The job's id. Any text: jobs from elsewhere may have ids of their own form.
    pub fn id(&self) -> &str {
        self.text(&self.fields.id)
    }

    /// When it was put into its queue, in seconds since the epoch.
    pub fn enqueued_at(&self) -> i64 {
        self.fields.enqueued_at
    }

    /// The arguments as JSON text, a whole object; `None` if there are none. Not always UTF-8: the text is whatever
    /// the enqueuer wrote.
    pub fn args(&self) -> Option<&[u8]> {
        self.fields.args.clone().map(|range| &self.bytes[range])
    }

    /// The arguments for people to read.
    pub fn args_text(&self) -> Option<Cow<'_, str>> {
        self.args().map(String::from_utf8_lossy)
    }

    /// Whether it was pushed under a unique key.
    pub fn is_unique(&self) -> bool {
        self.fields.unique
    }

    /// How often it has failed.
    pub fn fails(&self) -> i64 {
        self.fields.fails
    }

    /// The error of the last failure.
    pub fn error(&self) -> Option<&str> {
        Some(self.text(&self.fields.error)).filter(|error| !error.is_empty())
    }

    /// When it failed last, in seconds since the epoch.
    pub fn failed_at(&self) -> Option<i64> {
        Some(self.fields.failed_at).filter(|&at| at != 0)
    }

    /// The second after which the first attempt is pointless: a periodic job's next tick.
    pub fn expires_at(&self) -> Option<i64> {
        Some(self.fields.expires_at).filter(|&at| at != 0)
    }

    /// The W3C trace context that the enqueuer sent along: `traceparent` and perhaps `tracestate`.
    pub fn trace(&self) -> Vec<(String, String)> {
        let Some(range) = self.fields.trace.clone() else { return Vec::new() };
        let mut scanner = Scanner::new(&self.bytes[range]);
        // It was checked when the envelope was read.
        read_trace(&mut scanner).unwrap_or_default()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, without a copy.
    pub fn into_bytes(self) -> Arc<[u8]> {
        self.bytes
    }

    /// A change of single fields.
    pub fn patch(&self) -> Patch<'_> {
        Patch::new(&self.bytes)
    }

    fn text<'a>(&'a self, text: &'a Text) -> &'a str {
        match text {
            Text::Empty => "",
            // It was checked when the envelope was read.
            Text::At(range) => std::str::from_utf8(&self.bytes[range.clone()]).unwrap_or_default(),
            Text::Decoded(text) => text,
        }
    }
}

impl Fields {
    fn read(&mut self, scanner: &mut Scanner<'_>) -> Result<(), MalformedJob> {
        for_each_member(scanner, |scanner, key| match Field::of_key(&scanner.text[key]) {
            Some(field) => self.read_field(field, scanner),
            None => Ok(scanner.value().map(drop)?),
        })
    }

    fn read_field(&mut self, field: Field, scanner: &mut Scanner<'_>) -> Result<(), MalformedJob> {
        let (first, value) = (scanner.peek(), scanner.value()?);
        let text = &scanner.text[value.clone()];
        if text == b"null" {
            // Null leaves a plain field as it is, and empties a map, as in Go.
            match field {
                Field::Args => self.args = None,
                Field::Trace => self.trace = None,
                _ => {}
            }
            return Ok(());
        }
        let wrong = |wanted: &str| {
            let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
            Err(MalformedJob(format!("field {:?} is {shown}, not {wanted}", field.key())))
        };
        let target = match field {
            Field::Name => Ok(&mut self.name),
            Field::Id => Ok(&mut self.id),
            Field::Error => Ok(&mut self.error),
            Field::EnqueuedAt => Err(&mut self.enqueued_at),
            Field::Fails => Err(&mut self.fails),
            Field::FailedAt => Err(&mut self.failed_at),
            Field::ExpiresAt => Err(&mut self.expires_at),
            Field::Unique => {
                return match text {
                    b"true" | b"false" => {
                        self.unique = text == b"true";
                        Ok(())
                    }
                    _ => wrong("true or false"),
                };
            }
            Field::Args if first == Some(b'{') => {
                self.args = Some(value);
                return Ok(());
            }
            Field::Args => return wrong("an object"),
            Field::Trace => {
                if first != Some(b'{') || read_trace(&mut Scanner::new(text)).is_err() {
                    return wrong("an object of strings");
                }
                self.trace = Some(value);
                return Ok(());
            }
        };
        match target {
            Ok(string) if first == Some(b'"') => {
                let inside = value.start + 1..value.end - 1;
                *string = match unescape(&scanner.text[inside.clone()]) {
                    Cow::Borrowed(_) => Text::At(inside),
                    Cow::Owned(text) => Text::Decoded(text.into()),
                };
                Ok(())
            }
            Ok(_) => wrong("a string"),
            Err(number) => match whole_number(text) {
                Some(value) => {
                    *number = value;
                    Ok(())
                }
                None => wrong("a whole number of 64 bits"),
            },
        }
    }
}

/// Steps through the members of the object that comes next. `member` gets the range of the key's text and has to step over
/// the value.
pub(super) fn for_each_member<E: From<SyntaxError>>(
    scanner: &mut Scanner<'_>,
    mut member: impl FnMut(&mut Scanner<'_>, Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    if !scanner.eat(b'{') {
        return Err(scanner.error("expected an object").into());
    }
    scanner.skip_space();
    if scanner.eat(b'}') {
        return Ok(());
    }
    loop {
        let key = scanner.key()?;
        member(scanner, key)?;
        scanner.skip_space();
        if scanner.eat(b'}') {
            return Ok(());
        }
        if !scanner.eat(b',') {
            return Err(scanner.error("expected ',' or '}'").into());
        }
        scanner.skip_space();
    }
}

fn read_trace(scanner: &mut Scanner<'_>) -> Result<Vec<(String, String)>, SyntaxError> {
    let mut entries = Vec::new();
    for_each_member(scanner, |scanner, key| {
        let key = unescape(&scanner.text[key]).into_owned();
        if scanner.peek() == Some(b'n') {
            scanner.value()?;
            entries.push((key, String::new()));
            return Ok(());
        }
        let value = scanner.string()?;
        entries.push((key, unescape(&scanner.text[value]).into_owned()));
        Ok::<(), SyntaxError>(())
    })?;
    Ok(entries)
}

/// A whole number, also if a Lua script has written it as a float: `1.7e+09`.
fn whole_number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(number) = text.parse::<i64>() {
        return Some(number);
    }
    if !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    // Below 2^63 in size, so the conversion is exact for a whole number.
    (number.fract() == 0.0 && number.abs() < 9.223_372_036_854_775e18).then_some(number as i64)
}
