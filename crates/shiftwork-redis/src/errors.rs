//! From what the driver says to core's error: is it worth trying again, and what can be done about it?

use redis::{ErrorKind, RedisError, ServerErrorKind};
use shiftwork_core::Error;

/// Words with which a server says that it can't answer now, but may later; and what to do about it.
const LATER: [(&str, &str); 12] = [
    ("LOADING", "it is loading its data"),
    ("READONLY", "it is a replica; the client will look for the master again"),
    ("MASTERDOWN", "it is a replica whose master is away"),
    ("CLUSTERDOWN", "the cluster is not complete"),
    ("TRYAGAIN", "a slot of the cluster is being moved"),
    ("BUSY", "it is running somebody's slow script"),
    ("OOM", "it is out of memory: raise maxmemory, or free some"),
    ("MISCONF", "it can't save its data to disk: free disk space, or see its log"),
    ("NOREPLICAS", "it has too few replicas"),
    ("UNBLOCKED", "the call was interrupted"),
    ("UNKILLABLE", "it is running somebody's slow script"),
    ("max number of clients", "it has too many clients: raise maxclients"),
];

/// Core's error for an error of the driver. `place` says which server, without credentials.
pub(crate) fn error_of(place: &str, error: &RedisError) -> Error {
    let text = error.to_string();
    if let Some((_, remedy)) = LATER.iter().find(|(word, _)| says(error, &text, word)) {
        return Error::unavailable(format!("{place} can't take this now, {remedy}"), text);
    }
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::NoPerm) => Error::rejected(
            format!(
                "{place} does not permit this; give the user the permissions in the guide's chapter on Redis"
            ),
            text,
        ),
        // `Extension`: a word of the server's that the driver has no name for, WRONGTYPE among them.
        ErrorKind::Server(_) | ErrorKind::Extension => {
            Error::rejected(format!("{place} refused the call"), text)
        }
        ErrorKind::AuthenticationFailed => {
            Error::unavailable(format!("{place} does not accept the user name or password in the URL"), text)
        }
        ErrorKind::InvalidClientConfig => Error::config(format!("{place} can't be used: {text}")),
        ErrorKind::UnexpectedReturnType | ErrorKind::Parse if !error.is_io_error() => {
            Error::rejected(format!("{place} gave a reply of an unexpected form"), text)
        }
        _ if error.is_timeout() => Error::unavailable(format!("{place} did not answer in time"), text),
        _ => Error::unavailable(format!("{place} can't be reached"), text),
    }
}

/// Whether the connection is of no use after this error.
pub(crate) fn ends_connection(error: &RedisError) -> bool {
    let text = error.to_string();
    let moved_on = says(error, &text, "READONLY") || says(error, &text, "MASTERDOWN");
    let answered =
        matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType);
    moved_on || !answered
}

pub(crate) fn is_no_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// An error raised inside a script carries the word in its text, not at its head.
fn says(error: &RedisError, text: &str, word: &str) -> bool {
    error.code() == Some(word)
        || text.contains(&format!("{word} "))
        || (word.contains(' ') && text.contains(word))
}
