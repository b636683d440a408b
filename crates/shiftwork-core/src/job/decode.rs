//! From a job's arguments to the handler's type.
//!
//! First strictly, which is fast and nearly always right. If that fails, once more with the tolerance that a shared
//! namespace needs: a Lua script of the Go library writes large integers as `1e+14` and empty lists as `{}`.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde_json::Value;

use super::encode::ArgsError;
use super::rewrite::{Numbers, rewrite};

/// Reads arguments into `T`. The error names the field.
pub fn decode_args<T: DeserializeOwned>(args: Option<&[u8]>) -> Result<T, ArgsError> {
    let text = args.unwrap_or(b"null");
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    match decode_leniently(text) {
        // A struct all of whose fields are optional can be read from nothing.
        Err(_) if args.is_none() => decode_leniently(b"{}").map_err(|error| match error.0 {
            missing if missing.contains("missing field") => {
                ArgsError(format!("{missing} (the job has no args)"))
            }
            other => ArgsError(other),
        }),
        result => result,
    }
}

fn decode_leniently<T: DeserializeOwned>(text: &[u8]) -> Result<T, ArgsError> {
    // Bad UTF-8 and lone surrogates become U+FFFD on this way.
    let text = rewrite(text, Numbers::Keep).map_err(|error| ArgsError(format!("args: {error}")))?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| ArgsError(format!("args: {error}")))?;
    serde_path_to_error::deserialize(Lenient(value)).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { "args".to_owned() } else { format!("args.{path}") };
        ArgsError(format!("{place}: {}", error.into_inner()))
    })
}

/// A value that gives an integer where one is wanted and a whole float is there, and a list where an empty object is.
struct Lenient(Value);

impl Lenient {
    fn whole(&self) -> Option<i128> {
        let Value::Number(number) = &self.0 else { return None };
        let text = number.to_string();
        if let Ok(integer) = text.parse() {
            return Some(integer);
        }
        let float: f64 = text.parse().ok()?;
        (float.fract() == 0.0 && float.abs() < 1e38).then_some(float as i128)
    }
}

impl<'de> IntoDeserializer<'de, serde_json::Error> for Lenient {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! integers {
    ($($method:ident => $visit:ident as $type:ty),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
            match self.whole().and_then(|whole| <$type>::try_from(whole).ok()) {
                Some(integer) => visitor.$visit(integer),
                None => self.0.$method(visitor),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Lenient {
    type Error = serde_json::Error;

    integers! {
        deserialize_i8 => visit_i64 as i64,
        deserialize_i16 => visit_i64 as i64,
        deserialize_i32 => visit_i64 as i64,
        deserialize_i64 => visit_i64 as i64,
        deserialize_i128 => visit_i128 as i128,
        deserialize_u8 => visit_u64 as u64,
        deserialize_u16 => visit_u64 as u64,
        deserialize_u32 => visit_u64 as u64,
        deserialize_u64 => visit_u64 as u64,
        deserialize_u128 => visit_u128 as u128,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Lenient))),
            Value::Object(members) => visitor.visit_map(MapDeserializer::new(
                members.into_iter().map(|(key, value)| (key, Lenient(value))),
            )),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
        match self.0 {
            Value::Object(members) if members.is_empty() => {
                visitor.visit_seq(SeqDeserializer::new(std::iter::empty::<Lenient>()))
            }
            other => Lenient(other).deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, serde_json::Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, serde_json::Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, serde_json::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, serde_json::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, serde_json::Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
        match self.0 {
            // What a unit struct was sent as `{}`: it has no fields either way.
            Value::Object(members) if members.is_empty() => visitor.visit_unit(),
            other => other.deserialize_unit(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool f32 f64 char str string bytes byte_buf map struct identifier ignored_any
    }
}

impl From<ArgsError> for crate::error::Error {
    fn from(error: ArgsError) -> Self {
        Self::invalid_input(error.to_string())
    }
}
