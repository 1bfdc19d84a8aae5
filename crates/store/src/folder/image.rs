//! Making an image: an output as it is stored, its frames first, compressed where that pays,
//! then its tables.

use std::io::Read;
use std::sync::Arc;

use super::disk::{Dir, Unfinished, random_name};
use crate::frames::{FRAME, Scan, Scanned, Scanner};
use crate::image::{FrameWriter, Outline};
use crate::{Error, Result};

/// Larger images get a file of their own; below this the database is faster.
pub(super) const INLINE: usize = 128 * 1024;
/// Bytes gathered before they are written to a file.
const WRITE: usize = 1024 * 1024;

/// An image that is being made.
pub(super) struct ImageWriter {
    dir: Arc<Dir>,
    /// What is not yet in a file is pending there.
    frames: FrameWriter,
    file: Option<Unfinished>,
}

/// An image that is complete, and durable if it is a file.
pub(super) struct Image {
    pub outline: Outline,
    pub body: Body,
}

pub(super) enum Body {
    /// To be kept in the database.
    Inline(Vec<u8>),
    /// In a file of this name.
    File(KeptFile),
}

/// A durable file that no row names yet. Dropped, it is removed again.
pub(super) struct KeptFile {
    dir: Arc<Dir>,
    pub name: String,
    pub named: bool,
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        if !self.named {
            // A leftover is swept up later.
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
    pub(super) fn push(&mut self, bytes: &[u8], scanned: Scanned) -> Result<()> {
        self.frames.push(bytes, scanned);
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

    /// Adds the tables and makes the image durable, if it is a file.
    pub(super) fn finish(mut self, scan: &Scan) -> Result<Image> {
        let outline = self.frames.finish(scan);
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
            Body::File(KeptFile { dir, name, named })
        } else {
            Body::Inline(std::mem::take(&mut self.frames.pending))
        };
        Ok(Image { outline, body })
    }
}

/// An image made of bytes that are all there and scanned.
pub(super) fn of(dir: &Arc<Dir>, bytes: &[u8], scan: &Scan) -> Result<Image> {
    let mut writer = ImageWriter::new(dir);
    for (frame, scanned) in bytes.chunks(FRAME).zip(&scan.frames) {
        writer.push(frame, *scanned)?;
    }
    writer.finish(scan)
}

/// Reads bytes frame by frame; gives the writer, to be finished if the bytes are new.
pub(super) fn read(dir: &Arc<Dir>, input: &mut dyn Read) -> Result<(ImageWriter, Scan)> {
    let mut writer = ImageWriter::new(dir);
    let mut scanner = Scanner::new();
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
