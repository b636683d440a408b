//! JSON as Go's `encoding/json` writes it, from any `serde::Serialize`.
//!
//! Keys of maps *and* structs are sorted by their bytes: the arguments of a Go job are a map, and a Rust struct has to come
//! out as the same map would. Source of the rules: the wire format's golden vectors, measured from Go 1.22 to 1.26.

use std::borrow::Cow;
use std::fmt::Display;

use serde::ser::{self, Serialize};

use super::rewrite::{Numbers, rewrite};

/// Why a value can't be written as JSON, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeError {
    message: String,
    /// From the innermost outwards.
    path: Vec<String>,
}

impl EncodeError {
    fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), path: Vec::new() }
    }

    fn inside(mut self, step: impl Display) -> Self {
        self.path.push(step.to_string());
        self
    }
}

impl Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            let path: Vec<_> = self.path.iter().rev().map(String::as_str).collect();
            write!(f, "{}: ", path.join("."))?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for EncodeError {}

impl ser::Error for EncodeError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message)
    }
}

/// The Go-JSON text of a value.
pub fn to_vec(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::with_capacity(128);
    value.serialize(Writer { out: &mut out })?;
    Ok(out)
}

/// Appends a string in quotes. `text` need not be UTF-8: what is not becomes `\ufffd`.
pub(super) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    if let Ok(text) = std::str::from_utf8(text) {
        return write_text(out, text);
    }
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        write_escaped(out, chunk.valid());
        for _ in chunk.invalid() {
            out.extend_from_slice(br"\ufffd");
        }
    }
    out.push(b'"');
}

/// Appends a text in quotes.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Bytes that a string can't hold as they are, or not always: nearly no string has any.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special[b'<' as usize] = true;
    special[b'>' as usize] = true;
    special[b'&' as usize] = true;
    // The first byte of U+2028 and U+2029, which end lines in JavaScript.
    special[0xe2] = true;
    special
};

fn write_escaped(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| SPECIAL[usize::from(byte)]) {
        out.extend_from_slice(&rest[..at]);
        let byte = rest[at];
        let (escape, length): (&[u8], usize) = match byte {
            b'"' => (b"\\\"", 1),
            b'\\' => (b"\\\\", 1),
            b'\n' => (b"\\n", 1),
            b'\r' => (b"\\r", 1),
            b'\t' => (b"\\t", 1),
            0x08 => (b"\\b", 1),
            0x0c => (b"\\f", 1),
            0xe2 => match &rest[at..at + 3] {
                [_, 0x80, 0xa8] => (b"\\u2028", 3),
                [_, 0x80, 0xa9] => (b"\\u2029", 3),
                _ => (&[0xe2], 1),
            },
            _ => (&[b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]], 1),
        };
        out.extend_from_slice(escape);
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
}

/// Appends a finite float: the shortest digits that read back the same; an exponent below 1e-6 and from 1e21.
pub(super) fn write_f64(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    let exponent = size != 0.0 && !(1e-6..1e21).contains(&size);
    write_float(out, exponent, format_args!("{value}"), format_args!("{value:e}"));
}

fn write_f32(out: &mut Vec<u8>, value: f32) {
    let size = value.abs();
    let exponent = size != 0.0 && !(1e-6..1e21).contains(&size);
    write_float(out, exponent, format_args!("{value}"), format_args!("{value:e}"));
}

