//! The one error type of the library: opaque, with predicates; what went wrong inside stays private.
//!
//! An error names the thing, the value and the remedy. Code that has to react asks a predicate
//! ([`Error::is_unavailable`], [`Error::is_invalid_input`]); nobody matches on variants, so they may grow.

use std::error::Error as StdError;
use std::fmt;

/// A boxed error of any kind: what handlers may return and what [`crate::Result`] carries by default.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// What can go wrong when jobs are enqueued, claimed or looked after.
pub struct Error(Box<Repr>);

struct Repr {
    kind: Kind,
    message: String,
    source: Option<BoxError>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    InvalidInput,
    Config,
    Unavailable,
    Rejected,
}

impl Error {
    /// The caller's input can't be accepted; nothing was stored. The message says what to change.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidInput, message.into(), None)
    }

    /// A URL, option or registration is wrong. The message says what to write instead.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(Kind::Config, message.into(), None)
    }

    /// The store could not be reached or did not answer in time; the same call may succeed later.
    /// Whether the call took effect is not known.
    pub fn unavailable(message: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::new(Kind::Unavailable, message.into(), Some(source.into()))
    }

    /// The store answered and refused; the same call will be refused again until somebody mends the cause.
    pub fn rejected(message: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::new(Kind::Rejected, message.into(), Some(source.into()))
    }

    fn new(kind: Kind, message: String, source: Option<BoxError>) -> Self {
        Self(Box::new(Repr { kind, message, source }))
    }

    /// The same error with a sentence in front.
    pub fn context(mut self, sentence: impl fmt::Display) -> Self {
        self.0.message = format!("{sentence}: {}", self.0.message);
        self
    }

    /// Whether the store was out of reach, so that trying again later makes sense.
    pub fn is_unavailable(&self) -> bool {
        self.0.kind == Kind::Unavailable
    }

    /// Whether the store answered but refused the call (wrong type of a key, no permission, and the like).
    pub fn is_rejected(&self) -> bool {
        self.0.kind == Kind::Rejected
    }

    /// Whether the arguments of the call were at fault (job name, args, payload size, time).
    pub fn is_invalid_input(&self) -> bool {
        self.0.kind == Kind::InvalidInput
    }

    /// Whether a URL, an option or a registration was at fault.
    pub fn is_config(&self) -> bool {
        self.0.kind == Kind::Config
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        // The source is part of the sentence: `main` prints errors without walking the chain.
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

/// Same as `Display`: `fn main() -> shiftwork::Result` shows errors through `Debug`, and people read them.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {}

/// The text of an error and of everything below it, each part once, joined by `": "`.
pub(crate) fn full_text(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many error types already print their source.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
