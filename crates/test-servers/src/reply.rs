//! What a server answered: the RESP2 types, and shortcuts for tests that know which one they expect.

use std::fmt;

/// One RESP2 reply. Its `Debug` form shows bytes as text, with escapes where they are not.
#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    /// The null bulk string or the null array.
    Nil,
    /// An integer.
    Int(i64),
    /// A bulk string, byte for byte.
    Bytes(Vec<u8>),
    /// A simple string, such as `OK`.
    Status(String),
    /// An error, such as `WRONGTYPE Operation against a key …`.
    Error(String),
    /// An array.
    List(Vec<Reply>),
}

impl Reply {
    /// The integer, also one that is kept as text (`GET`, `TIME`, scores).
    ///
    /// # Panics
    /// On every other reply.
    #[track_caller]
    pub fn int(&self) -> i64 {
        let text = match self {
            Reply::Int(value) => return *value,
            Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        match text.and_then(|text| text.parse().ok()) {
            Some(value) => value,
            None => panic!("expected an integer, the server replied {self:?}"),
        }
    }

    /// The bulk or simple string as text.
    ///
    /// # Panics
    /// On every other reply, and on bytes that are not UTF-8 (use [`Reply::bytes`]).
    #[track_caller]
    pub fn text(&self) -> &str {
        match self {
            Reply::Status(text) => text,
            Reply::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => panic!("expected text, the server replied {self:?}, which is not UTF-8"),
            },
            other => panic!("expected a string, the server replied {other:?}"),
        }
    }

    /// The bulk or simple string as bytes.
    ///
    /// # Panics
    /// On every other reply.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Reply::Status(text) => text.as_bytes(),
            Reply::Bytes(bytes) => bytes,
            other => panic!("expected a string, the server replied {other:?}"),
        }
    }

    /// The elements of the array.
    ///
    /// # Panics
    /// On every other reply.
    #[track_caller]
    pub fn list(&self) -> &[Reply] {
        match self {
            Reply::List(items) => items,
            other => panic!("expected an array, the server replied {other:?}"),
        }
    }

    /// Whether the server answered with nothing.
    pub fn is_nil(&self) -> bool {
        matches!(self, Reply::Nil)
    }

    /// The message, when the server answered with an error.
    pub fn error(&self) -> Option<&str> {
        match self {
            Reply::Error(message) => Some(message),
            _ => None,
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Nil => f.write_str("nil"),
            Reply::Int(value) => write!(f, "{value}"),
            Reply::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Reply::Status(text) => f.write_str(text),
            Reply::Error(message) => write!(f, "error {message:?}"),
            Reply::List(items) => f.debug_list().entries(items).finish(),
        }
    }
}
