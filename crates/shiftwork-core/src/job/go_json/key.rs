//! Keys of maps: what a value looks like as a key.

use serde::ser::{self, Serialize};

use super::{EncodeError, to_vec};

/// A map's key as text: strings as they are, numbers and booleans as serde_json writes them.
pub(super) fn key_text<T: Serialize + ?Sized>(key: &T) -> Result<String, EncodeError> {
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
pub(super) struct TextOnly;

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
