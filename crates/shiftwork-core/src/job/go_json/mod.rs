//! JSON as Go's `encoding/json` writes it, from any `serde::Serialize`.
//!
//! Keys of maps *and* structs are sorted by their bytes: the arguments of a Go job are a map, and a Rust struct has to come
//! out as the same map would. Source of the rules: the wire format's golden vectors, measured from Go 1.22 to 1.26.

mod compound;
mod key;
mod text;

use std::fmt::Display;

use serde::ser::{self, Serialize};

use compound::{List, Object};
pub(super) use compound::{Member, close_object};
use text::write_f32;
pub(super) use text::{write_f64, write_string, write_text};

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
