//! Connections to the file, and how they are set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use shiftwork_core::Error;

use crate::errors::{SqlResult, not_opened};
use crate::migrations::migrate;

/// Only programs that are not ours, and take no turns, can make us wait for a lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// 64 MiB, in KiB as SQLite wants it: the hot ends of the queues stay in memory.
const CACHE_KIB: i64 = 64 * 1024;
/// Pages written before a commit moves them from the log into the file. With fewer, a busy queue's pages are moved
/// over and over.
const CHECKPOINT_PAGES: i64 = 8000;
/// All statements that there are.
const STATEMENTS: usize = 128;

/// Opens or creates the file, or one in memory, and brings it to this program's format.
pub(crate) fn for_writing(path: Option<&Path>) -> Result<Connection, Error> {
    let name = path.unwrap_or(Path::new(":memory:"));
    let failed = |error: rusqlite::Error| not_opened(name, &error);
    let mut connection = match path {
        Some(path) => Connection::open(path),
        None => Connection::open_in_memory(),
    }
    .map_err(failed)?;
    set_up(&connection).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(failed)?;
    migrate(&mut connection, name)?;
    Ok(connection)
}

/// Opens a file that [`for_writing`] has made ready.
pub(crate) fn for_reading(path: &Path) -> Result<Connection, Error> {
    let failed = |error: rusqlite::Error| not_opened(path, &error);
    // Without SQLITE_OPEN_READ_ONLY: a reader of a write-ahead log has to write to its shared memory.
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failed)?;
    set_up(&connection).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(connection)
}

fn set_up(connection: &Connection) -> SqlResult<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // SQLite would else plan a statement anew whenever a parameter changes that is compared with an indexed column, in case
    // statistics favour another plan. There is one sensible plan for each of ours, and planning costs more than running it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}
