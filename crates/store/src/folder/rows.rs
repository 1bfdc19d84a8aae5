//! Rows of sessions, refs and blobs. Each carries a seal, so that a changed row is noticed.

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::disk::is_random_name;
use super::image::{Body, Image};
use super::outline::Outline;
use super::schema::from_sqlite;
use crate::digest::{self, Digest};
use crate::refs::Secret;
use crate::{Error, Labels, Result, SessionId};

/// More sessions above one another than anybody needs; a damaged chain ends here.
const DEEPEST: usize = 64;

/// Text or bytes that may have been damaged.
type Bytes = Vec<u8>;

pub(super) struct SessionRow {
    pub row: i64,
    pub id: SessionId,
    pub secret: Secret,
    pub parent: Option<i64>,
    /// The session at the top of its tree.
    pub owner: i64,
    pub created: u64,
    pub used: u64,
    /// How many outputs it has been given.
    pub puts: i64,
    /// How many entries its streams have, by the stream's number.
    pub positions: [i64; 2],
}

pub(super) struct RefRow {
    pub session: i64,
    pub id: String,
    pub number: i64,
    pub blob: i64,
    pub text: Option<i64>,
    pub labels: Labels,
    pub created: u64,
}

/// A blob without its image.
pub(super) struct BlobRow {
    pub outline: Outline,
    pub file: Option<String>,
}

const SESSION: &str =
    "SELECT id, name, secret, parent, owner, created, used, puts, log, journal, seal
     FROM sessions";
const REF: &str = "SELECT session, id, number, blob, text, call, tool, media_type, created, seal
     FROM refs";

// Sessions

pub(super) fn session(db: &Connection, id: &SessionId) -> Result<Option<SessionRow>> {
    one(
        db,
        &format!("{SESSION} WHERE name = ?1"),
        [id.as_str()],
        session_from,
    )
}

pub(super) fn session_by_row(db: &Connection, row: i64) -> Result<Option<SessionRow>> {
    one(db, &format!("{SESSION} WHERE id = ?1"), [row], session_from)
}

pub(super) fn sessions(db: &Connection) -> Result<Vec<SessionRow>> {
    all(db, &format!("{SESSION} ORDER BY name"), [], session_from)
}

/// A session and those above it, from the bottom up.
pub(super) fn up(db: &Connection, id: &SessionId) -> Result<Vec<SessionRow>> {
    let mut chain: Vec<SessionRow> = Vec::new();
    let mut next = session(db, id)?;
    while let Some(row) = next {
        let parent = row.parent;
        chain.push(row);
        next = match parent {
            Some(parent) if chain.len() < DEEPEST => session_by_row(db, parent)?,
            _ => None,
        };
    }
    Ok(chain)
}

/// The sessions right below one.
pub(super) fn children(db: &Connection, row: i64) -> Result<Vec<SessionRow>> {
    all(
        db,
        &format!("{SESSION} WHERE parent = ?1"),
        [row],
        session_from,
    )
}

