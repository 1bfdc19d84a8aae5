//! Finding, opening and listing outputs.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Row;
use trimtab_model::Ref;

use super::SharedStore;
use super::bodies::BodyName;
use super::rows::{self, unsigned};
use crate::image::{ImageOutline, StoredImage, damaged};
use crate::refs::{SessionSecret, well_formed};
use crate::{Error, OpenOutput, OutputForm, OutputLabels, OutputMetadata, Result, SessionId};

/// The columns of an output, its session and its blobs.
const COLUMNS: &str = "
    sessions.name, sessions.secret, outputs.id, outputs.call, outputs.tool, outputs.media_type,
    outputs.created,
    whole.digest, whole.byte_size, whole.newlines, whole.outline, whole.body,
    whole.in_object_store,
    text.digest, text.byte_size, text.newlines, text.outline, text.body, text.in_object_store";

const JOINS: &str = "
    JOIN trimtab.sessions ON sessions.id = outputs.session
    JOIN trimtab.blobs AS whole ON whole.id = outputs.whole
    LEFT JOIN trimtab.blobs AS text ON text.id = outputs.text";

/// The number of the column after `COLUMNS`.
const CHUNK_COLUMN: usize = 19;
/// The image of an output that is one row of the database. Others are read when they are needed.
const FIRST_CHUNK: &str = "
    (SELECT chunks.bytes FROM trimtab.chunks
     WHERE chunks.body = whole.body AND chunks.number = 0
         AND NOT whole.in_object_store AND whole.stored_size <= 262144)";
const NO_CHUNK: &str = "NULL::bytea";

/// The requested session and its parents, with their distance.
const UP: &str = "
    WITH RECURSIVE up AS (
        SELECT id, parent, 0 AS level FROM trimtab.sessions WHERE name = $1
        UNION ALL
        SELECT above.id, above.parent, up.level + 1
        FROM trimtab.sessions AS above JOIN up ON above.id = up.parent
    )";

/// The sessions whose names are in a range and that may redeem a ref. Reads only these sessions and
/// their parents, so nothing depends on what others have.
const REDEEMERS: &str = "
    WITH RECURSIVE asked AS MATERIALIZED (
        SELECT id, parent, name, used FROM trimtab.sessions WHERE name >= $1 AND name < $2
    ), up AS (
        SELECT id AS below, id, parent FROM asked
        UNION
        SELECT up.below, above.id, above.parent
        FROM trimtab.sessions AS above JOIN up ON above.id = up.parent
    )
    SELECT asked.name FROM up JOIN asked ON asked.id = up.below
        JOIN trimtab.outputs ON outputs.session = up.id AND outputs.id = $3
    ORDER BY asked.used DESC";
/// Follows every name with a given prefix: no UTF-8 text contains this byte.
const AFTER_TEXT: u8 = 0xff;

/// The rows of an output.
pub(super) struct FoundOutput {
    session: SessionId,
    secret: SessionSecret,
    id: String,
    labels: OutputLabels,
    created: u64,
    whole: FoundBlob,
    text: Option<FoundBlob>,
}

struct FoundBlob {
    outline: ImageOutline,
    body: BodyName,
}

impl FoundOutput {
    fn of(row: &Row) -> Result<Self> {
        let whole = FoundBlob::of(row, 7)?.ok_or_else(damaged)?;
        Ok(Self {
            session: rows::session_id(row.get(0))?,
            secret: rows::secret(row.get(1))?,
            id: row.get(2),
            labels: OutputLabels {
                call: rows::text(row.get(3))?,
                tool: rows::text(row.get(4))?,
                media_type: rows::text(row.get(5))?,
            },
            created: unsigned(row.get(6)),
            whole,
            text: FoundBlob::of(row, 13)?,
        })
    }

    pub(super) fn metadata(&self) -> Result<OutputMetadata> {
        // The id depends on the digest, so it proves that these are the bytes of the ref.
        if self
            .secret
            .ref_id(&self.labels.call, &self.whole.outline.digest)
            != self.id
        {
            return Err(Error::damaged("the row of a ref"));
        }
        let byte_size = self.whole.outline.byte_size;
        let text = self.text.as_ref();
        let line_count = text.unwrap_or(&self.whole).outline.newlines + 1;
        let text_size = text.map_or(0, |text| text.outline.image_size());
        Ok(OutputMetadata {
            reference: Ref::issue(self.id.clone(), Some(byte_size), Some(line_count)),
            session: self.session.clone(),
            labels: self.labels.clone(),
            byte_size,
            stored_size: self.whole.outline.image_size() + text_size,
            line_count,
            has_text: text.is_some(),
            created: self.created,
        })
    }
}

impl FoundBlob {
    /// The blob in the six columns from `first` on, if there is one.
    fn of(row: &Row, first: usize) -> Result<Option<Self>> {
        let digest: Option<Vec<u8>> = row.get(first);
        let Some(digest) = digest else {
            return Ok(None);
        };
        let digest = digest.try_into().map_err(|_| damaged())?;
        let sizes = (unsigned(row.get(first + 1)), unsigned(row.get(first + 2)));
        let outline: Vec<u8> = row.get(first + 3);
        Ok(Some(Self {
            outline: ImageOutline::decode(digest, sizes, &outline)?,
            body: BodyName {
                name: row.get(first + 4),
                in_object_store: row.get(first + 5),
            },
        }))
    }
}

