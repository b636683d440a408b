//! The file's format: numbered migrations, each applied once, in order.
//!
//! A file says in its header that it is ours (`application_id`) and which migrations it has seen (`user_version`). A file
//! that a newer program has written is refused: an older one can't know what it would break.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use shiftwork_core::Error;

use crate::errors::not_opened;
use crate::transaction::{from_sql, to_sql};

/// "SWrk".
const APPLICATION_ID: i32 = 0x5357_726b;

/// One file each; number `n` is at index `n - 1`. Never change one that was released: add another.
const MIGRATIONS: [&str; 1] = [include_str!("../migrations/0001_initial.sql")];

/// Brings the file to this program's format. Safe when several processes do it at once.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    let failed = |error: rusqlite::Error| not_opened(path, &error);
    if version(connection).map_err(failed)? == MIGRATIONS.len() && is_ours(connection).map_err(failed)? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let seen = version(&transaction).map_err(failed)?;
    if !is_ours(&transaction).map_err(failed)? && !is_empty(&transaction).map_err(failed)? {
        return Err(Error::config(format!(
            "{} is a SQLite file of some other program; name another one, or a path where none is yet",
            path.display()
        )));
    }
    if seen > MIGRATIONS.len() {
        return Err(Error::config(format!(
            "{} was written by a newer Shiftwork (format {seen}, this program knows formats up to {}); update this program",
            path.display(),
            MIGRATIONS.len()
        )));
    }
    for migration in &MIGRATIONS[seen..] {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.pragma_update(None, "user_version", to_sql(MIGRATIONS.len())).map_err(failed)?;
    transaction.commit().map_err(failed)
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map(from_sql)
}

fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(id == APPLICATION_ID)
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0)
}
