//! Logs and journals: entries by position, append-only.

use rusqlite::{Connection, params};

use super::rows::{self, SessionRow, signed, unsigned};
use crate::digest;
use crate::image::{compress_entry, decompress_entry};
use crate::{Error, Result, SessionId, Stream};

/// A stored entry.
pub(super) struct PackedEntry {
    /// The size before compression; none if it is not compressed.
    byte_size: Option<i64>,
    bytes: Vec<u8>,
    /// The digest of the uncompressed entry.
    digest: [u8; 32],
}

pub(super) fn pack(entry: &[u8]) -> PackedEntry {
    let (byte_size, bytes) = compress_entry(entry);
    PackedEntry {
        byte_size,
        bytes,
        digest: digest::of(entry),
    }
}

/// The place of an entry: session number, stream, position.
pub(super) type EntryPosition = (i64, Stream, i64);

/// Binds an entry to its place, so that entries cannot be swapped.
fn seal((session, stream, position): EntryPosition, digest: &[u8; 32]) -> [u8; 8] {
    let place = [session, i64::from(stream.number()), position];
    let place: Vec<u8> = place
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    digest::seal(&[&place, digest])
}

/// Appends entries if the stream is at the expected position. Advances the position in `session`,
/// which the caller saves.
pub(super) fn append(
    db: &Connection,
    session: &mut SessionRow,
    (stream, expected): (Stream, u64),
    entries: &[PackedEntry],
) -> Result<()> {
    // The position in the row detects concurrent writers: of two with the same position, one fails.
    let actual = position_in(session, stream);
    if unsigned(*actual) != expected {
        return Err(Error::Conflict {
            stream: stream.as_str(),
            expected,
            actual: unsigned(*actual),
        });
    }
    let first = *actual;
    *actual += signed(entries.len() as u64);
    for (position, entry) in (first..).zip(entries) {
        insert(db, (session.row, stream, position), entry)?;
    }
    Ok(())
}

pub(super) fn insert(db: &Connection, place: EntryPosition, entry: &PackedEntry) -> Result<()> {
    let insert = "INSERT INTO entries (session, stream, position, byte_size, seal, bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (session, stream, position) = place;
    let seal = seal(place, &entry.digest);
    let values = params![
        session,
        stream.number(),
        position,
        entry.byte_size,
        seal,
        entry.bytes
    ];
    rows::execute(db, insert, values)
}

fn position_in(session: &mut SessionRow, stream: Stream) -> &mut i64 {
    let [log, journal] = &mut session.positions;
    match stream {
        Stream::Log => log,
        Stream::Journal => journal,
    }
}

pub(super) fn position(db: &Connection, session: &SessionId, stream: Stream) -> Result<u64> {
    let (log, journal) = both_positions(db, session)?;
    Ok(match stream {
        Stream::Log => log,
        Stream::Journal => journal,
    })
}

/// The positions of the log and the journal of each session.
pub(super) fn positions(db: &Connection, sessions: &[SessionId]) -> Result<Vec<(u64, u64)>> {
    let sessions = sessions.iter();
    sessions
        .map(|session| both_positions(db, session))
        .collect()
}

fn both_positions(db: &Connection, session: &SessionId) -> Result<(u64, u64)> {
    let session = rows::session(db, session)?;
    Ok(session.map_or((0, 0), |session| session.positions.map(unsigned).into()))
}

/// One stored entry, if it is intact.
pub(super) fn entry(db: &Connection, place: EntryPosition) -> Result<Option<PackedEntry>> {
    let select = "SELECT byte_size, seal, bytes FROM entries
         WHERE session = ?1 AND stream = ?2 AND position = ?3";
    let (session, stream, position) = place;
    rows::query_one(
        db,
        select,
        params![session, stream.number(), position],
        |row| {
            let sealed: Vec<u8> = row.get(1)?;
            let (byte_size, bytes): (_, Vec<u8>) = (row.get(0)?, row.get(2)?);
            let digest = decompress_entry(byte_size, bytes.clone()).map(|entry| digest::of(&entry));
            let digest = digest.filter(|digest| sealed == seal(place, digest));
            Ok(digest.map(|digest| PackedEntry {
                byte_size,
                bytes,
                digest,
            }))
        },
    )
}

pub(super) fn read(
    db: &Connection,
    session: &SessionId,
    stream: Stream,
    from: u64,
    limit: usize,
) -> Result<Vec<Vec<u8>>> {
    let Some(mut session) = rows::session(db, session)? else {
        return Ok(Vec::new());
    };
    let left = unsigned(*position_in(&mut session, stream)).saturating_sub(from);
    let select = "SELECT position, byte_size, seal, bytes FROM entries
         WHERE session = ?1 AND stream = ?2 AND position >= ?3 ORDER BY position LIMIT ?4";
    let limit = signed(limit as u64);
    let values = params![session.row, stream.number(), signed(from), limit];
    let mut expected = signed(from);
    let entries = rows::query_all(db, select, values, |row| {
        let place = (session.row, stream, row.get(0)?);
        let sealed: Vec<u8> = row.get(2)?;
        let entry = decompress_entry(row.get(1)?, row.get(3)?);
        // A gap in the positions is damage, even if each entry is intact.
        let whole =
            entry.filter(|entry| place.2 == expected && sealed == seal(place, &digest::of(entry)));
        expected += 1;
        Ok(whole)
    });
    let damaged = || Error::damaged(format!("the {}", stream.as_str()));
    match entries {
        // The session's row says how many entries there must be.
        Ok(entries) if (entries.len() as u64) < left.min(unsigned(limit)) => Err(damaged()),
        Err(Error::Damaged { .. }) => Err(damaged()),
        entries => entries,
    }
}
