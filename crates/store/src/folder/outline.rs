//! The line index and the check of a stored output, on two levels.
//!
//! A table has one entry per frame and covers a span of frames; the outline has one entry per
//! span. The nodes in a table lead up to the node of its span, and those of the spans to the
//! digest of the output, so that whatever is read is proven to belong to that digest.

use crate::digest::{self, Digest, Node};
use crate::frames::{SPAN, Scan, Scanned, frame_count};
use crate::{Error, Result};

/// Bytes of one entry of a table.
const ENTRY: usize = 40;
/// Bytes of the seal behind a table.
const SEAL: usize = 8;
/// Bytes of one entry of the outline.
const SPAN_ENTRY: usize = 48;
/// Set in the stored length of a frame that is kept as it came.
const RAW: u32 = 1 << 31;

/// One frame as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub stored_len: u32,
    pub raw: bool,
    pub scanned: Scanned,
}

/// One span as the outline has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub stored_len: u64,
    pub newlines: u64,
    pub node: Node,
}

/// What is known of a stored output before any of its frames is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub digest: Digest,
    pub byte_size: u64,
    pub newlines: u64,
    pub spans: Vec<Span>,
}

impl Outline {
    pub(super) fn new(scan: &Scan, frames: &[Frame]) -> Self {
        let spans = frames.chunks(SPAN).map(|frames| Span {
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

    /// The spans as bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.spans.len() * SPAN_ENTRY);
        for span in &self.spans {
            bytes.extend(span.stored_len.to_le_bytes());
            bytes.extend(span.newlines.to_le_bytes());
            bytes.extend(span.node);
        }
        bytes
    }

    /// Takes the spans from bytes, if they belong to the digest.
    pub(super) fn decode(digest: Digest, sizes: (u64, u64), bytes: &[u8]) -> Result<Self> {
        let (byte_size, newlines) = sizes;
        let spans: Option<Vec<Span>> = bytes.chunks(SPAN_ENTRY).map(decode_span).collect();
        let spans = spans.ok_or_else(damaged)?;
        let nodes: Vec<Node> = spans.iter().map(|span| span.node).collect();
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

    pub(super) fn frame_count(&self) -> u64 {
        frame_count(self.byte_size)
    }

    /// How many frames span `number` has.
    fn frames_in(&self, number: usize) -> usize {
        let before = (number * SPAN) as u64;
        let left = self.frame_count().saturating_sub(before);
        usize::try_from(left).map_or(SPAN, |left| left.min(SPAN))
    }

    /// Where the table of span `number` lies, counted from the end of the frames.
    pub(super) fn table_place(&self, number: usize) -> (u64, usize) {
        let full = SPAN * ENTRY + SEAL;
        let len = self.frames_in(number) * ENTRY + SEAL;
        ((number * full) as u64, len)
    }

    /// Where the frames of span `number` begin.
    pub(super) fn span_start(&self, number: usize) -> u64 {
        self.spans
            .iter()
            .take(number)
            .map(|span| span.stored_len)
            .sum()
    }

    /// Size of all frames as stored.
    pub(super) fn frames_size(&self) -> u64 {
        self.spans.iter().map(|span| span.stored_len).sum()
    }

    /// Size of frames and tables.
    pub(super) fn image_size(&self) -> u64 {
        let last = self.spans.len().saturating_sub(1);
        let (start, len) = self.table_place(last);
        let tables = if self.spans.is_empty() {
            0
        } else {
            start + len as u64
        };
        self.frames_size() + tables
    }

    /// Reads the table of span `number`, if it belongs to the digest.
    pub(super) fn decode_table(&self, number: usize, bytes: &[u8]) -> Result<Vec<Frame>> {
        let at = bytes.len().saturating_sub(SEAL);
        let (entries, seal) = bytes.split_at_checked(at).ok_or_else(damaged)?;
        let frames: Option<Vec<Frame>> = entries.chunks(ENTRY).map(decode_frame).collect();
        let frames = frames.ok_or_else(damaged)?;
        let span = self.spans.get(number).ok_or_else(damaged)?;
        let nodes = nodes(&frames);
        let belongs = match (self.spans.len(), frames.len()) {
            // The one frame is checked against the digest itself.
            (1, 1) => true,
            (1, _) => digest::join_root(&nodes) == self.digest,
            _ => digest::join(&nodes) == span.node,
        };
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

/// The table of a span, as it is stored.
pub(super) fn encode_table(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frames.len() * ENTRY + SEAL);
    for frame in frames {
        let flag = if frame.raw { RAW } else { 0 };
        bytes.extend((frame.stored_len | flag).to_le_bytes());
        bytes.extend(frame.scanned.newlines.to_le_bytes());
        bytes.extend(frame.scanned.node);
    }
    let seal = digest::seal(&[&bytes]);
    bytes.extend(seal);
    bytes
}

fn decode_frame(bytes: &[u8]) -> Option<Frame> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (newlines, rest) = rest.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len);
    Some(Frame {
        stored_len: len & !RAW,
        raw: len & RAW != 0,
        scanned: Scanned {
            newlines: u32::from_le_bytes(*newlines),
            node: rest.try_into().ok()?,
        },
    })
}

fn decode_span(bytes: &[u8]) -> Option<Span> {
    let (stored_len, rest) = bytes.split_first_chunk::<8>()?;
    let (newlines, rest) = rest.split_first_chunk::<8>()?;
    Some(Span {
        stored_len: u64::from_le_bytes(*stored_len),
        newlines: u64::from_le_bytes(*newlines),
        node: rest.try_into().ok()?,
    })
}

fn nodes(frames: &[Frame]) -> Vec<Node> {
    frames.iter().map(|frame| frame.scanned.node).collect()
}

fn damaged() -> Error {
    Error::damaged("the index of an output")
}
