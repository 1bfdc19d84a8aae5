//! Rows of sessions.

use std::collections::HashSet;

use rusqlite::{Connection, Row, params};

use super::{RawColumn, execute, numbers, query_all, query_one, signed, text, unsigned};
use crate::refs::SessionSecret;
use crate::{Result, SessionId, digest};

pub(in crate::folder) struct SessionRow {
    pub row: i64,
    pub id: SessionId,
    pub secret: SessionSecret,
    pub parent: Option<i64>,
    /// The root session of its tree.
    pub owner: i64,
    pub created: u64,
    pub used: u64,
    /// The number of puts so far.
    pub puts: i64,
    /// The number of entries per stream.
    pub positions: [i64; 2],
}

const SESSION: &str =
    "SELECT id, name, secret, parent, owner, created, used, puts, log, journal, seal
     FROM sessions";

pub(in crate::folder) fn session(db: &Connection, id: &SessionId) -> Result<Option<SessionRow>> {
    query_one(
        db,
        &format!("{SESSION} WHERE name = ?1"),
        [id.as_str()],
        session_from,
    )
}

pub(in crate::folder) fn session_by_row(db: &Connection, row: i64) -> Result<Option<SessionRow>> {
    query_one(db, &format!("{SESSION} WHERE id = ?1"), [row], session_from)
}

pub(in crate::folder) fn sessions(db: &Connection) -> Result<Vec<SessionRow>> {
    query_all(db, &format!("{SESSION} ORDER BY name"), [], session_from)
}

/// The sessions whose names start with `prefix`, by name.
pub(in crate::folder) fn sessions_with_prefix(
    db: &Connection,
    prefix: &str,
) -> Result<Vec<SessionRow>> {
    // A range of names, so that the index finds them. No name has a character after the last one.
    let range = "WHERE name >= ?1 AND name < ?1 || char(0x10FFFF) ORDER BY name";
    query_all(db, &format!("{SESSION} {range}"), [prefix], session_from)
}

/// A session and its parents, from the bottom up.
pub(in crate::folder) fn up(db: &Connection, id: &SessionId) -> Result<Vec<SessionRow>> {
    let mut chain: Vec<SessionRow> = Vec::new();
    // A damaged chain can be cyclic.
    let mut seen = HashSet::new();
    let mut next = session(db, id)?;
    while let Some(row) = next.take_if(|row| seen.insert(row.row)) {
        if let Some(parent) = row.parent {
            next = session_by_row(db, parent)?;
        }
        chain.push(row);
    }
    Ok(chain)
}

/// The direct children of a session.
pub(in crate::folder) fn children(db: &Connection, row: i64) -> Result<Vec<SessionRow>> {
    query_all(
        db,
        &format!("{SESSION} WHERE parent = ?1"),
        [row],
        session_from,
    )
}

/// The session, created if necessary and marked as used. The caller saves it.
pub(in crate::folder) fn used(db: &Connection, id: &SessionId, now: u64) -> Result<SessionRow> {
    if let Some(mut row) = session(db, id)? {
        // The clock may go back. The last use never does, or collection would take the session for
        // old.
        row.used = row.used.max(now);
        return Ok(row);
    }
    insert_session(db, id, SessionSecret::random()?, now)
}

/// Creates a session with the given secret. The caller saves it.
pub(in crate::folder) fn insert_session(
    db: &Connection,
    id: &SessionId,
    secret: SessionSecret,
    now: u64,
) -> Result<SessionRow> {
    // The seal depends on the number of the row, which is known only after the insert.
    let insert = "INSERT INTO sessions (name, secret, created, used, puts, log, journal, seal)
         VALUES (?1, ?2, 0, 0, 0, 0, 0, x'')";
    execute(db, insert, params![id.as_str(), secret.as_bytes()])?;
    let row = db.last_insert_rowid();
    Ok(SessionRow {
        row,
        id: id.clone(),
        secret,
        parent: None,
        owner: row,
        created: now,
        used: now,
        puts: 0,
        positions: [0, 0],
    })
}

pub(in crate::folder) fn save_session(db: &Connection, row: &SessionRow) -> Result<()> {
    let update = "UPDATE sessions SET parent = ?2, owner = ?3, created = ?4, used = ?5, puts = ?6,
         log = ?7, journal = ?8, seal = ?9 WHERE id = ?1";
    let [log, journal] = row.positions;
    let values = params![
        row.row,
        row.parent,
        row.owner,
        signed(row.created),
        signed(row.used),
        row.puts,
        log,
        journal,
        session_seal(row),
    ];
    execute(db, update, values)
}

fn session_from(row: &Row<'_>) -> rusqlite::Result<Option<SessionRow>> {
    let secret: Option<[u8; 32]> = row.get::<_, RawColumn>(2)?.try_into().ok();
    let Some((name, secret)) = text(row, 1)?.zip(secret.map(SessionSecret::from_bytes)) else {
        return Ok(None);
    };
    let found = SessionRow {
        row: row.get(0)?,
        id: SessionId::known(name),
        secret,
        parent: row.get(3)?,
        owner: row.get(4)?,
        created: unsigned(row.get(5)?),
        used: unsigned(row.get(6)?),
        puts: row.get(7)?,
        positions: [row.get(8)?, row.get(9)?],
    };
    let seal: RawColumn = row.get(10)?;
    Ok((seal == session_seal(&found)).then_some(found))
}

fn session_seal(row: &SessionRow) -> [u8; 8] {
    let [log, journal] = row.positions;
    let parent = row.parent.unwrap_or(-1);
    let times = [signed(row.created), signed(row.used)];
    let rest = [row.row, parent, row.owner, row.puts, log, journal];
    let numbers = numbers(times.iter().chain(&rest));
    digest::seal(&[&numbers, row.id.as_str().as_bytes(), row.secret.as_bytes()])
}
