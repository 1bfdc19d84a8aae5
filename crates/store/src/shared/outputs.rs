//! Finding, opening and listing outputs.

use std::sync::Arc;

use tokio_postgres::Row;
use trimtab_model::Ref;

use super::SharedStore;
use super::body::BodyName;
use super::connect::from_postgres;
use super::rows::{self, unsigned};
use crate::image::{ImageBytes, Outline, StoredImage, damaged};
use crate::refs::{Secret, well_formed};
use crate::{Error, Form, Labels, Metadata, Result, SessionId, Source, Stored};

/// What is asked of an output, its session and its bytes.
const COLUMNS: &str = "
    sessions.name, sessions.secret, outputs.id, outputs.call, outputs.tool, outputs.media_type,
    outputs.created,
    whole.digest, whole.byte_size, whole.newlines, whole.outline, whole.body,
    whole.in_object_store,
    text.digest, text.byte_size, text.newlines, text.outline, text.body, text.in_object_store";

const JOINS: &str = "
    JOIN sessions ON sessions.id = outputs.session
    JOIN blobs AS whole ON whole.id = outputs.whole
    LEFT JOIN blobs AS text ON text.id = outputs.text";

/// The session asked and those above it, from the bottom up.
const UP: &str = "
    WITH RECURSIVE up AS (
        SELECT id, parent, 0 AS level FROM sessions WHERE name = $1
        UNION ALL
        SELECT above.id, above.parent, up.level + 1
        FROM sessions AS above JOIN up ON above.id = up.parent
    )";

/// An output with all that is known of it.
pub(super) struct FoundOutput {
    session: SessionId,
    secret: Secret,
    id: String,
    labels: Labels,
    created: u64,
    whole: FoundBlob,
    text: Option<FoundBlob>,
}

struct FoundBlob {
    outline: Outline,
    body: BodyName,
}

impl FoundOutput {
    fn of(row: &Row) -> Result<Self> {
        let whole = FoundBlob::of(row, 7)?.ok_or_else(damaged)?;
        Ok(Self {
            session: SessionId::known(row.get(0)),
            secret: rows::secret(row.get(1))?,
            id: row.get(2),
            labels: Labels {
                call: row.get(3),
                tool: row.get(4),
                media_type: row.get(5),
            },
            created: unsigned(row.get(6)),
            whole,
            text: FoundBlob::of(row, 13)?,
        })
    }

    pub(super) fn metadata(&self) -> Result<Metadata> {
        // The id is made from the digest: it proves that these are its bytes.
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
        Ok(Metadata {
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
            outline: Outline::decode(digest, sizes, &outline)?,
            body: BodyName {
                name: row.get(first + 4),
                in_object_store: row.get(first + 5),
            },
        }))
    }
}

impl SharedStore {
    /// The output, of this session or one above it.
    pub(super) fn find_output(&self, session: &SessionId, id: &str) -> Result<FoundOutput> {
        // A malformed id takes the same way as an unknown one: both cost the same time.
        let id = if well_formed(id) {
            id.to_owned()
        } else {
            String::new()
        };
        let session = session.clone();
        self.database.ask(move |connection| async move {
            let select = format!(
                "{UP} SELECT {COLUMNS} FROM up JOIN outputs ON outputs.session = up.id {JOINS}
                 WHERE outputs.id = $2 ORDER BY up.level LIMIT 1"
            );
            let select = connection
                .prepare_cached(&select)
                .await
                .map_err(from_postgres)?;
            let found = connection
                .query_opt(&select, &[&session.as_str(), &id])
                .await;
            FoundOutput::of(&found.map_err(from_postgres)?.ok_or(Error::NotFound)?)
        })
    }

    pub(super) fn open_output(&self, session: &SessionId, id: &str, form: Form) -> Result<Stored> {
        let found = self.find_output(session, id)?;
        let metadata = found.metadata()?;
        let blob = match (form, found.text) {
            (Form::Text, Some(text)) => text,
            _ => found.whole,
        };
        let body = self.bodies.open(blob.body, blob.outline.image_size());
        let body: Box<dyn ImageBytes> = Box::new(body);
        let image = Arc::new(StoredImage::new(blob.outline, body)) as Arc<dyn Source>;
        Ok(Stored::new(metadata, image))
    }

    pub(super) fn list_outputs(&self, session: &SessionId) -> Result<Vec<Metadata>> {
        let session = session.clone();
        self.database.ask(move |connection| async move {
            let select = format!(
                "SELECT {COLUMNS} FROM outputs {JOINS} WHERE sessions.name = $1
                 ORDER BY outputs.number"
            );
            let select = connection
                .prepare_cached(&select)
                .await
                .map_err(from_postgres)?;
            let rows = connection.query(&select, &[&session.as_str()]).await;
            let rows = rows.map_err(from_postgres)?;
            rows.iter()
                .map(|row| FoundOutput::of(row)?.metadata())
                .collect()
        })
    }
}