/// The id to search for. A malformed one takes the same path as an unknown one, so both take the
/// same time.
fn searched_id(id: &str) -> String {
    let id = Some(id).filter(|id| well_formed(id));
    id.unwrap_or_default().to_owned()
}

/// An output, and the first bytes of its image if they were asked for.
type OutputWithChunk = (FoundOutput, Option<Vec<u8>>);

impl SharedStore {
    /// Finds an output of this session or of its parents.
    pub(super) fn find_output(&self, session: &SessionId, id: &str) -> Result<FoundOutput> {
        let id = searched_id(id);
        let session = session.clone();
        self.database.call(move |connection| async move {
            let select = format!(
                "{UP} SELECT {COLUMNS} FROM up
                 JOIN trimtab.outputs ON outputs.session = up.id {JOINS}
                 WHERE outputs.id = $2 ORDER BY up.level LIMIT 1"
            );
            let name = session.as_str().as_bytes();
            let found = rows::query_one(&connection, &select, &[&name, &id]).await?;
            FoundOutput::of(&found.ok_or(Error::NotFound)?)
        })
    }

    pub(super) fn find_redeemers(&self, prefix: &str, id: &str) -> Result<Vec<SessionId>> {
        let first = prefix.as_bytes().to_vec();
        let id = searched_id(id);
        self.database.call(move |connection| async move {
            // A range, because it can use the index of names.
            let mut end = first.clone();
            end.push(AFTER_TEXT);
            let rows = rows::query_all(&connection, REDEEMERS, &[&first, &end, &id]).await?;
            rows.iter()
                .map(|row| rows::session_id(row.get(0)))
                .collect()
        })
    }

    pub(super) fn open_output(
        &self,
        session: &SessionId,
        id: &str,
        form: OutputForm,
    ) -> Result<OpenOutput> {
        let found = self.find_output(session, id)?;
        self.open_found(found, form)
    }

    fn open_found(&self, found: FoundOutput, form: OutputForm) -> Result<OpenOutput> {
        let metadata = found.metadata()?;
        let blob = match (form, found.text) {
            (OutputForm::Text, Some(text)) => text,
            _ => found.whole,
        };
        let body = self.bodies.open(blob.body, blob.outline.image_size());
        let image = StoredImage::new(blob.outline, Box::new(body));
        Ok(OpenOutput::new(metadata, Arc::new(image)))
    }

    /// Opens several outputs, and reads the bytes of small ones, in one round trip.
    pub(super) fn open_outputs(
        &self,
        session: &SessionId,
        ids: &[&str],
    ) -> Result<Vec<OpenOutput>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = self.find_with(session, ids, FIRST_CHUNK)?;
        let mut opened: HashMap<String, OpenOutput> = HashMap::new();
        for (id, (found, chunk)) in found.drain() {
            if let Some(chunk) = chunk {
                self.bodies.keep_chunk(&found.whole.body, chunk);
            }
            opened.insert(id, self.open_found(found, OutputForm::Whole)?);
        }
        let open = |id: &&str| opened.get(*id).cloned().ok_or(Error::NotFound);
        ids.iter().map(open).collect()
    }

    /// Finds outputs of this session or of its parents, by their ids.
    pub(super) fn find_outputs(
        &self,
        session: &SessionId,
        ids: &[&str],
    ) -> Result<HashMap<String, FoundOutput>> {
        let found = self.find_with(session, ids, NO_CHUNK)?;
        Ok(found
            .into_iter()
            .map(|(id, (found, _))| (id, found))
            .collect())
    }

    /// The same with the column `chunk`, which may have the first bytes of the image.
    fn find_with(
        &self,
        session: &SessionId,
        ids: &[&str],
        chunk: &'static str,
    ) -> Result<HashMap<String, OutputWithChunk>> {
        let ids: Vec<String> = ids.iter().map(|id| searched_id(id)).collect();
        let session = session.clone();
        self.database.call(move |connection| async move {
            // The nearest session comes last, and replaces those above it.
            let select = format!(
                "{UP} SELECT {COLUMNS}, {chunk} FROM up
                 JOIN trimtab.outputs ON outputs.session = up.id {JOINS}
                 WHERE outputs.id = ANY($2) ORDER BY up.level DESC"
            );
            let name = session.as_str().as_bytes();
            let rows = rows::query_all(&connection, &select, &[&name, &ids]).await?;
            let found = rows.iter().map(|row| {
                let found = FoundOutput::of(row)?;
                Ok((found.id.clone(), (found, row.get(CHUNK_COLUMN))))
            });
            found.collect()
        })
    }

    pub(super) fn list_outputs(&self, session: &SessionId) -> Result<Vec<OutputMetadata>> {
        let session = session.clone();
        self.database.call(move |connection| async move {
            let select = format!(
                "SELECT {COLUMNS} FROM trimtab.outputs {JOINS} WHERE sessions.name = $1
                 ORDER BY outputs.number"
            );
            let name = session.as_str().as_bytes();
            let rows = rows::query_all(&connection, &select, &[&name]).await?;
            rows.iter()
                .map(|row| FoundOutput::of(row)?.metadata())
                .collect()
        })
    }
}
