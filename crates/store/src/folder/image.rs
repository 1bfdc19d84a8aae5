//! Builds the stored image of an output: compressed frames, followed by their tables.

use std::io::Read;
use std::sync::Arc;

use super::disk::{Dir, TemporaryFile, random_name};
use crate::frames::{FRAME, FrameScan, OutputScan, OutputScanner};
use crate::image::{FrameWriter, ImageOutline};
use crate::{Error, Result};

/// Larger images get their own file; smaller ones are faster in the database.
pub(super) const INLINE: usize = 128 * 1024;
/// The size of file writes.
const WRITE: usize = 1024 * 1024;

/// An image under construction.
pub(super) struct ImageWriter {
    dir: Arc<Dir>,
    /// Its pending bytes are not in a file yet.
    frames: FrameWriter,
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
            frames: FrameWriter::default(),
            file: None,
        }
    }

    /// Adds the next frame.
    pub(super) fn push(&mut self, bytes: &[u8], scanned: FrameScan) -> Result<()> {
        self.frames.push(bytes, scanned);
        // Without a file, the image may still turn out small enough for the database.
        let limit = if self.file.is_some() { WRITE } else { INLINE };
        if self.frames.pending.len() > limit {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(self.dir.unfinished()?);
        }
        if let Some(file) = &mut self.file {
            file.write(&self.frames.pending)?;
            self.frames.pending.clear();
        }
        Ok(())
    }

    /// Adds the tables, and makes the image durable if it is a file.
    pub(super) fn finish(mut self, scan: &OutputScan) -> Result<OutputImage> {
        let outline = self.frames.finish(scan);
        // The tables may have made the image too large for the database.
        if self.frames.pending.len() > INLINE {
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
            ImageBody::Inline(std::mem::take(&mut self.frames.pending))
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
        // `read_to_end` returns less than it may only at the end of the input.
        if frame.len() < FRAME {
            break;
        }
    }
    Ok((writer, scanner.finish()))
}
