//! What SQLite reports, as the errors of core.

use std::path::Path;

use rusqlite::ErrorCode;
use shiftwork_core::Error;

/// Short for what all code inside a transaction returns.
pub(crate) type SqlResult<T> = rusqlite::Result<T>;

/// An error inside a transaction. What may pass by itself (a full disk that somebody clears, another program that holds
/// the file) counts as out of reach, so that a finished job is tried again and not forgotten.
pub(crate) fn failed(error: &rusqlite::Error) -> Error {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            Error::unavailable("the disk with the store's file is full; make room on it", text)
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::unavailable("another program keeps the store's file locked", text)
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory | ErrorCode::OperationInterrupted) => {
            Error::unavailable("the store's file can't be read or written", text)
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            Error::rejected("the store's file is not writable for this user", text)
        }
        Some(ErrorCode::DatabaseCorrupt) => Error::rejected(
            "the store's file is damaged; restore it, or save what `sqlite3 .recover` finds",
            text,
        ),
        _ => Error::rejected("the store refused", text),
    }
}

/// An error on opening the file.
pub(crate) fn not_opened(path: &Path, error: &rusqlite::Error) -> Error {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            Error::config(format!("{path} is no SQLite file; name another one, or a path where none is yet"))
        }
        Some(ErrorCode::CannotOpen) => Error::config(format!(
            "{path} can't be opened or created ({error}); check that its directory exists and may be written to"
        )),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            Error::config(format!("{path} is not writable for this user ({error}); change its mode or owner"))
        }
        _ => failed(error).context(format!("{path} can't be opened")),
    }
}

/// The thread that works on the file is no more.
pub(crate) fn thread_ended() -> Error {
    Error::unavailable("the thread that works on the store's file has ended", "it panicked; see the log")
}
