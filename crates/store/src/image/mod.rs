//! An image: an output as a backend stores it.
//!
//! First its frames, compressed where that pays, then the tables of its line index. The
//! [`Outline`] is kept beside the image. It proves that whatever is read belongs to the output's
//! digest, so a backend need not trust the place where the bytes lie.

mod compression;
mod outline;
mod stored;

pub(crate) use compression::{compress, decompress};
pub(crate) use outline::Outline;
pub(crate) use stored::{ImageBytes, StoredImage, damaged};

use crate::frames::{SPAN, Scan, Scanned};
use outline::{Frame, encode_table};

/// Writes the frames of an image, then its tables.
#[derive(Default)]
pub(crate) struct FrameWriter {
    frames: Vec<Frame>,
    /// Bytes of the image that nobody took yet. Whoever writes them elsewhere clears this.
    pub(crate) pending: Vec<u8>,
}

impl FrameWriter {
    /// Adds the next frame.
    pub(crate) fn push(&mut self, bytes: &[u8], scanned: Scanned) {
        let before = self.pending.len();
        if !compress(bytes, &mut self.pending) {
            self.pending.extend_from_slice(bytes);
        }
        let stored = self.pending.len() - before;
        self.frames.push(Frame {
            stored_len: u32::try_from(stored).unwrap_or(u32::MAX),
            scanned,
        });
    }

    /// Adds the tables. A single frame needs none.
    pub(crate) fn finish(&mut self, scan: &Scan) -> Outline {
        if self.frames.len() > 1 {
            let tables = self.frames.chunks(SPAN).flat_map(encode_table);
            self.pending.extend(tables);
        }
        Outline::new(scan, &self.frames)
    }
}
