//! Rows of the database, as the store's own types.

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::connect::from_postgres;
use crate::image::decompress;
use crate::refs::Secret;
use crate::{Error, Result, SessionId, SessionInfo, Stream};

/// All sessions, by name, with what they hold.
pub(super) const SESSIONS: &str = "
    SELECT sessions.name, above.name, sessions.created, sessions.used,
        coalesce(held.outputs, 0), coalesce(held.bytes, 0)::bigint
    FROM sessions
    LEFT JOIN sessions AS above ON above.id = sessions.parent
    LEFT JOIN (
        SELECT session, count(*) AS outputs, sum(blobs.byte_size) AS bytes
        FROM outputs JOIN blobs ON blobs.id = outputs.whole GROUP BY session
    ) AS held ON held.session = sessions.id
    ORDER BY sessions.name";

/// A number as the database has it. Times and sizes never come near its limit.
pub(super) fn millis(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the database that is never negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn secret(bytes: Vec<u8>) -> Result<Secret> {
    let bytes = bytes.try_into();
    let bytes = bytes.map_err(|_| Error::damaged("the row of a session"))?;
    Ok(Secret::from_bytes(bytes))
}

pub(super) fn session_info(row: &Row) -> Result<SessionInfo> {
    let parent: Option<String> = row.get(1);
    Ok(SessionInfo {
        session: SessionId::known(row.get(0)),
        parent: parent.map(SessionId::known),
        created: unsigned(row.get(2)),
        used: unsigned(row.get(3)),
        outputs: unsigned(row.get(4)),
        byte_size: unsigned(row.get(5)),
    })
}

/// Makes `parent` the parent of `child`, unless that would make a ring or the child has another
/// parent: then says which.
pub(super) async fn link(
    mut connection: Object,
    child: SessionId,
    parent: SessionId,
    now: i64,
) -> Result<Option<(bool, bool)>> {
    let transaction = connection.transaction().await.map_err(from_postgres)?;
    // Links are rare. One at a time, so that two of them cannot close a ring together.
    let lock = "LOCK TABLE sessions IN SHARE ROW EXCLUSIVE MODE";
    transaction
        .batch_execute(lock)
        .await
        .map_err(from_postgres)?;
    let select = "
        WITH RECURSIVE up AS (
            SELECT id, parent, name FROM sessions WHERE name = $2
            UNION ALL
            SELECT above.id, above.parent, above.name
            FROM sessions AS above JOIN up ON above.id = up.parent
        )
        SELECT EXISTS (SELECT FROM up WHERE name = $1),
            child.parent IS NOT NULL, child.parent IS NOT DISTINCT FROM parent.id
        FROM sessions AS child, sessions AS parent WHERE child.name = $1 AND parent.name = $2";
    let names = (child.as_str(), parent.as_str());
    let row = transaction.query_one(select, &[&names.0, &names.1]).await;
    let row = row.map_err(from_postgres)?;
    let (is_ring, has_parent, is_same): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
    if is_same && !is_ring {
        return Ok(None);
    }
    if is_ring || has_parent {
        return Ok(Some((is_ring, has_parent)));
    }
    let update = "UPDATE sessions AS child SET parent = above.id, owner = above.owner,
             used = greatest(child.used, $3)
         FROM sessions AS above WHERE child.name = $1 AND above.name = $2";
    let updated = transaction
        .execute(update, &[&names.0, &names.1, &now])
        .await;
    updated.map_err(from_postgres)?;
    transaction.commit().await.map_err(from_postgres)?;
    Ok(None)
}

/// Entries of a stream from a position on. A gap is damage.
pub(super) async fn read_entries(
    connection: Object,
    session: SessionId,
    stream: Stream,
    from: u64,
    limit: usize,
) -> Result<Vec<Vec<u8>>> {
    let select = "SELECT position, byte_size, bytes FROM entries
         WHERE session = (SELECT id FROM sessions WHERE name = $1)
             AND stream = $2 AND position >= $3
         ORDER BY position LIMIT $4";
    let select = connection
        .prepare_cached(select)
        .await
        .map_err(from_postgres)?;
    let (number, limit) = (i16::from(stream.number()), millis(limit as u64));
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&session.as_str(), &number, &millis(from), &limit];
    let rows = connection
        .query(&select, &values)
        .await
        .map_err(from_postgres)?;
    let damaged = || Error::damaged(format!("the {}", stream.as_str()));
    let mut entries = Vec::with_capacity(rows.len());
    for (expected, row) in (from..).zip(rows) {
        let entry = unpack(row.get(1), row.get(2));
        let in_place = unsigned(row.get(0)) == expected;
        entries.push(entry.filter(|_| in_place).ok_or_else(damaged)?);
    }
    Ok(entries)
}

fn unpack(byte_size: Option<i64>, bytes: Vec<u8>) -> Option<Vec<u8>> {
    let Some(byte_size) = byte_size else {
        return Some(bytes);
    };
    let mut entry = Vec::new();
    decompress(&bytes, usize::try_from(byte_size).ok()?, &mut entry).then_some(entry)
}
