//! Data of the store as a whole: its secret, the removal counter, leases.

use std::time::Duration;

use rusqlite::{Connection, params};

use super::rows::{self, signed};
use super::schema::from_sqlite;
use crate::collect::millis;
use crate::refs::SessionSecret;
use crate::{Error, Result, digest};

pub(super) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS meta (
        name TEXT PRIMARY KEY,
        value BLOB NOT NULL,
        seal BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- Sessions that a process has in memory, and until when, in milliseconds since 1970.
    CREATE TABLE IF NOT EXISTS leases (
        session INTEGER PRIMARY KEY,
        until INTEGER NOT NULL
    ) STRICT;
";

const SECRET: &str = "secret";
const REMOVALS: &str = "removals";
/// When the clock was looked at last, and when it jumped last.
const CLOCK: &str = "clock";
/// A change of the time between two looks that may be a wrong clock. If nothing looked at it for so
/// long, ages start again, which only keeps sessions for longer.
const JUMP: Duration = Duration::from_hours(7 * 24);

/// True if the tables and the secret exist.
pub(super) fn is_complete(db: &Connection) -> Result<bool> {
    Ok(has_tables(db)? && value(db, SECRET)?.is_some())
}

/// False for a store that could not be completed, for example on a full disk.
fn has_tables(db: &Connection) -> Result<bool> {
    let count = "SELECT count(*) FROM sqlite_schema WHERE name IN ('meta', 'leases')";
    let count = rows::query_one(db, count, [], |row| row.get::<_, i64>(0).map(Some))?;
    Ok(count == Some(2))
}

/// Creates missing tables and a missing secret. A damaged secret is not replaced, because data may
/// depend on it.
pub(super) fn complete(db: &Connection) -> Result<()> {
    db.execute_batch(TABLES).map_err(from_sqlite)?;
    if value(db, SECRET)?.is_some() {
        return Ok(());
    }
    set_secret(db, SessionSecret::random()?.as_bytes())
}

/// The secret, if the store has one.
pub(super) fn secret(db: &Connection) -> Result<Option<[u8; 32]>> {
    if !has_tables(db)? {
        return Ok(None);
    }
    let secret = value(db, SECRET)?.map(<[u8; 32]>::try_from).transpose();
    secret.map_err(|_| Error::damaged("the secret"))
}

pub(super) fn set_secret(db: &Connection, secret: &[u8; 32]) -> Result<()> {
    set_value(db, SECRET, secret)
}

/// The removal counter.
pub(super) fn removals(db: &Connection) -> Result<u64> {
    let count = value(db, REMOVALS)?.and_then(|bytes| bytes.try_into().ok());
    Ok(count.map_or(0, u64::from_le_bytes))
}

/// Records that the clock shows `now`. Returns since when it has not jumped, as far as this record
/// shows; at first, the newest use of a session stands for the last look at the clock.
pub(super) fn look_at_clock(db: &Connection, now: u64, newest: u64) -> Result<u64> {
    if !has_tables(db)? {
        complete(db)?;
    }
    let known = value(db, CLOCK)?.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    let (last, since) = known.map_or((newest, 0), |bytes| {
        let [last, since] = [0, 8].map(|at| bytes.get(at..at + 8).unwrap_or_default());
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        (number(last), number(since))
    });
    let has_jumped = now.abs_diff(last) > millis(JUMP);
    let since = if has_jumped { now } else { since };
    let record = [now.to_le_bytes(), since.to_le_bytes()].concat();
    set_value(db, CLOCK, &record)?;
    Ok(since)
}

/// Increments the removal counter, in the transaction that removes something.
pub(super) fn note_removal(db: &Connection) -> Result<()> {
    if !has_tables(db)? {
        complete(db)?;
    }
    let count = removals(db)?.wrapping_add(1);
    set_value(db, REMOVALS, &count.to_le_bytes())
}

/// Protects a session from collection until a time.
pub(super) fn lease(db: &Connection, session: i64, until: u64) -> Result<()> {
    let insert = "INSERT OR REPLACE INTO leases (session, until) VALUES (?1, ?2)";
    rows::execute(db, insert, params![session, signed(until)])
}

/// The sessions protected from collection at a time.
pub(super) fn leased(db: &Connection, now: u64) -> Result<Vec<i64>> {
    if !has_tables(db)? {
        return Ok(Vec::new());
    }
    let select = "SELECT session FROM leases WHERE until > ?1";
    rows::query_all(db, select, [signed(now)], |row| row.get(0).map(Some))
}

/// Removes expired leases.
pub(super) fn remove_expired_leases(db: &Connection, now: u64) -> Result<()> {
    rows::execute(db, "DELETE FROM leases WHERE until <= ?1", [signed(now)])
}

fn value(db: &Connection, name: &str) -> Result<Option<Vec<u8>>> {
    let select = "SELECT value, seal FROM meta WHERE name = ?1";
    rows::query_one(db, select, [name], |row| {
        let value: Vec<u8> = row.get(0)?;
        let sealed: Vec<u8> = row.get(1)?;
        let is_whole = sealed == digest::seal(&[name.as_bytes(), &value]);
        Ok(is_whole.then_some(value))
    })
}

fn set_value(db: &Connection, name: &str, value: &[u8]) -> Result<()> {
    let insert = "INSERT OR REPLACE INTO meta (name, value, seal) VALUES (?1, ?2, ?3)";
    let seal = digest::seal(&[name.as_bytes(), value]);
    rows::execute(db, insert, params![name, value, seal])
}

/// The end of a lease of `time`.
pub(super) fn lease_end(now: u64, time: Duration) -> u64 {
    now.saturating_add(millis(time))
}
