//! Executes several writes of one session in one transaction, with one sync.

use super::put_output::{ATTEMPTS, IncomingBytes, insert};
use super::streams::{self, PackedEntry};
use super::{FolderStore, rows};
use crate::put::OutputLabels;
use crate::write::{WriteKind, check_id};
use crate::{Error, Result, SessionId, Stream, Write, frames};

/// A prepared write.
enum PreparedWrite<'w> {
    Put {
        id: &'w str,
        labels: &'w OutputLabels,
        incoming: Vec<IncomingBytes<'w>>,
    },
    Append {
        stream: Stream,
        expected: u64,
        entries: Vec<PackedEntry>,
    },
}

impl FolderStore {
    pub(super) fn write_together(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        let mut ready = Vec::with_capacity(writes.len());
        for write in writes {
            ready.push(self.prepare(write)?);
        }
        for _ in 0..ATTEMPTS {
            let now = self.now();
            let done = self.writing(|db| {
                let mut row = rows::used(db, session, now)?;
                for write in &mut ready {
                    if !carry_out(db, &mut row, write)? {
                        return Ok(false);
                    }
                }
                rows::save_session(db, &row)?;
                Ok(true)
            });
            // Also after an error, because the commit may have succeeded. A file without a row is
            // garbage, but a row without its file would be a loss.
            if !matches!(done, Ok(false)) {
                incoming(&mut ready).for_each(IncomingBytes::leave_file);
            }
            if done? {
                return incoming(&mut ready).try_for_each(|bytes| self.confirm(bytes));
            }
            // Bytes that were found before have been collected. Store them and repeat the whole
            // batch.
            for bytes in incoming(&mut ready) {
                bytes.make_image(&self.blobs)?;
            }
        }
        Err(Error::Busy)
    }

    /// Compresses the data before the transaction starts, so that other writers do not wait for it.
    fn prepare<'w>(&self, write: &'w Write) -> Result<PreparedWrite<'w>> {
        Ok(match &write.0 {
            WriteKind::Put {
                id,
                labels,
                bytes,
                scan,
                text,
            } => {
                let text = text.as_deref().map(str::as_bytes);
                let text = text.map(|text| IncomingBytes::scanned(text, frames::scan(text)));
                // No spare capacity, because there may be many thousands of these.
                let mut incoming = Vec::with_capacity(1 + usize::from(text.is_some()));
                incoming.push(IncomingBytes::scanned(bytes, scan.clone()));
                incoming.extend(text);
                for bytes in &mut incoming {
                    bytes.make_image(&self.blobs)?;
                }
                PreparedWrite::Put {
                    id,
                    labels,
                    incoming,
                }
            }
            WriteKind::Append {
                stream,
                expected,
                entries,
            } => PreparedWrite::Append {
                stream: *stream,
                expected: *expected,
                entries: entries.iter().map(|entry| streams::pack(entry)).collect(),
            },
        })
    }
}

/// Executes one write. False if some bytes must be made durable first.
fn carry_out(
    db: &rusqlite::Connection,
    row: &mut rows::SessionRow,
    write: &mut PreparedWrite<'_>,
) -> Result<bool> {
    match write {
        PreparedWrite::Put {
            id,
            labels,
            incoming,
        } => match insert(db, row, labels, incoming)? {
            // The ref was given out before this write, so it must match exactly.
            Some(reference) => check_id(id, reference.id()).map(|()| true),
            None => Ok(false),
        },
        PreparedWrite::Append {
            stream,
            expected,
            entries,
        } => streams::append(db, row, (*stream, *expected), entries).map(|()| true),
    }
}

fn incoming<'r, 'w>(
    ready: &'r mut [PreparedWrite<'w>],
) -> impl Iterator<Item = &'r mut IncomingBytes<'w>> {
    ready.iter_mut().flat_map(|write| match write {
        PreparedWrite::Put { incoming, .. } => incoming.as_mut_slice(),
        PreparedWrite::Append { .. } => &mut [],
    })
}
