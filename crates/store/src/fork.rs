//! Copies the beginning of a session into another one of the same store.

use std::ops::Range;

use crate::write::WriteKind;
use crate::{Error, Result, SessionId, Store, Stream, Write};

/// How many entries are read at a time.
const BATCH: usize = 256;

/// Entries of one session that another one begins with.
#[derive(Clone, Debug)]
pub(crate) struct SessionFork {
    pub(crate) origin: SessionId,
    /// The positions of the log and the journal that the other session has already.
    pub(crate) has: (u64, u64),
    /// The positions that it will have.
    pub(crate) end: (u64, u64),
}

impl SessionFork {
    /// Links `session` to its origin, and returns the writes that copy the entries. All of them
    /// belong in one transaction: messages without their plans, or plans without their messages,
    /// would be taken for another conversation if we are killed in between.
    pub(crate) fn begin<S: Store + ?Sized>(
        &self,
        store: &S,
        session: &SessionId,
    ) -> Result<[Write; 2]> {
        // A session that has entries of its origin is linked already.
        if self.has == (0, 0) {
            store.link(session, &self.origin)?;
        }
        Ok([
            self.copied(store, Stream::Journal, self.has.1..self.end.1)?,
            self.copied(store, Stream::Log, self.has.0..self.end.0)?,
        ])
    }

    /// The write of entries of the origin.
    fn copied<S: Store + ?Sized>(
        &self,
        store: &S,
        stream: Stream,
        positions: Range<u64>,
    ) -> Result<Write> {
        let mut entries = Vec::new();
        loop {
            let next = positions.start + entries.len() as u64;
            let left = usize::try_from(positions.end.saturating_sub(next)).unwrap_or(BATCH);
            if left == 0 {
                return Ok(Write(WriteKind::Append {
                    stream,
                    expected: positions.start,
                    entries,
                }));
            }
            let read = store.read(&self.origin, stream, next, left.min(BATCH))?;
            if read.is_empty() {
                // Another process has removed the origin, or the store has lost its last entries.
                return Err(Error::Conflict {
                    stream: stream.as_str(),
                    expected: positions.end,
                    actual: next,
                });
            }
            entries.extend(read);
        }
    }
}
