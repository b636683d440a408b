//! Names of job types, checked once.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Endings that the layout in Redis uses for a queue's own bookkeeping: a job type `x:lock` would collide with the lock of
/// the job type `x`.
const RESERVED_ENDINGS: [&str; 5] = [":lock", ":lock_info", ":paused", ":max_concurrency", ":inprogress"];

/// The name of a job type, which is also the name of its queue. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName(Arc<str>);

/// A name that no job type can have. Says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no name.
    #[error("the job name is empty; give the job type a name, such as \"send_email\"")]
    Empty,
    /// Pools write their job names to the store as one list with commas.
    #[error(
        "job name {0:?} contains a comma, which separates job names in the store; write '-' or '_' instead"
    )]
    Comma(String),
    /// See [`JobName::new`].
    #[error(
        "job name {0:?} ends in {1:?}, which the store uses for the bookkeeping of a queue; choose another ending"
    )]
    ReservedEnding(String, &'static str),
}

impl JobName {
    /// Checks and takes a name: not empty, no comma, and none of the endings `:lock`, `:lock_info`, `:paused`,
    /// `:max_concurrency` and `:inprogress`.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.contains(',') {
            return Err(NameError::Comma(name.to_owned()));
        }
        if let Some(ending) = RESERVED_ENDINGS.into_iter().find(|ending| name.ends_with(ending)) {
            return Err(NameError::ReservedEnding(name.to_owned(), ending));
        }
        Ok(Self(Arc::from(name)))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for JobName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for JobName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for JobName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a52_names_that_break_the_layout_are_refused_and_the_error_names_them() {
        assert_eq!(JobName::new(""), Err(NameError::Empty));
        for name in
            ["a,b", "x:lock", "x:lock_info", "x:paused", "x:max_concurrency", "x:pool:inprogress", ":lock"]
        {
            let error = JobName::new(name).unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?}")), "{error}");
        }
        for name in ["send_email", "lock", "a:b", "x:locks", "{tag}:x", "日本", "a b"] {
            assert_eq!(&*JobName::new(name).unwrap(), name);
        }
    }
}
