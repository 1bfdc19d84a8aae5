//! Converts rows of the database, and the queries that return them.

use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::database::from_postgres;
use crate::image::decompress_entry;
use crate::refs::SessionSecret;
use crate::{Error, Result, SessionId, SessionInfo, Stream, StreamEntries};

/// SQL for the time in a parameter or, if that is null, the time of the database, in milliseconds
/// since 1970.
macro_rules! time_or_now {
    ($parameter:literal) => {
        concat!(
            "coalesce(",
            $parameter,
            "::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
        )
    };
}

/// All sessions by name, with the number and the size of their outputs.
pub(super) const SESSIONS: &str = "
    SELECT sessions.name, above.name, sessions.created, sessions.used,
        coalesce(held.outputs, 0), coalesce(held.bytes, 0)::bigint
    FROM trimtab.sessions
    LEFT JOIN trimtab.sessions AS above ON above.id = sessions.parent
    LEFT JOIN (
        SELECT session, count(*) AS outputs, sum(blobs.byte_size) AS bytes
        FROM trimtab.outputs JOIN trimtab.blobs ON blobs.id = outputs.whole GROUP BY session
    ) AS held ON held.session = sessions.id
    ORDER BY sessions.name";

/// The advisory lock of whoever links sessions.
const LINK_LOCK: i64 = 0x7472_696d_7461_6232;

/// Values of a statement.
pub(super) type SqlValues<'v> = &'v [&'v (dyn ToSql + Sync)];

/// A number in the form of the database. Times and sizes are far below its limit.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the database that is never negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Text that is stored as bytes.
pub(super) fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::damaged("the row of a session"))
}

pub(super) fn session_id(bytes: Vec<u8>) -> Result<SessionId> {
    text(bytes).map(SessionId::known)
}

pub(super) fn secret(bytes: Vec<u8>) -> Result<SessionSecret> {
    let bytes = bytes.try_into();
    let bytes = bytes.map_err(|_| Error::damaged("the row of a session"))?;
    Ok(SessionSecret::from_bytes(bytes))
}

/// The secret of the store.
pub(super) async fn store_secret(connection: Object) -> Result<[u8; 32]> {
    let row = query_one(&connection, "SELECT secret FROM trimtab.store", &[]).await?;
    let secret = row.map(|row| row.get::<_, Vec<u8>>(0)).unwrap_or_default();
    let damaged = |_| Error::damaged("the secret of the store");
    secret.try_into().map_err(damaged)
}

pub(super) fn session_info(row: &Row) -> Result<SessionInfo> {
    let parent: Option<Vec<u8>> = row.get(1);
    Ok(SessionInfo {
        session: session_id(row.get(0))?,
        parent: parent.map(session_id).transpose()?,
        created: unsigned(row.get(2)),
        used: unsigned(row.get(3)),
        outputs: unsigned(row.get(4)),
        byte_size: unsigned(row.get(5)),
    })
}

/// Runs a prepared query that returns at most one row.
pub(super) async fn query_one(
    connection: &Object,
    select: &str,
    values: SqlValues<'_>,
) -> Result<Option<Row>> {
    let select = connection.prepare_cached(select).await;
    let select = select.map_err(from_postgres)?;
    let found = connection.query_opt(&select, values).await;
    found.map_err(from_postgres)
}

/// Runs a prepared query.
pub(super) async fn query_all(
    connection: &Object,
    select: &str,
    values: SqlValues<'_>,
) -> Result<Vec<Row>> {
    let select = connection.prepare_cached(select).await;
    let select = select.map_err(from_postgres)?;
    let found = connection.query(&select, values).await;
    found.map_err(from_postgres)
}

