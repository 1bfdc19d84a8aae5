//! Database rows. Each has a seal that detects changes.

mod blobs;
mod refs;
mod sessions;

use rusqlite::{Connection, OptionalExtension, Row};

use super::schema::from_sqlite;
use crate::{Error, Result};
pub(super) use blobs::{BlobRow, blob, blob_id, blob_seal, image, insert_blob, replace_blob};
pub(super) use refs::{RefRow, insert_reference, reference, references};
pub(super) use sessions::{
    SessionRow, children, insert_session, save_session, session, session_by_row, sessions,
    sessions_with_prefix, up, used,
};

/// Text or bytes that may be damaged.
type RawColumn = Vec<u8>;

/// Reads one row, if it exists. A row with a wrong seal is damaged, not missing.
pub(super) fn query_one<T>(
    db: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    from: impl FnOnce(&Row<'_>) -> rusqlite::Result<Option<T>>,
) -> Result<Option<T>> {
    let mut statement = db.prepare_cached(sql).map_err(from_sqlite)?;
    let found = statement
        .query_row(values, from)
        .optional()
        .map_err(from_sqlite)?;
    found
        .map(|row| row.ok_or_else(|| Error::damaged("a row")))
        .transpose()
}

pub(super) fn query_all<T>(
    db: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    from: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>,
) -> Result<Vec<T>> {
    let mut statement = db.prepare_cached(sql).map_err(from_sqlite)?;
    let rows = statement.query_map(values, from).map_err(from_sqlite)?;
    rows.map(|row| {
        row.map_err(from_sqlite)?
            .ok_or_else(|| Error::damaged("a row"))
    })
    .collect()
}

pub(super) fn execute(db: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<()> {
    let mut statement = db.prepare_cached(sql).map_err(from_sqlite)?;
    statement.execute(values).map(|_| ()).map_err(from_sqlite)
}

/// A text column; none if it is no longer valid text.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    let bytes = row.get_ref(column)?.as_bytes_or_null()?.unwrap_or_default();
    Ok(String::from_utf8(bytes.to_vec()).ok())
}

/// Converts a time or size, which always fit: the database counts up to 2^63.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn numbers<'a>(numbers: impl IntoIterator<Item = &'a i64>) -> RawColumn {
    numbers
        .into_iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}
