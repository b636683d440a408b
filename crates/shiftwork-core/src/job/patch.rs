//! Changes single fields of an envelope; every other byte stays as it is.
//!
//! A field that is there is replaced where it stands. One that is not is put where Go would write it. A value that Go
//! leaves out (0, an empty text) takes the field out. So what Go wrote comes out as Go would have written it, and what
//! others wrote keeps their form, their order, and fields we don't know.

use std::ops::Range;
use std::sync::Arc;

use super::envelope::{Field, RawJob, for_each_member};
use super::go_json::write_string;
use super::scan::{Scanner, SyntaxError};

/// The longest error text that is kept, in bytes. It travels with the job through every retry.
pub const MAX_ERROR_BYTES: usize = 4096;

/// Fields to change; see [`RawJob::patch`].
#[derive(Debug)]
pub struct Patch<'a> {
    bytes: &'a [u8],
    /// New values as JSON text; empty to take the field out.
    changes: Vec<(Field, Vec<u8>)>,
}

impl<'a> Patch<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, changes: Vec::new() }
    }

    /// Sets `t`, the second at which it was put into its queue.
    pub fn enqueued_at(self, seconds: i64) -> Self {
        self.set(Field::EnqueuedAt, seconds.to_string().into_bytes())
    }

    /// Sets the number of failures; 0 takes the field out.
    pub fn fails(self, fails: i64) -> Self {
        self.set_number(Field::Fails, fails)
    }

    /// Sets the error, cut to [`MAX_ERROR_BYTES`]; an empty one takes the field out.
    pub fn error(self, error: &str) -> Self {
        let mut text = Vec::new();
        if !error.is_empty() {
            write_string(&mut text, cap(error).as_bytes());
        }
        self.set(Field::Error, text)
    }

    /// Sets the second of the last failure; 0 takes the field out.
    pub fn failed_at(self, seconds: i64) -> Self {
        self.set_number(Field::FailedAt, seconds)
    }

    /// Sets the second after which a first attempt is pointless; 0 takes the field out.
    pub fn expires_at(self, seconds: i64) -> Self {
        self.set_number(Field::ExpiresAt, seconds)
    }

    /// The job with its changes.
    pub fn build(self) -> RawJob {
        let bytes: Arc<[u8]> = self.apply().into();
        // The text was a job, and only values of the right type went in.
        RawJob::parse(bytes).expect("a patched job is a job")
    }

    fn set_number(self, field: Field, number: i64) -> Self {
        self.set(field, if number == 0 { Vec::new() } else { number.to_string().into_bytes() })
    }

    fn set(mut self, field: Field, value: Vec<u8>) -> Self {
        self.changes.retain(|(other, _)| *other != field);
        self.changes.push((field, value));
        self
    }

    fn apply(mut self) -> Vec<u8> {
        self.changes.sort_by_key(|(field, _)| *field);
        let (members, end) = members(self.bytes);
        let mut out = Vec::with_capacity(self.bytes.len() + 128);
        let mut pending = self.changes.iter().peekable();
        out.push(b'{');
        let mut first = true;
        for (index, member) in members.iter().enumerate() {
            // A new field goes in front of the first known field that Go writes after it ...
            if let Some(this) = member.field {
                while let Some((field, value)) = pending.next_if(|(field, _)| *field < this) {
                    if !members.iter().any(|member| member.field == Some(*field)) {
                        put(&mut out, &mut first, *field, value);
                    }
                }
            }
            let change = member.field.and_then(|this| self.changes.iter().find(|(field, _)| *field == this));
            let is_last_of_field = || members[index + 1..].iter().all(|later| later.field != member.field);
            match change {
                Some((_, value)) if value.is_empty() => continue,
                Some((_, value)) if is_last_of_field() => {
                    lead(&mut out, &mut first, &self.bytes[member.lead.clone()]);
                    out.extend_from_slice(&self.bytes[member.key_to_value.clone()]);
                    out.extend_from_slice(value);
                }
                _ => {
                    lead(&mut out, &mut first, &self.bytes[member.lead.clone()]);
                    out.extend_from_slice(&self.bytes[member.key_to_value.start..member.end]);
                }
            }
        }
        // ... or at the end.
        for (field, value) in pending {
            if !members.iter().any(|member| member.field == Some(*field)) {
                put(&mut out, &mut first, *field, value);
            }
        }
        out.extend_from_slice(&self.bytes[end..]);
        if self.bytes.get(end) != Some(&b'}') && !self.bytes[end..].contains(&b'}') {
            out.push(b'}');
        }
        out
    }
}

/// A member of the envelope.
struct Member {
    field: Option<Field>,
    /// Space and comma in front of it.
    lead: Range<usize>,
    /// From its key to where its value begins.
    key_to_value: Range<usize>,
    end: usize,
}

/// The members, and where the last one ends.
fn members(bytes: &[u8]) -> (Vec<Member>, usize) {
    let mut scanner = Scanner::new(bytes);
    scanner.skip_space();
    let mut members = Vec::with_capacity(12);
    let mut end = scanner.at + 1;
    // It was read before, so it can't fail; `null`, a job without fields, has no members.
    let _ = for_each_member(&mut scanner, |scanner, key| {
        let field = Field::of_key(&scanner.text[key.clone()]);
        let value = scanner.value()?;
        members.push(Member {
            field,
            lead: end..key.start - 1,
            key_to_value: key.start - 1..value.start,
            end: value.end,
        });
        end = value.end;
        Ok::<(), SyntaxError>(())
    });
    if bytes[..end.min(bytes.len())].iter().all(|byte| *byte != b'{') {
        end = bytes.len();
    }
    (members, end)
}

/// What stood in front of a member, with a comma exactly if another member stands before it.
fn lead(out: &mut Vec<u8>, first: &mut bool, lead: &[u8]) {
    let had_comma = lead.contains(&b',');
    if *first && had_comma {
        out.extend(lead.iter().copied().filter(|byte| *byte != b','));
    } else {
        if !*first && !had_comma {
            out.push(b',');
        }
        out.extend_from_slice(lead);
    }
    *first = false;
}

fn put(out: &mut Vec<u8>, first: &mut bool, field: Field, value: &[u8]) {
    if value.is_empty() {
        return;
    }
    lead(out, first, b"");
    write_string(out, field.key().as_bytes());
    out.push(b':');
    out.extend_from_slice(value);
}

/// An error text that is not too long to travel, cut at a character, and saying so.
fn cap(error: &str) -> std::borrow::Cow<'_, str> {
    if error.len() <= MAX_ERROR_BYTES {
        return error.into();
    }
    let note = format!("… ({} bytes in all)", error.len());
    let mut end = MAX_ERROR_BYTES - note.len();
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{note}", &error[..end]).into()
}
