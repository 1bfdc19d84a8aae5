//! Rows of blobs: outputs and their text projections.

use rusqlite::{Connection, Row, params};

use super::{RawColumn, execute, query_one, signed, unsigned};
use crate::digest::{self, Digest};
use crate::folder::disk::is_random_name;
use crate::folder::image::{ImageBody, OutputImage};
use crate::image::ImageOutline;
use crate::{Error, Result};

/// A blob without its image.
pub(in crate::folder) struct BlobRow {
    pub outline: ImageOutline,
    pub file: Option<String>,
}

pub(in crate::folder) fn blob_id(
    db: &Connection,
    owner: i64,
    digest: &Digest,
) -> Result<Option<i64>> {
    let select = "SELECT id FROM blobs WHERE owner = ?1 AND digest = ?2";
    query_one(db, select, params![owner, digest], |row| {
        row.get(0).map(Some)
    })
}

pub(in crate::folder) fn blob(db: &Connection, id: i64) -> Result<BlobRow> {
    let select = "SELECT digest, byte_size, newlines, outline, seal, file FROM blobs WHERE id = ?1";
    let row = query_one(db, select, [id], blob_from)?;
    row.ok_or_else(|| Error::damaged("the row of an output"))
}

/// The image of a blob that has no file.
pub(in crate::folder) fn image(db: &Connection, id: i64) -> Result<Vec<u8>> {
    let select = "SELECT image FROM blobs WHERE id = ?1";
    let image = query_one(db, select, [id], |row| row.get::<_, Option<RawColumn>>(0))?;
    image.ok_or_else(|| Error::damaged("the row of an output"))
}

pub(in crate::folder) fn insert_blob(
    db: &Connection,
    owner: i64,
    image: &OutputImage,
) -> Result<i64> {
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
    execute(db, insert, values)?;
    Ok(db.last_insert_rowid())
}

/// Replaces a damaged image. The file of the damaged one has no row then, so collection removes it.
pub(in crate::folder) fn replace_blob(db: &Connection, id: i64, image: &OutputImage) -> Result<()> {
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
    execute(db, update, values)
}

fn columns(body: &ImageBody) -> (Option<&str>, Option<&[u8]>) {
    match body {
        ImageBody::Inline(bytes) => (None, Some(bytes)),
        ImageBody::File(file) => (Some(&file.name), None),
    }
}

fn blob_from(row: &Row<'_>) -> rusqlite::Result<Option<BlobRow>> {
    let digest: Option<Digest> = row.get::<_, RawColumn>(0)?.try_into().ok();
    let sizes = (unsigned(row.get(1)?), unsigned(row.get(2)?));
    let spans: RawColumn = row.get(3)?;
    let seal: RawColumn = row.get(4)?;
    let file = row
        .get_ref(5)?
        .as_bytes_or_null()?
        .map(|name| String::from_utf8(name.to_vec()));
    let Ok(file) = file.transpose() else {
        return Ok(None);
    };
    let outline = digest.and_then(|digest| ImageOutline::decode(digest, sizes, &spans).ok());
    // A damaged name must not lead to another file.
    let whole = outline.filter(|outline| {
        seal == blob_seal(outline, file.as_deref()) && file.as_deref().is_none_or(is_random_name)
    });
    Ok(whole.map(|outline| BlobRow { outline, file }))
}

pub(in crate::folder) fn blob_seal(outline: &ImageOutline, file: Option<&str>) -> [u8; 8] {
    let sizes = [
        outline.byte_size.to_le_bytes(),
        outline.newlines.to_le_bytes(),
    ]
    .concat();
    let file = file.unwrap_or_default().as_bytes();
    digest::seal(&[&outline.digest, &sizes, &outline.encode(), file])
}
