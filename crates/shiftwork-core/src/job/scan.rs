//! Finds its way through JSON text without taking it apart: where values begin and end, byte for byte.
//!
//! The envelope of a job is rewritten around its arguments, which stay untouched however large, deep or odd they are. So
//! this scanner checks syntax as Go's decoder does (strict JSON, but any bytes inside strings), keeps no tree, and
//! does not recurse.

use std::borrow::Cow;
use std::ops::Range;

/// Where and why text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct SyntaxError {
    pub(super) what: &'static str,
    pub(super) at: usize,
}

/// A position in JSON text.
pub(super) struct Scanner<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn error(&self, what: &'static str) -> SyntaxError {
        SyntaxError { what, at: self.at }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over `byte` if it comes next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_end(&mut self) -> Result<(), SyntaxError> {
        self.skip_space();
        if self.at < self.text.len() { Err(self.error("unexpected text after the value")) } else { Ok(()) }
    }

    /// Steps over one value of any kind and depth.
    pub(super) fn value(&mut self) -> Result<Range<usize>, SyntaxError> {
        let start = self.at;
        // One entry for each open bracket: whether it is an object's.
        let mut open: Vec<bool> = Vec::new();
        loop {
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.skip_space();
                    if !self.eat(b'}') {
                        open.push(true);
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.skip_space();
                    if !self.eat(b']') {
                        open.push(false);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // A value has ended: close what ends with it, or go on to the next one.
            loop {
                let Some(&in_object) = open.last() else { return Ok(start..self.at) };
                self.skip_space();
                if self.eat(b',') {
                    self.skip_space();
                    if in_object {
                        self.key()?;
                    }
                    break;
                }
                if !self.eat(if in_object { b'}' } else { b']' }) {
                    return Err(self.error("expected ',' or a closing bracket"));
                }
                open.pop();
            }
        }
    }

    /// Steps over a key, the colon and the space around it. Returns where the key's text is, without quotes.
    pub(super) fn key(&mut self) -> Result<Range<usize>, SyntaxError> {
        let key = self.string()?;
        self.skip_space();
        if !self.eat(b':') {
            return Err(self.error("expected ':' after a key"));
        }
        self.skip_space();
        Ok(key)
    }

    /// Steps over a string. Returns where its text is, without quotes.
    pub(super) fn string(&mut self) -> Result<Range<usize>, SyntaxError> {
        if !self.eat(b'"') {
            return Err(self.error("expected a string"));
        }
        let start = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(start..self.at - 1);
                }
                Some(b'\\') => self.escape()?,
                Some(0x20..) => self.at += 1,
                Some(_) => return Err(self.error("control character in a string")),
                None => return Err(self.error("unexpected end inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.error("\\u needs four hex digits"));
                }
                self.at += 6;
            }
            _ => return Err(self.error("unknown escape in a string")),
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(_) => Err(self.error("expected a value")),
            None => Err(self.error("unexpected end of text")),
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), SyntaxError> {
        if !self.text[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("expected a digit")) } else { Ok(()) }
    }
}

/// The text of a string between its quotes, as Go reads it: lone surrogates and bytes that are not UTF-8 become U+FFFD.
pub(super) fn unescape(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\') {
        return lossy(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(position) = rest.iter().position(|&byte| byte == b'\\') {
        text.push_str(&lossy(&rest[..position]));
        let (character, length) = unescape_one(&rest[position..]);
        text.push(character);
        rest = &rest[position + length..];
    }
    text.push_str(&lossy(rest));
    Cow::Owned(text)
}

/// The first escape of `raw` (the scanner has checked it) and how long it is.
fn unescape_one(raw: &[u8]) -> (char, usize) {
    let plain = match raw.get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let Some(unit) = hex4(raw) else { return (char::REPLACEMENT_CHARACTER, raw.len().min(2)) };
            if let Some(character) = char::from_u32(unit) {
                return (character, 6);
            }
            let low = raw.get(6..).and_then(hex4).filter(|low| (0xdc00..0xe000).contains(low));
            return match low {
                Some(low) if unit < 0xdc00 => {
                    let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
                }
                _ => (char::REPLACEMENT_CHARACTER, 6),
            };
        }
        Some(&other) => char::from(other),
        None => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (plain, 2)
}

/// The code unit of a `\uXXXX` at the start of `raw`.
fn hex4(raw: &[u8]) -> Option<u32> {
    let digits = raw.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// As `String::from_utf8_lossy`, but with one U+FFFD for each bad byte, as Go has it.
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    let mut rest = bytes;
    let mut text = String::new();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) if text.is_empty() && rest.len() == bytes.len() => return Cow::Borrowed(valid),
            Ok(valid) => {
                text.push_str(valid);
                return Cow::Owned(text);
            }
            Err(error) => {
                let (valid, bad) = rest.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &bad[1..];
            }
        }
    }
}
