//! Takes replies of the server apart.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use redis::Value;
use shiftwork_core::Error;

/// Microseconds between this store object's clock and the server's: 0 but in tests.
#[derive(Debug, Default)]
pub(crate) struct ClockOffset(AtomicI64);

impl ClockOffset {
    pub(crate) fn set(&self, offset: Duration) {
        self.0.store(i64::try_from(offset.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Duration {
        Duration::from_micros(self.micros().unsigned_abs())
    }

    pub(crate) fn micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The store's time from the two parts of a reply of `TIME`.
    pub(crate) fn time(&self, seconds: &Value, micros: &Value) -> Result<Timestamp, Error> {
        let total = integer(seconds)?.saturating_mul(1_000_000) + integer(micros)? + self.micros();
        Timestamp::from_microsecond(total).map_err(|_| unexpected(seconds))
    }
}

/// The time in a script's reply; the script has added the offset already.
pub(crate) fn script_time(seconds: &Value, micros: &Value) -> Result<Timestamp, Error> {
    let micros = integer(seconds)?.saturating_mul(1_000_000) + integer(micros)?;
    Timestamp::from_microsecond(micros).map_err(|_| unexpected(seconds))
}

/// An integer, however it is written.
pub(crate) fn integer(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Int(number) => Some(*number),
        Value::BulkString(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        Value::SimpleString(text) => text.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| unexpected(value))
}

/// The lowest score of a due set, as the whole second from which on it is due; `None` if there is none.
pub(crate) fn due_second(value: &Value) -> Result<Option<i64>, Error> {
    let text = match value {
        Value::BulkString(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Double(score) => score.to_string(),
        Value::Nil => return Ok(None),
        other => return Err(unexpected(other)),
    };
    if text.is_empty() {
        return Ok(None);
    }
    // Scores beyond i64, infinite ones too, saturate.
    text.parse::<f64>().map(|score| Some(score.ceil() as i64)).map_err(|_| unexpected(value))
}

pub(crate) fn array(value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(unexpected(&other)),
    }
}

/// An array of exactly so many items.
pub(crate) fn array_of<const N: usize>(value: Value) -> Result<[Value; N], Error> {
    array(value)?.try_into().map_err(|items: Vec<Value>| unexpected(&Value::Array(items)))
}

pub(crate) fn bytes(value: Value) -> Result<Vec<u8>, Error> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn unexpected(value: &Value) -> Error {
    let shown: String = format!("{value:?}").chars().take(200).collect();
    Error::rejected("the server gave a reply of an unexpected form", shown)
}