fn write_float(
    out: &mut Vec<u8>,
    exponent: bool,
    plain: std::fmt::Arguments<'_>,
    with_e: std::fmt::Arguments<'_>,
) {
    if !exponent {
        out.extend_from_slice(plain.to_string().as_bytes());
        return;
    }
    // Rust writes 1e21 and 1e-7; Go writes a sign always.
    let text = with_e.to_string();
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => {
            out.extend_from_slice(format!("{digits}e+{power}").as_bytes());
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn integer(self, value: impl itoa::Integer) -> Result<(), EncodeError> {
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        Ok(())
    }
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = List<'a>;
    type SerializeTuple = List<'a>;
    type SerializeTupleStruct = List<'a>;
    type SerializeTupleVariant = List<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Object<'a>;
    type SerializeStructVariant = Object<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), EncodeError> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), EncodeError> {
        self.integer(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), EncodeError> {
        if !value.is_finite() {
            return Err(not_a_number(value));
        }
        write_f32(self.out, value);
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), EncodeError> {
        if !value.is_finite() {
            return Err(not_a_number(value));
        }
        write_f64(self.out, value);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), EncodeError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), EncodeError> {
        write_text(self.out, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), EncodeError> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), EncodeError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        open_variant(self.out, variant);
        value.serialize(Writer { out: self.out }).map_err(|error| error.inside(variant))?;
        self.out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'a>, EncodeError> {
        Ok(List::open(self.out, ""))
    }

    fn serialize_tuple(self, _: usize) -> Result<List<'a>, EncodeError> {
        Ok(List::open(self.out, ""))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List<'a>, EncodeError> {
        Ok(List::open(self.out, ""))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<List<'a>, EncodeError> {
        open_variant(self.out, variant);
        Ok(List::open(self.out, "}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Object<'a>, EncodeError> {
        Ok(Object::open(self.out, ""))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Object<'a>, EncodeError> {
        let mut object = Object::open(self.out, "");
        object.verbatim = name == RAW_VALUE || name == NUMBER;
        Ok(object)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Object<'a>, EncodeError> {
        open_variant(self.out, variant);
        Ok(Object::open(self.out, "}"))
    }
}

/// How serde_json hands over a `RawValue`, and a `Number` with its feature `arbitrary_precision`: as a struct of this
/// name with one field that holds the text.
const RAW_VALUE: &str = "$serde_json::private::RawValue";
const NUMBER: &str = "$serde_json::private::Number";

fn not_a_number(value: impl Display) -> EncodeError {
    EncodeError::new(format!("{value} is not a JSON number; send null or leave the field out"))
}

fn open_variant(out: &mut Vec<u8>, variant: &str) {
    out.push(b'{');
    write_text(out, variant);
    out.push(b':');
}

/// A list that is being written.
pub(super) struct List<'a> {
    out: &'a mut Vec<u8>,
    length: usize,
    /// What follows the closing bracket.
    after: &'static str,
}

impl<'a> List<'a> {
    fn open(out: &'a mut Vec<u8>, after: &'static str) -> Self {
        out.push(b'[');
        Self { out, length: 0, after }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        if self.length > 0 {
            self.out.push(b',');
        }
        self.length += 1;
        value.serialize(Writer { out: self.out }).map_err(|error| error.inside(self.length - 1))
    }

    fn close(self) -> Result<(), EncodeError> {
        self.out.push(b']');
        self.out.extend_from_slice(self.after.as_bytes());
        Ok(())
    }
}

/// An object that is being written: the members lie in `out` in the order in which they came, and are put in order at the end.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    members: Vec<Member>,
    after: &'static str,
    /// It stands for a JSON text, see [`RAW_VALUE`].
    verbatim: bool,
}

/// A member: its key, and where `"key":value` ends in the output.
pub(super) struct Member {
    pub(super) key: Cow<'static, str>,
    pub(super) end: usize,
}

impl<'a> Object<'a> {
    fn open(out: &'a mut Vec<u8>, after: &'static str) -> Self {
        out.push(b'{');
        let start = out.len();
        Self { out, start, members: Vec::new(), after, verbatim: false }
    }

    fn key(&mut self, key: Cow<'static, str>) {
        write_text(self.out, &key);
        self.out.push(b':');
        self.members.push(Member { key, end: 0 });
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        let result = value.serialize(Writer { out: self.out });
        let end = self.out.len();
        match self.members.last_mut() {
            Some(member) => {
                member.end = end;
                result.map_err(|error| error.inside(&member.key))
            }
            None => result,
        }
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), EncodeError> {
        if !self.verbatim {
            self.key(Cow::Borrowed(key));
            return self.value(value);
        }
        let text = value.serialize(TextOnly)?;
        self.out.truncate(self.start - 1);
        // A number that is a struct now is a plain one when the feature is off, so it is written as that would be.
        let numbers = if key == NUMBER { Numbers::KeepIntegers } else { Numbers::Keep };
        let written = rewrite(text.as_bytes(), numbers).map_err(EncodeError::new)?;
        self.out.extend_from_slice(&written);
        Ok(())
    }

