//! Writes that are executed together.

use std::fmt;

use trimtab_model::Ref;

use crate::frames::OutputScan;
use crate::put::OutputLabels;
use crate::refs::SessionSecret;
use crate::{Put, Result, SessionId, Store, Stream};

/// Generates the refs of one session, so that an output can be named before it is written.
///
/// The owner must ensure that no ref leaves the process before its bytes are durable, as
/// [`StagedStore`](crate::StagedStore) does.
#[derive(Clone)]
pub struct RefMinter {
    secret: SessionSecret,
}

impl RefMinter {
    pub(crate) fn new(secret: SessionSecret) -> Self {
        Self { secret }
    }

    pub(crate) fn secret(&self) -> &SessionSecret {
        &self.secret
    }

    /// The ref that a put of these bytes would return. `text` is the text projection.
    pub(crate) fn name(&self, call: &str, whole: &OutputScan, text: Option<&str>) -> Ref {
        let id = self.secret.ref_id(call, &whole.digest);
        // Lines are counted in the text projection, because the retrieval tools read that.
        let newlines = text.map(|text| memchr::memchr_iter(b'\n', text.as_bytes()).count());
        let newlines = newlines.map_or(whole.newlines, |newlines| newlines as u64);
        Ref::issue(id, Some(whole.byte_size), Some(newlines + 1))
    }
}

impl fmt::Debug for RefMinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret must not reach a log.
        f.write_str("RefMinter")
    }
}

/// One write to a session.
#[derive(Clone, Debug)]
pub struct Write(pub(crate) WriteKind);

/// The content of a write.
#[derive(Clone, Debug)]
pub(crate) enum WriteKind {
    /// An output, with the id that its ref must get.
    Put {
        id: String,
        labels: OutputLabels,
        bytes: Vec<u8>,
        /// The scan of the bytes, from which the id was made.
        scan: OutputScan,
        text: Option<String>,
    },
    /// Entries of a log or journal.
    Append {
        stream: Stream,
        expected: u64,
        entries: Vec<Vec<u8>>,
    },
}

impl Write {
    /// Appends entries at the expected position.
    pub(crate) fn append(stream: Stream, expected: u64, entries: &[&[u8]]) -> Self {
        Self(WriteKind::Append {
            stream,
            expected,
            entries: entries.iter().map(|entry| entry.to_vec()).collect(),
        })
    }

    /// The approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        match &self.0 {
            WriteKind::Put { bytes, text, .. } => {
                bytes.len() + text.as_ref().map_or(0, String::len)
            }
            WriteKind::Append { entries, .. } => entries.iter().map(Vec::len).sum(),
        }
    }

    /// Executes the write on its own.
    pub(crate) fn carry_out<S: Store + ?Sized>(
        &self,
        store: &S,
        session: &SessionId,
    ) -> Result<()> {
        match &self.0 {
            WriteKind::Put {
                id,
                labels,
                bytes,
                text,
                ..
            } => {
                let mut put = Put::new(&labels.call, bytes)
                    .tool(&labels.tool)
                    .media_type(&labels.media_type);
                put.text = text.as_deref();
                let stored = store.put(session, put)?;
                check_id(id, stored.id())
            }
            WriteKind::Append {
                stream,
                expected,
                entries,
            } => {
                let entries: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
                store.append(session, *stream, *expected, &entries)?;
                Ok(())
            }
        }
    }
}

/// Fails if an output got another id than the one that was already given out. That happens if its
/// session was removed and created again, with another secret.
pub(crate) fn check_id(expected: &str, id: &str) -> Result<()> {
    if expected == id {
        Ok(())
    } else {
        Err(crate::Error::NotFound)
    }
}
