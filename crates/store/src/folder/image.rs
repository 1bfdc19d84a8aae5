//! Builds the stored image of an output: compressed frames, followed by their tables.

use std::cell::RefCell;
use std::io::Read;
use std::sync::Arc;

use zstd::bulk::Compressor;

use super::disk::{Dir, TemporaryFile, random_name};
use super::outline::{self, ImageOutline, StoredFrame};
use crate::frames::{FRAME, FrameScan, OutputScan, OutputScanner, SPAN};
use crate::{Error, Result};

/// Larger images get their own file; smaller ones are faster in the database.
pub(super) const INLINE: usize = 128 * 1024;
/// The compression level. Higher levels save little more and are much slower than the disk.
const LEVEL: i32 = 3;
/// The size of file writes.
const WRITE: usize = 1024 * 1024;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// An image under construction.
pub(super) struct ImageWriter {
    dir: Arc<Dir>,
    frames: Vec<StoredFrame>,
    /// Bytes that are not in a file yet.
    pending: Vec<u8>,
    file: Option<TemporaryFile>,
}

/// A complete image, durable if it is a file.
pub(super) struct OutputImage {
    pub outline: ImageOutline,
    pub body: ImageBody,
}

pub(super) enum ImageBody {
    /// To be stored in the database.
    Inline(Vec<u8>),
    /// Stored in this file.
    File(UnclaimedFile),
}

/// A durable file that no row names yet. It is removed if dropped.
pub(super) struct UnclaimedFile {
    dir: Arc<Dir>,
    pub name: String,
    pub named: bool,
}

impl Drop for UnclaimedFile {
    fn drop(&mut self) {
        if !self.named {
            // Collection removes leftovers.
            let _ = self.dir.remove(&self.name);
        }
    }
}

impl ImageWriter {
    pub(super) fn new(dir: &Arc<Dir>) -> Self {
        Self {
            dir: Arc::clone(dir),
            frames: Vec::new(),
            pending: Vec::new(),
            file: None,
        }
    }

    /// Adds the next frame.
    pub(super) fn push(&mut self, bytes: &[u8], scanned: FrameScan) -> Result<()> {
        let before = self.pending.len();
        if !compress(bytes, &mut self.pending) {
            self.pending.extend_from_slice(bytes);
        }
        let stored = self.pending.len() - before;
        self.frames.push(StoredFrame {
            stored_len: u32::try_from(stored).unwrap_or(u32::MAX),
            scanned,
        });
        let limit = if self.file.is_some() { WRITE } else { INLINE };
        if self.pending.len() > limit {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(self.dir.unfinished()?);
        }
        if let Some(file) = &mut self.file {
            file.write(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Adds the tables, and makes the image durable if it is a file.
    pub(super) fn finish(mut self, scan: &OutputScan) -> Result<OutputImage> {
        let outline = ImageOutline::new(scan, &self.frames);
        if self.frames.len() > 1 {
            let tables = self.frames.chunks(SPAN).flat_map(outline::encode_table);
            self.pending.extend(tables);
        }
        if self.pending.len() > INLINE {
            self.flush()?;
        }
        let body = if self.file.is_some() {
            self.flush()?;
            let name = random_name()?;
            if let Some(file) = self.file.take() {
                file.finish(&name)?;
            }
            let dir = Arc::clone(&self.dir);
            let named = false;
            ImageBody::File(UnclaimedFile { dir, name, named })
        } else {
            ImageBody::Inline(std::mem::take(&mut self.pending))
        };
        Ok(OutputImage { outline, body })
    }
}

/// Builds an image from scanned bytes in memory.
pub(super) fn of(dir: &Arc<Dir>, bytes: &[u8], scan: &OutputScan) -> Result<OutputImage> {
    let mut writer = ImageWriter::new(dir);
    for (frame, scanned) in bytes.chunks(FRAME).zip(&scan.frames) {
        writer.push(frame, *scanned)?;
    }
    writer.finish(scan)
}

/// Reads bytes frame by frame. The caller finishes the writer only if the bytes are new.
pub(super) fn read(dir: &Arc<Dir>, input: &mut dyn Read) -> Result<(ImageWriter, OutputScan)> {
    let mut writer = ImageWriter::new(dir);
    let mut scanner = OutputScanner::new();
    let mut frame = Vec::with_capacity(FRAME);
    loop {
        frame.clear();
        let mut rest = Read::take(&mut *input, FRAME as u64);
        rest.read_to_end(&mut frame).map_err(Error::Input)?;
        if frame.is_empty() {
            break;
        }
        writer.push(&frame, scanner.push(&frame))?;
        if frame.len() < FRAME {
            break;
        }
    }
    Ok((writer, scanner.finish()))
}

/// Appends the compressed bytes. Returns false and appends nothing if compression saves too little.
pub(super) fn compress(bytes: &[u8], into: &mut Vec<u8>) -> bool {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Compressor::new(LEVEL).ok();
        }
        let Some(compressor) = kept else { return false };
        let Ok(compressed) = compressor.compress(bytes) else {
            return false;
        };
        // Saving less than a sixteenth is not worth the time of decompression.
        let pays = compressed.len() < bytes.len() - bytes.len() / 16;
        if pays {
            into.extend_from_slice(&compressed);
        }
        pays
    })
}
