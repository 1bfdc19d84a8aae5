//! Splits outputs into frames: the unit of compression, verification and the line index.

use crate::digest::{self, Digest, DigestNode};

/// The size of a frame; the last one may be shorter. Part of the format, because digests of frames
/// depend on it. A power of two, so that a frame is a whole subtree of the BLAKE3 tree.
pub const FRAME: usize = 64 * 1024;
/// The number of frames in a span, the second level of the line index: 16 MiB. A power of two, so
/// that a span is a whole subtree too.
pub(crate) const SPAN: usize = 256;

/// The scan of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameScan {
    /// The number of newlines in it.
    pub newlines: u32,
    /// The node of the digest tree that covers it.
    pub node: DigestNode,
}

/// The scan of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputScan {
    /// BLAKE3 of the bytes.
    pub digest: Digest,
    /// The number of bytes.
    pub byte_size: u64,
    /// The number of newlines.
    pub newlines: u64,
    /// The scans of its frames, in order.
    pub frames: Vec<FrameScan>,
}

/// Builds a [`OutputScan`] frame by frame.
pub(crate) struct OutputScanner {
    scan: OutputScan,
}

impl OutputScanner {
    pub(crate) fn new() -> Self {
        let scan = OutputScan {
            digest: digest::of(b""),
            byte_size: 0,
            newlines: 0,
            frames: Vec::new(),
        };
        Self { scan }
    }

    /// Adds the next frame; only the last may be shorter than [`FRAME`].
    pub(crate) fn push(&mut self, frame: &[u8]) -> FrameScan {
        let scan = &mut self.scan;
        let newlines = memchr::memchr_iter(b'\n', frame).count() as u64;
        let node = if scan.frames.is_empty() {
            // If it remains the only frame, the digest is not built from nodes.
            let (digest, node) = digest::of_first_frame(frame);
            scan.digest = digest;
            node
        } else {
            digest::node(frame, scan.byte_size)
        };
        let scanned = FrameScan {
            newlines: u32::try_from(newlines).unwrap_or(u32::MAX),
            node,
        };
        scan.frames.push(scanned);
        scan.newlines += newlines;
        scan.byte_size += frame.len() as u64;
        scanned
    }

    pub(crate) fn finish(mut self) -> OutputScan {
        if self.scan.frames.len() > 1 {
            let nodes: Vec<DigestNode> = self.scan.frames.iter().map(|frame| frame.node).collect();
            self.scan.digest = digest::join_root(&nodes);
        }
        self.scan
    }
}

/// Scans bytes in memory.
pub(crate) fn scan(bytes: &[u8]) -> OutputScan {
    let mut scanner = OutputScanner::new();
    for frame in bytes.chunks(FRAME) {
        scanner.push(frame);
    }
    scanner.finish()
}

/// The number of frames of `byte_size` bytes.
pub(crate) fn frame_count(byte_size: u64) -> u64 {
    byte_size.div_ceil(FRAME as u64)
}

/// The length of frame `number` of an output of `byte_size` bytes.
pub(crate) fn frame_len(number: u64, byte_size: u64) -> usize {
    let start = number.saturating_mul(FRAME as u64);
    let left = byte_size.saturating_sub(start);
    usize::try_from(left).map_or(FRAME, |left| left.min(FRAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_gives_the_plain_digest() {
        for len in [0, 1, 100, FRAME, FRAME + 1, 5 * FRAME, 6 * FRAME + 77] {
            let bytes: Vec<u8> = (8..15).cycle().take(len).collect();
            let scan = scan(&bytes);
            assert_eq!(scan.digest, digest::of(&bytes), "{len}");
            assert_eq!(scan.byte_size, len as u64);
            assert_eq!(scan.frames.len() as u64, frame_count(len as u64));
            let newlines = bytes.split(|b| *b == b'\n').count() - 1;
            assert_eq!(scan.newlines, newlines as u64);
        }
    }

    #[test]
    fn frame_lengths_add_up_to_the_size() {
        let size = 3 * FRAME as u64 + 5;
        let lens: Vec<usize> = (0..5).map(|n| frame_len(n, size)).collect();
        assert_eq!(lens, [FRAME, FRAME, FRAME, 5, 0]);
    }
}
