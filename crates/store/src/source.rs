//! Reads stored outputs frame by frame.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use crate::binary;
use crate::frames::{FRAME, frame_count};
use crate::{Error, OutputMetadata, Result};

/// The bytes of one output, as a backend provides them: frames of [`FRAME`] bytes, each verified
/// before it is returned.
pub trait FrameSource: Send + Sync {
    /// The number of bytes.
    fn byte_size(&self) -> u64;

    /// The number of newlines.
    fn newlines(&self) -> u64;

    /// Reads frame `number` into `into`, or reports damage.
    fn frame(&self, number: u64, into: &mut Vec<u8>) -> Result<()>;

    /// The frame with newline `number`, counted from 0, and the number of newlines before that
    /// frame.
    fn frame_of_newline(&self, number: u64) -> Result<(u64, u64)>;
}

/// A stored output, open for reading.
#[derive(Clone)]
pub struct OpenOutput {
    metadata: OutputMetadata,
    source: Arc<dyn FrameSource>,
}

impl OpenOutput {
    /// For backends: the result of [`Store::open`](crate::Store::open).
    pub fn new(metadata: OutputMetadata, source: Arc<dyn FrameSource>) -> Self {
        Self { metadata, source }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &OutputMetadata {
        &self.metadata
    }

    /// The size of the output or of its text projection, depending on the form.
    pub fn byte_size(&self) -> u64 {
        self.source.byte_size()
    }

    /// The number of lines; text without a newline is one line.
    pub fn line_count(&self) -> u64 {
        self.source.newlines() + 1
    }

    /// The number of lines as users count them: text after the last newline counts only if it is
    /// not empty.
    ///
    /// ```
    /// # use trimtab_store::{OutputForm, MemoryStore, Put, SessionId, Store};
    /// # let (store, session) = (MemoryStore::new(), SessionId::new("s")?);
    /// for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
    ///     let stored = store.put(&session, Put::new("c", text))?;
    ///     let stored = store.open(&session, stored.id(), OutputForm::Whole)?;
    ///     assert_eq!(stored.shown_lines()?, lines);
    /// }
    /// # Ok::<(), trimtab_store::Error>(())
    /// ```
    pub fn shown_lines(&self) -> Result<u64> {
        let Some(last) = self.byte_size().checked_sub(1) else {
            return Ok(0);
        };
        // Text after the last newline is a line of its own.
        let is_open = self.read_at(last, 1)? != b"\n";
        Ok(self.source.newlines() + u64::from(is_open))
    }

    /// Streams all bytes, one frame at a time. Damage is an error of the reader.
    pub fn reader(&self) -> OutputReader {
        OutputReader::new(Arc::clone(&self.source))
    }

    /// All bytes.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.byte_size()).unwrap_or(0));
        let mut reader = self.reader();
        reader.read_to_end(&mut bytes).map_err(Error::from_read)?;
        Ok(bytes)
    }

    /// At most `len` bytes from `start`; fewer at the end. Reads only the range.
    pub fn read_at(&self, start: u64, len: usize) -> Result<Vec<u8>> {
        let mut reader = self.reader();
        reader.seek(start);
        let mut bytes = Vec::new();
        let mut range = reader.take(len as u64);
        range.read_to_end(&mut bytes).map_err(Error::from_read)?;
        Ok(bytes)
    }

    /// True if the data is binary, based on its first 8 KiB.
    ///
    /// ```
    /// # use trimtab_store::{OutputForm, MemoryStore, Put, SessionId, Store};
    /// # let (store, session) = (MemoryStore::new(), SessionId::new("s")?);
    /// let image = store.put(&session, Put::new("c1", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0"))?;
    /// assert!(store.open(&session, image.id(), OutputForm::Whole)?.is_binary()?);
    /// # Ok::<_, trimtab_store::Error>(())
    /// ```
    pub fn is_binary(&self) -> Result<bool> {
        Ok(binary::is_binary(&self.read_at(0, binary::SAMPLE)?))
    }

    pub(crate) fn source(&self) -> &dyn FrameSource {
        &*self.source
    }
}

impl fmt::Debug for OpenOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenOutput").field(&self.metadata).finish()
    }
}

/// Streams a stored output.
pub struct OutputReader {
    source: Arc<dyn FrameSource>,
    /// The next frame to decode.
    next: u64,
    /// The current frame, and the position in it.
    frame: Vec<u8>,
    at: usize,
}

impl OutputReader {
    fn new(source: Arc<dyn FrameSource>) -> Self {
        Self {
            source,
            next: 0,
            frame: Vec::new(),
            at: 0,
        }
    }

    fn seek(&mut self, start: u64) {
        self.next = start / FRAME as u64;
        self.frame.clear();
        self.at = usize::try_from(start % FRAME as u64).unwrap_or(0);
    }

    fn refill(&mut self) -> Result<()> {
        while self.at >= self.frame.len() && self.next < frame_count(self.source.byte_size()) {
            // After a seek the frame is empty, and `at` is the position in the next one.
            let at = if self.frame.is_empty() { self.at } else { 0 };
            self.source.frame(self.next, &mut self.frame)?;
            self.next += 1;
            self.at = at;
            // A seek past the end of the output: there is nothing to read, and no further frame.
            if at >= self.frame.len() {
                break;
            }
        }
        Ok(())
    }
}

impl Read for OutputReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.refill()?;
        let mut rest = self.frame.get(self.at..).unwrap_or_default();
        let read = rest.read(into)?;
        self.at += read;
        Ok(read)
    }
}

impl fmt::Debug for OutputReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputReader")
            .field("next_frame", &self.next)
            .finish_non_exhaustive()
    }
}
