//! The stored image of an output, in the form that all persistent backends use.
//!
//! An image is a sequence of compressed frames, followed by the tables of its line index. The
//! [`ImageOutline`] is stored beside the image. It proves that whatever is read belongs to the
//! digest of the output, so a backend need not trust the place where the bytes are.

mod compression;
mod outline;
mod stored_image;

pub(crate) use compression::{compress_entry, decompress_entry};
pub(crate) use outline::ImageOutline;
pub(crate) use stored_image::{ImageBytes, StoredImage, damaged};

use crate::frames::{FrameScan, OutputScan, SPAN};
use compression::compress;
use outline::{StoredFrame, encode_table};

/// Writes the frames of an image, then its tables.
#[derive(Default)]
pub(crate) struct FrameWriter {
    frames: Vec<StoredFrame>,
    /// The bytes of the image so far. A backend that writes them elsewhere removes them here.
    pub(crate) pending: Vec<u8>,
}

impl FrameWriter {
    /// Adds the next frame.
    pub(crate) fn push(&mut self, bytes: &[u8], scanned: FrameScan) {
        let before = self.pending.len();
        // Incompressible bytes are stored unchanged.
        if !compress(bytes, &mut self.pending) {
            self.pending.extend_from_slice(bytes);
        }
        let stored = self.pending.len() - before;
        self.frames.push(StoredFrame {
            stored_len: u32::try_from(stored).unwrap_or(u32::MAX),
            scanned,
        });
    }

    /// Adds the tables. They follow the frames, because an output is streamed and the stored
    /// lengths are known only at its end. A single frame needs no table.
    pub(crate) fn finish(&mut self, scan: &OutputScan) -> ImageOutline {
        if self.frames.len() > 1 {
            let tables = self.frames.chunks(SPAN).flat_map(encode_table);
            self.pending.extend(tables);
        }
        ImageOutline::new(scan, &self.frames)
    }
}
