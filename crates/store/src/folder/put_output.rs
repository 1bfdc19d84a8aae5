//! Stores an output.
//!
//! Bytes come first, then the ref: a large image is written under another name, synced, renamed,
//! and its folder synced, before the transaction that names it. Bytes that already exist are named
//! first, which protects them from collection, then read once, and replaced if they are damaged. A
//! ref is therefore returned only for bytes that were just written or just read.

use std::sync::Arc;

use rusqlite::Connection;
use trimtab_model::Ref;

use super::disk::Dir;
use super::image::{self, ImageBody, ImageWriter, OutputImage};
use super::rows::{self, RefRow, SessionRow};
use super::{FolderStore, OutputRows};
use crate::frames::{self, OutputScan};
use crate::put::PutInput;
use crate::{Error, OutputLabels, Put, Result, SessionId, Store};

/// Another process may remove data between two steps. More than a few repetitions indicate a bug.
pub(super) const ATTEMPTS: usize = 5;

/// Storing an existing output again writes nothing, unless its last use was longer ago than this,
/// in milliseconds.
const LATE: u64 = 60 * 1000;

/// Bytes to be stored.
pub(super) struct IncomingBytes<'a> {
    scan: OutputScan,
    supply: ByteSupply<'a>,
    /// The blob that already held the bytes.
    found: Option<i64>,
}

enum ByteSupply<'a> {
    /// Not compressed yet, because they may already be stored.
    Bytes(&'a [u8]),
    /// Read from a stream, and not durable yet.
    Writer(ImageWriter),
    /// Ready to be named.
    Image(OutputImage),
    /// Named.
    Spent,
}

impl<'a> IncomingBytes<'a> {
    pub(super) fn new(dir: &Arc<Dir>, input: PutInput<'a>) -> Result<Self> {
        match input {
            PutInput::Slice(bytes) => Ok(Self::scanned(bytes, frames::scan(bytes))),
            PutInput::Reader(reader) => {
                let (writer, scan) = image::read(dir, reader)?;
                Ok(Self {
                    scan,
                    supply: ByteSupply::Writer(writer),
                    found: None,
                })
            }
        }
    }

    /// Bytes in memory that were scanned before.
    pub(super) fn scanned(bytes: &'a [u8], scan: OutputScan) -> Self {
        Self {
            scan,
            supply: ByteSupply::Bytes(bytes),
            found: None,
        }
    }

    /// Makes the bytes durable.
    pub(super) fn make_image(&mut self, dir: &Arc<Dir>) -> Result<()> {
        self.supply = match std::mem::replace(&mut self.supply, ByteSupply::Spent) {
            ByteSupply::Bytes(bytes) => ByteSupply::Image(image::of(dir, bytes, &self.scan)?),
            ByteSupply::Writer(writer) => ByteSupply::Image(writer.finish(&self.scan)?),
            ready => ready,
        };
        Ok(())
    }

    /// The blob with the bytes, inserted if necessary; none if they must be made durable first.
    fn find_or_insert(&mut self, db: &Connection, owner: i64) -> Result<Option<i64>> {
        self.found = rows::blob_id(db, owner, &self.scan.digest)?;
        match &self.supply {
            ByteSupply::Image(image) if self.found.is_none() => {
                rows::insert_blob(db, owner, image).map(Some)
            }
            _ => Ok(self.found),
        }
    }

    /// Keeps the file after a transaction that may have succeeded. If no row names it, collection
    /// removes it.
    pub(super) fn leave_file(&mut self) {
        if let ByteSupply::Image(OutputImage {
            body: ImageBody::File(file),
            ..
        }) = &mut self.supply
            && self.found.is_none()
        {
            file.named = true;
        }
    }
}

impl FolderStore {
    pub(super) fn put_output(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        let labels = put.labels();
        // Streamed input is written to an unfinished file while it is scanned, because its digest
        // is known only at the end.
        let whole = IncomingBytes::new(&self.blobs, put.bytes)?;
        let text = put.text.map(|text| PutInput::Slice(text.as_bytes()));
        let text = text
            .map(|text| IncomingBytes::new(&self.blobs, text))
            .transpose()?;
        let mut incoming: Vec<_> = std::iter::once(whole).chain(text).collect();
        let reference = match self.existing_ref(session, &labels, &mut incoming)? {
            Some(reference) => reference,
            None => self.name(session, &labels, &mut incoming)?,
        };
        for mut bytes in incoming {
            self.confirm(&mut bytes)?;
        }
        // The known row may be in a database file that was deleted.
        self.check_present()?;
        Ok(reference)
    }

