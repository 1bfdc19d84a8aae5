//! The line index and the checksums of a stored output, on two levels.
//!
//! A table has one entry per frame and covers a span of frames; the outline has one entry per span.
//! The nodes in a table combine to the node of its span, and the nodes of the spans combine to the
//! digest of the output, so everything that is read can be verified against that digest.
//!
//! Most outputs fit one frame. They have no table, and their outline is the length of that frame.

use crate::digest::{self, Digest, DigestNode};
use crate::frames::{FrameScan, OutputScan, SPAN, frame_count};
use crate::{Error, Result};

/// The size of a table entry: stored length, newlines, node.
const ENTRY: usize = 40;
/// The size of the seal after a table.
const SEAL: usize = 8;
/// The size of an outline entry, with the same fields. A length or a count of a span needs 8 bytes.
const SPAN_ENTRY: usize = 48;

/// A stored frame. A frame that compression did not shorten is stored unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredFrame {
    pub stored_len: u32,
    pub scanned: FrameScan,
}

/// A span, as in the outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameSpan {
    pub stored_len: u64,
    pub newlines: u64,
    pub node: DigestNode,
}

/// Everything known about a stored output before its frames are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageOutline {
    pub digest: Digest,
    pub byte_size: u64,
    pub newlines: u64,
    pub spans: Vec<FrameSpan>,
}

impl ImageOutline {
    pub(crate) fn new(scan: &OutputScan, frames: &[StoredFrame]) -> Self {
        let spans = frames.chunks(SPAN).map(|frames| FrameSpan {
            stored_len: frames.iter().map(|frame| u64::from(frame.stored_len)).sum(),
            newlines: frames
                .iter()
                .map(|frame| u64::from(frame.scanned.newlines))
                .sum(),
            node: digest::join(&nodes(frames)),
        });
        Self {
            digest: scan.digest,
            byte_size: scan.byte_size,
            newlines: scan.newlines,
            spans: spans.collect(),
        }
    }

