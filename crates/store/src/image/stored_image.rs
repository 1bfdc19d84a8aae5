//! Reads an image frame by frame, and verifies each frame before it is returned.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use super::compression::decompress;
use super::outline::{ImageOutline, StoredFrame};
use crate::digest;
use crate::frames::{FRAME, SPAN, frame_len};
use crate::{Error, FrameSource, Result};

thread_local! {
    /// The compressed bytes of a frame, reused by all reads of a thread.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The place where a backend keeps the bytes of an image.
pub(crate) trait ImageBytes: Send + Sync {
    /// Fills `into` with the bytes from `start` on. An image that is too short is damaged.
    fn read_exact_at(&self, start: u64, into: &mut [u8]) -> Result<()>;
}

/// An image in memory.
impl ImageBytes for Vec<u8> {
    fn read_exact_at(&self, start: u64, into: &mut [u8]) -> Result<()> {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.saturating_add(into.len());
        into.copy_from_slice(self.get(start..end).ok_or_else(damaged)?);
        Ok(())
    }
}

/// An image, open for reading.
pub(crate) struct StoredImage {
    outline: ImageOutline,
    place: Box<dyn ImageBytes>,
    /// The last used table, with the number of its span.
    table: Mutex<Option<(usize, Arc<Vec<StoredFrame>>)>>,
}

impl StoredImage {
    pub(crate) fn new(outline: ImageOutline, place: Box<dyn ImageBytes>) -> Self {
        Self {
            outline,
            place,
            table: Mutex::default(),
        }
    }

    /// Reads everything once to verify it.
    pub(crate) fn verify(&self) -> Result<()> {
        let mut frame = Vec::new();
        (0..self.outline.frame_count()).try_for_each(|number| self.frame(number, &mut frame))
    }

    fn table(&self, span: usize) -> Result<Arc<Vec<StoredFrame>>> {
        // Sequential reads use the same table many times, so keep the last one.
        let mut kept = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((number, table)) if *number == span => Ok(Arc::clone(table)),
            _ => {
                let (start, len) = self.outline.table_place(span);
                let mut bytes = vec![0; len];
                self.place
                    .read_exact_at(self.outline.frames_size() + start, &mut bytes)?;
                let table = Arc::new(self.outline.decode_table(span, &bytes)?);
                *kept = Some((span, Arc::clone(&table)));
                Ok(table)
            }
        }
    }

    /// The entry of a frame, and the position of its bytes.
    fn find(&self, number: u64) -> Result<(StoredFrame, u64)> {
        if let Some(frame) = self.outline.only_frame() {
            return Ok((frame, 0));
        }
        let (span, at) = split(number);
        let table = self.table(span)?;
        let frame = table.get(at).copied().ok_or_else(damaged)?;
        let before = table
            .iter()
            .take(at)
            .map(|frame| u64::from(frame.stored_len));
        Ok((frame, self.outline.span_start(span) + before.sum::<u64>()))
    }

    /// True if `bytes` are the original bytes of a frame.
    fn belongs(&self, number: u64, frame: &StoredFrame, bytes: &[u8]) -> bool {
        // A single frame is the root of the tree, which is hashed differently from an inner node.
        if self.outline.frame_count() == 1 {
            return digest::of(bytes) == self.outline.digest;
        }
        digest::node(bytes, number * FRAME as u64) == frame.scanned.node
    }
}

impl FrameSource for StoredImage {
    fn byte_size(&self) -> u64 {
        self.outline.byte_size
    }

    fn newlines(&self) -> u64 {
        self.outline.newlines
    }

    fn frame(&self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        let (frame, start) = self.find(number)?;
        let stored_len = usize::try_from(frame.stored_len).unwrap_or(usize::MAX);
        let len = frame_len(number, self.outline.byte_size);
        // A stored frame is never longer than the original: a larger length is damage.
        if stored_len > len {
            return Err(damaged());
        }
        // A compressed frame is always shorter, so a frame of full length is not compressed.
        let whole = if stored_len == len {
            into.resize(stored_len, 0);
            self.place.read_exact_at(start, into)?;
            true
        } else {
            SCRATCH.with_borrow_mut(|scratch| {
                scratch.resize(stored_len, 0);
                self.place.read_exact_at(start, scratch)?;
                Ok::<_, Error>(decompress(scratch, len, into))
            })?
        };
        if whole && self.belongs(number, &frame, into) {
            return Ok(());
        }
        // Never return wrong bytes, not even next to an error.
        into.clear();
        Err(damaged())
    }

    fn frame_of_newline(&self, number: u64) -> Result<(u64, u64)> {
        if self.outline.only_frame().is_some() && number < self.outline.newlines {
            return Ok((0, 0));
        }
        let mut before = 0;
        for (at, span) in self.outline.spans.iter().enumerate() {
            if number < before + span.newlines {
                return self.find_newline(at, number, before);
            }
            before += span.newlines;
        }
        Err(damaged())
    }
}

impl StoredImage {
    /// The frame with newline `number` in a span, and the newlines before it. `before` is the
    /// number of newlines before the span.
    fn find_newline(&self, span: usize, number: u64, mut before: u64) -> Result<(u64, u64)> {
        for (at, frame) in self.table(span)?.iter().enumerate() {
            let after = before + u64::from(frame.scanned.newlines);
            if number < after {
                return Ok(((span * SPAN + at) as u64, before));
            }
            before = after;
        }
        Err(damaged())
    }
}

/// The span of a frame, and its index in it.
fn split(number: u64) -> (usize, usize) {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    (number / SPAN, number % SPAN)
}

pub(crate) fn damaged() -> Error {
    Error::damaged("an output")
}