    fn close(self) -> Result<(), EncodeError> {
        if !self.verbatim {
            close_object(self.out, self.start, self.members);
        }
        self.out.extend_from_slice(self.after.as_bytes());
        Ok(())
    }
}

/// Puts the members that lie in `out` from `start` in order, with commas between them and a bracket behind. The last of
/// several members with one key counts.
pub(super) fn close_object(out: &mut Vec<u8>, start: usize, members: Vec<Member>) {
    if members.len() > 1 {
        let written = out.split_off(start);
        let mut begin = 0;
        let mut ranges = Vec::with_capacity(members.len());
        for member in members {
            let end = member.end - start;
            ranges.push((member.key, begin..end));
            begin = end;
        }
        ranges.sort_by(|(one, _), (other, _)| one.cmp(other));
        let last_of_key =
            |index: usize| ranges.get(index + 1).is_none_or(|(next, _)| *next != ranges[index].0);
        for (_, range) in (0..ranges.len()).filter(|&index| last_of_key(index)).map(|index| &ranges[index]) {
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(&written[range.clone()]);
        }
    }
    out.push(b'}');
}

macro_rules! list_like {
    ($trait:ident, $method:ident) => {
        impl ser::$trait for List<'_> {
            type Ok = ();
            type Error = EncodeError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
                self.element(value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    };
}

list_like!(SerializeSeq, serialize_element);
list_like!(SerializeTuple, serialize_element);
list_like!(SerializeTupleStruct, serialize_field);
list_like!(SerializeTupleVariant, serialize_field);

macro_rules! struct_like {
    ($trait:ident) => {
        impl ser::$trait for Object<'_> {
            type Ok = ();
            type Error = EncodeError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), EncodeError> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    };
}

struct_like!(SerializeStruct);
struct_like!(SerializeStructVariant);

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        let text = key_text(key)?;
        self.key(Cow::Owned(text));
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.value(value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.close()
    }
}

/// A map's key as text: strings as they are, numbers and booleans as serde_json writes them.
fn key_text<T: Serialize + ?Sized>(key: &T) -> Result<String, EncodeError> {
    if let Ok(text) = key.serialize(TextOnly) {
        return Ok(text);
    }
    let written = to_vec(key)?;
    match written.first() {
        Some(b'0'..=b'9' | b'-' | b't' | b'f') => Ok(String::from_utf8_lossy(&written).into_owned()),
        _ => Err(EncodeError::new("a map key must be a string, a number or a boolean")),
    }
}

/// Takes a string, a character or the name of a variant, and nothing else.
struct TextOnly;

macro_rules! not_text {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, _: $type) -> Result<String, EncodeError> {
            Err(EncodeError::new("not a text"))
        })*
    };
}

impl ser::Serializer for TextOnly {
    type Ok = String;
    type Error = EncodeError;
    type SerializeSeq = ser::Impossible<String, EncodeError>;
    type SerializeTuple = ser::Impossible<String, EncodeError>;
    type SerializeTupleStruct = ser::Impossible<String, EncodeError>;
    type SerializeTupleVariant = ser::Impossible<String, EncodeError>;
    type SerializeMap = ser::Impossible<String, EncodeError>;
    type SerializeStruct = ser::Impossible<String, EncodeError>;
    type SerializeStructVariant = ser::Impossible<String, EncodeError>;

    not_text! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32)
        serialize_f64(f64) serialize_bytes(&[u8]) serialize_unit_struct(&'static str)
    }

    fn serialize_char(self, value: char) -> Result<String, EncodeError> {
        Ok(value.to_string())
    }

    fn serialize_str(self, value: &str) -> Result<String, EncodeError> {
        Ok(value.to_owned())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<String, EncodeError> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<String, EncodeError> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<String, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String, EncodeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<String, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, EncodeError> {
        Err(EncodeError::new("not a text"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, EncodeError> {
        Err(EncodeError::new("not a text"))
    }
}