/// Makes `parent` the parent of `child`. Returns why that is impossible, if it is: whether it would
/// make a ring, and whether the child has another parent.
pub(super) async fn link(
    mut connection: Object,
    child: SessionId,
    parent: SessionId,
) -> Result<Option<(bool, bool)>> {
    let transaction = connection.transaction().await.map_err(from_postgres)?;
    // Links are rare. One at a time, so that two of them cannot close a ring together.
    let lock = format!("SELECT pg_advisory_xact_lock({LINK_LOCK})");
    let locked = transaction.batch_execute(&lock).await;
    locked.map_err(from_postgres)?;
    let select = "
        WITH RECURSIVE up AS (
            SELECT id, parent, name FROM trimtab.sessions WHERE name = $2
            UNION
            SELECT above.id, above.parent, above.name
            FROM trimtab.sessions AS above JOIN up ON above.id = up.parent
        )
        SELECT EXISTS (SELECT FROM up WHERE name = $1),
            child.parent IS NOT NULL, child.parent IS NOT DISTINCT FROM parent.id
        FROM trimtab.sessions AS child, trimtab.sessions AS parent
        WHERE child.name = $1 AND parent.name = $2";
    let (below, above) = (child.as_str().as_bytes(), parent.as_str().as_bytes());
    let row = transaction.query_opt(select, &[&below, &above]).await;
    // Another process may have removed one of them.
    let row = row.map_err(from_postgres)?.ok_or(Error::NotFound)?;
    let (is_ring, has_parent, is_same): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
    if is_same && !is_ring {
        return Ok(None);
    }
    if is_ring || has_parent {
        return Ok(Some((is_ring, has_parent)));
    }
    let update = "UPDATE trimtab.sessions AS child SET parent = above.id, owner = above.owner
         FROM trimtab.sessions AS above WHERE child.name = $1 AND above.name = $2";
    let updated = transaction.execute(update, &[&below, &above]).await;
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
    let select = "SELECT position, byte_size, bytes FROM trimtab.entries
         WHERE session = (SELECT id FROM trimtab.sessions WHERE name = $1)
             AND stream = $2 AND position >= $3
         ORDER BY position LIMIT $4";
    let (number, limit) = (i16::from(stream.number()), signed(limit as u64));
    let values: SqlValues<'_> = &[&session.as_str().as_bytes(), &number, &signed(from), &limit];
    let rows = query_all(&connection, select, values).await?;
    entries_in(rows.iter(), stream, from)
}

/// Entries of the log and the journal from these positions on, of the same moment.
pub(super) async fn read_streams(
    connection: Object,
    session: SessionId,
    (log, journal): (u64, u64),
    limit: usize,
) -> Result<StreamEntries> {
    let select = "WITH asked AS (SELECT id FROM trimtab.sessions WHERE name = $1)
         SELECT position, byte_size, bytes, stream FROM (
             (SELECT * FROM trimtab.entries
              WHERE session = (SELECT id FROM asked) AND stream = 0 AND position >= $2
              ORDER BY position LIMIT $4)
             UNION ALL
             (SELECT * FROM trimtab.entries
              WHERE session = (SELECT id FROM asked) AND stream = 1 AND position >= $3
              ORDER BY position LIMIT $4)
         ) AS both_streams
         ORDER BY stream, position";
    let name = session.as_str().as_bytes();
    let limit = signed(limit as u64);
    let values: SqlValues<'_> = &[&name, &signed(log), &signed(journal), &limit];
    let rows = query_all(&connection, select, values).await?;
    let of = |stream: Stream, from| {
        let number = i16::from(stream.number());
        let rows = rows
            .iter()
            .filter(move |row| row.get::<_, i16>(3) == number);
        entries_in(rows, stream, from)
    };
    Ok(StreamEntries {
        log: of(Stream::Log, log)?,
        journal: of(Stream::Journal, journal)?,
    })
}

/// The entries in rows of position, size and bytes.
fn entries_in<'r>(
    rows: impl Iterator<Item = &'r Row>,
    stream: Stream,
    from: u64,
) -> Result<Vec<Vec<u8>>> {
    let damaged = || Error::damaged(format!("the {}", stream.as_str()));
    let mut entries = Vec::new();
    for (expected, row) in (from..).zip(rows) {
        let entry = decompress_entry(row.get(1), row.get(2));
        let in_place = unsigned(row.get(0)) == expected;
        entries.push(entry.filter(|_| in_place).ok_or_else(damaged)?);
    }
    Ok(entries)
}
