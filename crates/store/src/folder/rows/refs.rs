//! Rows of refs.

use rusqlite::{Connection, Row, named_params, params};

use super::{RawColumn, execute, numbers, query_all, query_one, signed, text, unsigned};
use crate::{OutputLabels, Result, digest};

pub(in crate::folder) struct RefRow {
    pub session: i64,
    pub id: String,
    pub number: i64,
    pub blob: i64,
    pub text: Option<i64>,
    pub labels: OutputLabels,
    pub created: u64,
}

const REF: &str = "SELECT session, id, number, blob, text, call, tool, media_type, created, seal
     FROM refs";

pub(in crate::folder) fn reference(
    db: &Connection,
    session: i64,
    id: &str,
) -> Result<Option<RefRow>> {
    query_one(
        db,
        &format!("{REF} WHERE session = ?1 AND id = ?2"),
        params![session, id],
        ref_from,
    )
}

pub(in crate::folder) fn references(db: &Connection, session: i64) -> Result<Vec<RefRow>> {
    query_all(
        db,
        &format!("{REF} WHERE session = ?1 ORDER BY number"),
        [session],
        ref_from,
    )
}

pub(in crate::folder) fn insert_reference(db: &Connection, row: &RefRow) -> Result<()> {
    // REPLACE, because a damaged row may have the same key.
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
    execute(db, insert, values)
}

fn ref_from(row: &Row<'_>) -> rusqlite::Result<Option<RefRow>> {
    let labels = text(row, 5)?.zip(text(row, 6)?).zip(text(row, 7)?);
    let labels = labels.map(|((call, tool), media_type)| OutputLabels {
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
    let seal: RawColumn = row.get(9)?;
    Ok((seal == ref_seal(&found)).then_some(found))
}

fn ref_seal(row: &RefRow) -> [u8; 8] {
    let text = row.text.unwrap_or(-1);
    let numbers = numbers(&[row.session, row.number, row.blob, text, signed(row.created)]);
    let OutputLabels {
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
