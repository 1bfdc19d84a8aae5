//! An output with its metadata.

use rusqlite::Connection;
use trimtab_model::Ref;

use super::rows::{self, BlobRow, RefRow, SessionRow};
use crate::digest::Digest;
use crate::{Error, OutputForm, OutputMetadata, Result};

/// An output with its rows.
pub(super) struct OutputRows {
    pub reference: RefRow,
    blob: BlobRow,
    text: Option<(i64, BlobRow)>,
    pub metadata: OutputMetadata,
}

impl OutputRows {
    pub(super) fn load(db: &Connection, session: &SessionRow, reference: RefRow) -> Result<Self> {
        let whole = rows::blob(db, reference.blob)?;
        let text = reference
            .text
            .map(|id| Ok((id, rows::blob(db, id)?)))
            .transpose()?;
        // The id is derived from the digest, which proves that the row names these bytes.
        let proven = session
            .secret
            .ref_id(&reference.labels.call, &whole.outline.digest);
        if proven != reference.id {
            return Err(Error::damaged("the row of a ref"));
        }
        let lines = text
            .as_ref()
            .map_or(&whole, |(_, text)| text)
            .outline
            .newlines
            + 1;
        let byte_size = whole.outline.byte_size;
        let text_size = text
            .as_ref()
            .map_or(0, |(_, text)| text.outline.image_size());
        let metadata = OutputMetadata {
            reference: Ref::issue(reference.id.clone(), Some(byte_size), Some(lines)),
            session: session.id.clone(),
            labels: reference.labels.clone(),
            byte_size,
            stored_size: whole.outline.image_size() + text_size,
            line_count: lines,
            has_text: text.is_some(),
            created: reference.created,
        };
        Ok(Self {
            reference,
            blob: whole,
            text,
            metadata,
        })
    }

    /// The blob of this output with `digest`, if any.
    pub(super) fn holder(&self, digest: &Digest) -> Option<i64> {
        let text = self.text.iter().map(|(id, row)| (*id, row));
        std::iter::once((self.reference.blob, &self.blob))
            .chain(text)
            .find_map(|(id, row)| (row.outline.digest == *digest).then_some(id))
    }

    pub(super) fn form(&self, form: OutputForm) -> (i64, &BlobRow) {
        match (form, &self.text) {
            (OutputForm::Text, Some((id, row))) => (*id, row),
            _ => (self.reference.blob, &self.blob),
        }
    }
}
