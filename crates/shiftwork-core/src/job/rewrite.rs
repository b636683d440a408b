//! Rewrites JSON text in Go's form: compact, keys sorted, strings escaped as Go escapes them.
//!
//! With [`Numbers::AsGoFloats`] this is what a Go worker makes of a job's arguments by decoding and encoding them, which is
//! how it computes the unique key that it frees. Does not recurse.

use std::borrow::Cow;

use super::go_json::{Member, close_object, write_f64, write_string};
use super::scan::{Scanner, SyntaxError, unescape};

/// What becomes of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// They stay as they are written.
    Keep,
    /// Integers stay, others are written as Go writes a float64.
    KeepIntegers,
    /// All are read as float64, and written as Go writes that.
    AsGoFloats,
}

/// An open bracket.
enum Open {
    Object { start: usize, members: Vec<Member> },
    List { start: usize },
}

/// The text in Go's form.
pub(super) fn rewrite(text: &[u8], numbers: Numbers) -> Result<Vec<u8>, SyntaxError> {
    let mut scanner = Scanner::new(text);
    let mut out = Vec::with_capacity(text.len() + 2);
    let mut open: Vec<Open> = Vec::new();
    scanner.skip_space();
    loop {
        match scanner.peek() {
            Some(b'{') => {
                scanner.at += 1;
                scanner.skip_space();
                out.push(b'{');
                if scanner.eat(b'}') {
                    out.push(b'}');
                } else {
                    let mut object = Open::Object { start: out.len(), members: Vec::new() };
                    write_key(&mut scanner, &mut out, &mut object)?;
                    open.push(object);
                    continue;
                }
            }
            Some(b'[') => {
                scanner.at += 1;
                scanner.skip_space();
                out.push(b'[');
                if scanner.eat(b']') {
                    out.push(b']');
                } else {
                    open.push(Open::List { start: out.len() });
                    continue;
                }
            }
            Some(b'"') => {
                let range = scanner.string()?;
                write_string(&mut out, unescape(&text[range]).as_bytes());
            }
            Some(b'-' | b'0'..=b'9') => {
                let range = scanner.value()?;
                write_number(&mut out, &text[range], numbers);
            }
            _ => {
                let range = scanner.value()?;
                out.extend_from_slice(&text[range]);
            }
        }
        loop {
            let Some(top) = open.last_mut() else {
                scanner.expect_end()?;
                return Ok(out);
            };
            if let Open::Object { members, .. } = top
                && let Some(member) = members.last_mut()
            {
                member.end = out.len();
            }
            scanner.skip_space();
            if scanner.eat(b',') {
                scanner.skip_space();
                match top {
                    Open::Object { .. } => write_key(&mut scanner, &mut out, top)?,
                    Open::List { .. } => out.push(b','),
                }
                break;
            }
            let bracket = if matches!(top, Open::Object { .. }) { b'}' } else { b']' };
            if !scanner.eat(bracket) {
                return Err(scanner.error("expected ',' or a closing bracket"));
            }
            match open.pop() {
                Some(Open::Object { start, members }) => close_object(&mut out, start, members),
                Some(Open::List { start }) => {
                    debug_assert!(out.len() > start, "an empty list is closed where it opens");
                    out.push(b']');
                }
                None => {}
            }
        }
    }
}

fn write_key(scanner: &mut Scanner<'_>, out: &mut Vec<u8>, object: &mut Open) -> Result<(), SyntaxError> {
    let range = scanner.key()?;
    let key = unescape(&scanner.text[range]).into_owned();
    write_string(out, key.as_bytes());
    out.push(b':');
    if let Open::Object { members, .. } = object {
        members.push(Member { key: Cow::Owned(key), end: 0 });
    }
    Ok(())
}

fn write_number(out: &mut Vec<u8>, text: &[u8], numbers: Numbers) {
    let as_float = match numbers {
        Numbers::Keep => false,
        Numbers::KeepIntegers => text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')),
        Numbers::AsGoFloats => true,
    };
    // Go refuses numbers beyond float64 when it decodes, so for those there is no form of Go's to match.
    let float =
        std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok()).filter(|f| f.is_finite());
    match float {
        Some(float) if as_float => write_f64(out, float),
        _ => out.extend_from_slice(text),
    }
}
