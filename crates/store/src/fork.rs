//! Copies the beginning of a session into another one of the same store.

use std::ops::Range;

use crate::{Error, Result, SessionId, Store, Stream};

/// How many entries are read at a time.
const BATCH: usize = 256;
/// About how many bytes of entries are written at a time.
const WRITTEN_BYTES: usize = 4 << 20;

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
    /// Copies the entries to `session`.
    pub(crate) fn carry_out<S: Store + ?Sized>(
        &self,
        store: &S,
        session: &SessionId,
    ) -> Result<()> {
        // A session that has entries of its origin is linked already.
        if self.has == (0, 0) {
            store.link(session, &self.origin)?;
        }
        // The journal comes first. If we are killed in between, a journal without a log is an
        // unfinished session; a log without its plans would be taken for a complete one.
        self.copy_stream(store, session, Stream::Journal, self.has.1..self.end.1)?;
        self.copy_stream(store, session, Stream::Log, self.has.0..self.end.0)
    }

    fn copy_stream<S: Store + ?Sized>(
        &self,
        store: &S,
        session: &SessionId,
        stream: Stream,
        positions: Range<u64>,
    ) -> Result<()> {
        let mut position = positions.start;
        while position < positions.end {
            let entries = self.read(store, stream, position..positions.end)?;
            let entries: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
            position = store.append(session, stream, position, &entries)?;
        }
        Ok(())
    }

    /// The next entries of the origin. Each write is synced, so they are as many as the memory
    /// allows.
    fn read<S: Store + ?Sized>(
        &self,
        store: &S,
        stream: Stream,
        positions: Range<u64>,
    ) -> Result<Vec<Vec<u8>>> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while bytes < WRITTEN_BYTES {
            let next = positions.start + entries.len() as u64;
            let left = usize::try_from(positions.end - next).unwrap_or(BATCH);
            if left == 0 {
                break;
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
            bytes += read.iter().map(Vec::len).sum::<usize>();
            entries.extend(read);
        }
        Ok(entries)
    }
}