    /// The ref, if this output is already stored; otherwise makes its bytes durable.
    fn existing_ref(
        &self,
        session: &SessionId,
        labels: &OutputLabels,
        incoming: &mut [IncomingBytes<'_>],
    ) -> Result<Option<Ref>> {
        let known = self.reading(|db| {
            let Some(session) = rows::session(db, session)? else {
                return Ok(None);
            };
            // Equal bytes may exist under another call. Then only the ref is new.
            for bytes in &mut *incoming {
                bytes.found = rows::blob_id(db, session.owner, &bytes.scan.digest)?;
            }
            let Some(whole) = incoming.first() else {
                return Ok(None);
            };
            let id = session.secret.ref_id(&labels.call, &whole.scan.digest);
            let Some(row) = if_undamaged(rows::reference(db, session.row, &id))?.flatten() else {
                return Ok(None);
            };
            // A damaged output does not count as known: storing it again repairs it.
            let output = if_undamaged(OutputRows::load(db, &session, row))?;
            Ok(output.map(|output| (session.used, output)))
        })?;
        let Some((used, output)) = known else {
            // Make new bytes durable before the transaction, which must stay short.
            let new = incoming.iter_mut().filter(|bytes| bytes.found.is_none());
            new.into_iter()
                .try_for_each(|bytes| bytes.make_image(&self.blobs))?;
            return Ok(None);
        };
        for bytes in incoming {
            // A different text projection than the first one is not kept.
            bytes.found = output.holder(&bytes.scan.digest);
        }
        if used + LATE < self.now() {
            self.touch(session)?;
        }
        Ok(Some(output.metadata.reference))
    }

    /// Inserts the ref of the output.
    fn name(
        &self,
        session: &SessionId,
        labels: &OutputLabels,
        incoming: &mut [IncomingBytes<'_>],
    ) -> Result<Ref> {
        for _ in 0..ATTEMPTS {
            let now = self.now();
            let named = self.writing(|db| {
                let mut session = rows::used(db, session, now)?;
                let reference = insert(db, &mut session, labels, incoming)?;
                rows::save_session(db, &session)?;
                Ok(reference)
            });
            // The commit may have succeeded even if it reported an error.
            if !matches!(named, Ok(None)) {
                incoming.iter_mut().for_each(IncomingBytes::leave_file);
            }
            if let Some(reference) = named? {
                return Ok(reference);
            }
            // Collection removed the found bytes in the meantime. Write them ourselves and try
            // again.
            for bytes in &mut *incoming {
                bytes.make_image(&self.blobs)?;
            }
        }
        Err(Error::Busy)
    }

    /// Verifies bytes that existed before, and replaces them if they are damaged.
    pub(super) fn confirm(&self, bytes: &mut IncomingBytes<'_>) -> Result<()> {
        let Some(blob) = bytes.found else {
            return Ok(());
        };
        let sound = self.reading(|db| {
            let row = rows::blob(db, blob)?;
            self.stored(db, blob, &row)
        });
        match sound.and_then(|stored| stored.verify()) {
            Err(error) if error.is_damaged() => {}
            confirmed => return confirmed,
        }
        bytes.make_image(&self.blobs)?;
        let ByteSupply::Image(image) = &bytes.supply else {
            return Err(Error::damaged("an output"));
        };
        let replaced = self.writing(|db| rows::replace_blob(db, blob, image));
        // Also after an error: the row may name the new file now, so it must not be removed.
        bytes.found = None;
        bytes.leave_file();
        replaced
    }
}

/// Maps damage to none.
fn if_undamaged<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error) if error.is_damaged() => Ok(None),
        read => read.map(Some),
    }
}

/// Inserts missing rows and the ref; none if some bytes must be made durable first.
pub(super) fn insert(
    db: &Connection,
    session: &mut SessionRow,
    labels: &OutputLabels,
    incoming: &mut [IncomingBytes<'_>],
) -> Result<Option<Ref>> {
    let mut blobs = Vec::new();
    for bytes in &mut *incoming {
        let Some(blob) = bytes.find_or_insert(db, session.owner)? else {
            return Ok(None);
        };
        blobs.push(blob);
    }
    let (Some(whole), Some(blob)) = (incoming.first(), blobs.first()) else {
        return Ok(None);
    };
    let id = session.secret.ref_id(&labels.call, &whole.scan.digest);
    // The same output may have been stored by another process meanwhile.
    if if_undamaged(rows::reference(db, session.row, &id))?
        .flatten()
        .is_none()
    {
        session.puts += 1;
        let row = RefRow {
            session: session.row,
            id: id.clone(),
            number: session.puts,
            blob: *blob,
            text: blobs.get(1).copied(),
            labels: labels.clone(),
            created: session.used,
        };
        rows::insert_reference(db, &row)?;
    }
    // The text projection determines the lines that the model can read.
    let lines = incoming.get(1).unwrap_or(whole).scan.newlines + 1;
    Ok(Some(Ref::issue(
        id,
        Some(whole.scan.byte_size),
        Some(lines),
    )))
}