    /// Encodes the spans; for a single frame only its length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        if let Some(frame) = self.only_frame() {
            return frame.stored_len.to_le_bytes().to_vec();
        }
        let mut bytes = Vec::with_capacity(self.spans.len() * SPAN_ENTRY);
        for span in &self.spans {
            bytes.extend(span.stored_len.to_le_bytes());
            bytes.extend(span.newlines.to_le_bytes());
            bytes.extend(span.node);
        }
        bytes
    }

    /// Decodes the spans and verifies them against the digest.
    pub(crate) fn decode(digest: Digest, sizes: (u64, u64), bytes: &[u8]) -> Result<Self> {
        let (byte_size, newlines) = sizes;
        let spans = if frame_count(byte_size) == 1 {
            let stored_len = bytes.try_into().map(u32::from_le_bytes);
            let stored_len = stored_len.map_err(|_| damaged())?.into();
            // A single frame is compared with the digest, so its node is never used.
            let node = digest;
            vec![FrameSpan {
                stored_len,
                newlines,
                node,
            }]
        } else {
            let spans: Option<Vec<FrameSpan>> = bytes.chunks(SPAN_ENTRY).map(decode_span).collect();
            spans.ok_or_else(damaged)?
        };
        // With one span, the nodes of its table are compared with the digest instead.
        let nodes: Vec<DigestNode> = spans.iter().map(|span| span.node).collect();
        let whole = spans.len() as u64 == frame_count(byte_size).div_ceil(SPAN as u64)
            && spans.iter().map(|span| span.newlines).sum::<u64>() == newlines
            && (nodes.len() < 2 || digest::join_root(&nodes) == digest);
        if !whole {
            return Err(damaged());
        }
        Ok(Self {
            digest,
            byte_size,
            newlines,
            spans,
        })
    }

    /// The frame of an output with only one frame.
    pub(crate) fn only_frame(&self) -> Option<StoredFrame> {
        let span = self.spans.first().filter(|_| self.frame_count() == 1)?;
        Some(StoredFrame {
            stored_len: u32::try_from(span.stored_len).ok()?,
            scanned: FrameScan {
                newlines: u32::try_from(span.newlines).ok()?,
                node: span.node,
            },
        })
    }

    pub(crate) fn frame_count(&self) -> u64 {
        frame_count(self.byte_size)
    }

    /// The number of frames in span `number`.
    fn frames_in(&self, number: usize) -> usize {
        let before = (number * SPAN) as u64;
        let left = self.frame_count().saturating_sub(before);
        usize::try_from(left).map_or(SPAN, |left| left.min(SPAN))
    }

    /// The position of the table of span `number`, relative to the end of the frames.
    pub(crate) fn table_place(&self, number: usize) -> (u64, usize) {
        let full = SPAN * ENTRY + SEAL;
        let len = self.frames_in(number) * ENTRY + SEAL;
        ((number * full) as u64, len)
    }

    /// The position of the frames of span `number`.
    pub(crate) fn span_start(&self, number: usize) -> u64 {
        self.spans
            .iter()
            .take(number)
            .map(|span| span.stored_len)
            .sum()
    }

    /// The stored size of all frames.
    pub(crate) fn frames_size(&self) -> u64 {
        self.spans.iter().map(|span| span.stored_len).sum()
    }

    /// The stored size of frames and tables.
    pub(crate) fn image_size(&self) -> u64 {
        if self.frame_count() < 2 {
            return self.frames_size();
        }
        let (start, len) = self.table_place(self.spans.len().saturating_sub(1));
        self.frames_size() + start + len as u64
    }

    /// Decodes the table of span `number` and verifies it against the digest.
    pub(crate) fn decode_table(&self, number: usize, bytes: &[u8]) -> Result<Vec<StoredFrame>> {
        let at = bytes.len().saturating_sub(SEAL);
        let (entries, seal) = bytes.split_at_checked(at).ok_or_else(damaged)?;
        let frames: Option<Vec<StoredFrame>> = entries.chunks(ENTRY).map(decode_frame).collect();
        let frames = frames.ok_or_else(damaged)?;
        let span = self.spans.get(number).ok_or_else(damaged)?;
        let nodes = nodes(&frames);
        // The root of the tree is hashed differently from inner nodes.
        let belongs = if self.spans.len() == 1 {
            digest::join_root(&nodes) == self.digest
        } else {
            digest::join(&nodes) == span.node
        };
        // Nodes prove the bytes of the frames, but not the lengths and counts beside them.
        let sealed = digest::seal(&[entries]) == seal;
        let stored: u64 = frames.iter().map(|frame| u64::from(frame.stored_len)).sum();
        let complete = frames.len() == self.frames_in(number) && stored == span.stored_len;
        if belongs && sealed && complete {
            Ok(frames)
        } else {
            Err(damaged())
        }
    }
}

/// Encodes the table of a span.
pub(crate) fn encode_table(frames: &[StoredFrame]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frames.len() * ENTRY + SEAL);
    for frame in frames {
        bytes.extend(frame.stored_len.to_le_bytes());
        bytes.extend(frame.scanned.newlines.to_le_bytes());
        bytes.extend(frame.scanned.node);
    }
    let seal = digest::seal(&[&bytes]);
    bytes.extend(seal);
    bytes
}

fn decode_frame(bytes: &[u8]) -> Option<StoredFrame> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (newlines, rest) = rest.split_first_chunk::<4>()?;
    Some(StoredFrame {
        stored_len: u32::from_le_bytes(*len),
        scanned: FrameScan {
            newlines: u32::from_le_bytes(*newlines),
            node: rest.try_into().ok()?,
        },
    })
}

fn decode_span(bytes: &[u8]) -> Option<FrameSpan> {
    let (stored_len, rest) = bytes.split_first_chunk::<8>()?;
    let (newlines, rest) = rest.split_first_chunk::<8>()?;
    Some(FrameSpan {
        stored_len: u64::from_le_bytes(*stored_len),
        newlines: u64::from_le_bytes(*newlines),
        node: rest.try_into().ok()?,
    })
}

fn nodes(frames: &[StoredFrame]) -> Vec<DigestNode> {
    frames.iter().map(|frame| frame.scanned.node).collect()
}

fn damaged() -> Error {
    Error::damaged("the index of an output")
}