/// The session, new if need be, in use now. To be saved.
pub(super) fn used(db: &Connection, id: &SessionId, now: u64) -> Result<SessionRow> {
    if let Some(mut row) = session(db, id)? {
        row.used = row.used.max(now);
        return Ok(row);
    }
    let secret = Secret::random()?;
    let insert = "INSERT INTO sessions (name, secret, created, used, puts, log, journal, seal)
         VALUES (?1, ?2, 0, 0, 0, 0, 0, x'')";
    run(db, insert, params![id.as_str(), secret.as_bytes()])?;
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

pub(super) fn save_session(db: &Connection, row: &SessionRow) -> Result<()> {
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
    run(db, update, values)
}

fn session_from(row: &Row<'_>) -> rusqlite::Result<Option<SessionRow>> {
    let secret: Option<[u8; 32]> = row.get::<_, Bytes>(2)?.try_into().ok();
    let Some((name, secret)) = text(row, 1)?.zip(secret.map(Secret::from_bytes)) else {
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
    let seal: Bytes = row.get(10)?;
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

fn numbers<'a>(numbers: impl IntoIterator<Item = &'a i64>) -> Bytes {
    numbers
        .into_iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

// Refs

pub(super) fn reference(db: &Connection, session: i64, id: &str) -> Result<Option<RefRow>> {
    one(
        db,
        &format!("{REF} WHERE session = ?1 AND id = ?2"),
        params![session, id],
        ref_from,
    )
}

pub(super) fn references(db: &Connection, session: i64) -> Result<Vec<RefRow>> {
    all(
        db,
        &format!("{REF} WHERE session = ?1 ORDER BY number"),
        [session],
        ref_from,
    )
}

pub(super) fn insert_reference(db: &Connection, row: &RefRow) -> Result<()> {
    let insert = "INSERT OR REPLACE INTO refs
         (session, id, number, blob, text, call, tool, media_type, created, seal)
         VALUES (:session, :id, :number, :blob, :text, :call, :tool, :media_type, :created, :seal)";
    let values = named_params! {
        ":session": row.session,
        ":id": row.id,
        ":number": row.number,
        ":blob": row.blob,
        ":text": row.text,
        ":call": row.labels.call,
        ":tool": row.labels.tool,
        ":media_type": row.labels.media_type,
        ":created": signed(row.created),
        ":seal": ref_seal(row),
    };
    run(db, insert, values)
}

fn ref_from(row: &Row<'_>) -> rusqlite::Result<Option<RefRow>> {
    let labels = text(row, 5)?.zip(text(row, 6)?).zip(text(row, 7)?);
    let labels = labels.map(|((call, tool), media_type)| Labels {
        call,
        tool,
        media_type,
    });
    let Some((id, labels)) = text(row, 1)?.zip(labels) else {
        return Ok(None);
    };
    let found = RefRow {
        session: row.get(0)?,
        id,
        number: row.get(2)?,
        blob: row.get(3)?,
        text: row.get(4)?,
        labels,
        created: unsigned(row.get(8)?),
    };
    let seal: Bytes = row.get(9)?;
    Ok((seal == ref_seal(&found)).then_some(found))
}

fn ref_seal(row: &RefRow) -> [u8; 8] {
    let text = row.text.unwrap_or(-1);
    let numbers = numbers(&[row.session, row.number, row.blob, text, signed(row.created)]);
    let Labels {
        call,
        tool,
        media_type,
    } = &row.labels;
    digest::seal(&[
        &numbers,
        row.id.as_bytes(),
        call.as_bytes(),
        tool.as_bytes(),
        media_type.as_bytes(),
    ])
}

// Blobs

pub(super) fn blob_id(db: &Connection, owner: i64, digest: &Digest) -> Result<Option<i64>> {
    let select = "SELECT id FROM blobs WHERE owner = ?1 AND digest = ?2";
    one(db, select, params![owner, digest], |row| {
        row.get(0).map(Some)
    })
}

pub(super) fn blob(db: &Connection, id: i64) -> Result<BlobRow> {
    let select = "SELECT digest, byte_size, newlines, outline, seal, file FROM blobs WHERE id = ?1";
    let row = one(db, select, [id], blob_from)?;
    row.ok_or_else(|| Error::damaged("the row of an output"))
}

/// The image of a blob that has no file.
pub(super) fn image(db: &Connection, id: i64) -> Result<Vec<u8>> {
    let select = "SELECT image FROM blobs WHERE id = ?1";
    let image = one(db, select, [id], |row| row.get::<_, Option<Bytes>>(0))?;
    image.ok_or_else(|| Error::damaged("the row of an output"))
}

pub(super) fn insert_blob(db: &Connection, owner: i64, image: &Image) -> Result<i64> {
    let insert =
        "INSERT INTO blobs (owner, digest, byte_size, newlines, outline, seal, file, image)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let outline = &image.outline;
    let (file, bytes) = columns(&image.body);
    let values = params![
        owner,
        outline.digest,
        signed(outline.byte_size),
        signed(outline.newlines),
        outline.encode(),
        blob_seal(outline, file),
        file,
        bytes,
    ];
    run(db, insert, values)?;
    Ok(db.last_insert_rowid())
}

/// Puts a whole image in the place of a damaged one.
pub(super) fn replace_blob(db: &Connection, id: i64, image: &Image) -> Result<()> {
    let update = "UPDATE blobs SET byte_size = ?2, newlines = ?3, outline = ?4, seal = ?5,
         file = ?6, image = ?7 WHERE id = ?1";
    let outline = &image.outline;
    let (file, bytes) = columns(&image.body);
    let values = params![
        id,
        signed(outline.byte_size),
        signed(outline.newlines),
        outline.encode(),
        blob_seal(outline, file),
        file,
        bytes,
    ];
    run(db, update, values)
}

fn columns(body: &Body) -> (Option<&str>, Option<&[u8]>) {
    match body {
        Body::Inline(bytes) => (None, Some(bytes)),
        Body::File(file) => (Some(&file.name), None),
    }
}

fn blob_from(row: &Row<'_>) -> rusqlite::Result<Option<BlobRow>> {
    let digest: Option<Digest> = row.get::<_, Bytes>(0)?.try_into().ok();
    let sizes = (unsigned(row.get(1)?), unsigned(row.get(2)?));
    let spans: Bytes = row.get(3)?;
    let seal: Bytes = row.get(4)?;
    let file = row
        .get_ref(5)?
        .as_bytes_or_null()?
        .map(|name| String::from_utf8(name.to_vec()));
    let Ok(file) = file.transpose() else {
        return Ok(None);
    };
    let outline = digest.and_then(|digest| Outline::decode(digest, sizes, &spans).ok());
    let whole = outline.filter(|outline| {
        seal == blob_seal(outline, file.as_deref()) && file.as_deref().is_none_or(is_random_name)
    });
    Ok(whole.map(|outline| BlobRow { outline, file }))
}

fn blob_seal(outline: &Outline, file: Option<&str>) -> [u8; 8] {
    let sizes = [
        outline.byte_size.to_le_bytes(),
        outline.newlines.to_le_bytes(),
    ]
    .concat();
    let file = file.unwrap_or_default().as_bytes();
    digest::seal(&[&outline.digest, &sizes, &outline.encode(), file])
}

// Helpers

/// One row, if there is one. A row that fails its seal is damaged, not missing.
pub(super) fn one<T>(
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

pub(super) fn all<T>(
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

pub(super) fn run(db: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<()> {
    let mut statement = db.prepare_cached(sql).map_err(from_sqlite)?;
    statement.execute(values).map(|_| ()).map_err(from_sqlite)
}

/// Text, unless it is no longer text.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    let bytes = row.get_ref(column)?.as_bytes_or_null()?.unwrap_or_default();
    Ok(String::from_utf8(bytes.to_vec()).ok())
}

/// Times and sizes fit: the database counts up to 2^63.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
