//! Feeds an output to the searcher, with very long lines split into windows.
//!
//! A line longer than a frame is split at the end of a frame by an inserted newline, and the last
//! bytes before the split are repeated after it, so that a match across the split is found. The
//! positions of the splits are recorded to correct line numbers and offsets.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};

use super::frame_prefetch::FramePrefetch;
use super::pattern::LONGEST_LITERAL;
use crate::frames::FRAME;

/// The number of bytes repeated after a split.
pub(super) const OVERLAP: usize = LONGEST_LITERAL;
/// A line is split at the end of the frame in which it reaches this length.
const WINDOW: usize = FRAME;

/// The cost of reading a byte, and the remaining budget.
#[derive(Clone, Copy)]
pub(super) struct WorkBudget<'a> {
    pub cost: u64,
    pub remaining: &'a Cell<u64>,
}

pub(super) struct SearchInput<'a> {
    frames: FramePrefetch<'a>,
    /// The decoded frames, and the current one.
    group: Vec<Vec<u8>>,
    frame: usize,
    at: usize,
    /// The current split: a newline and the repeated bytes.
    inserted: Vec<u8>,
    inserted_at: usize,
    /// Bytes passed to the searcher so far.
    bytes_given: u64,
    /// Bytes since the last newline of the output.
    run: usize,
    /// The positions of windows after splits, in the searcher's input.
    breaks: &'a RefCell<Vec<u64>>,
    expired: Option<&'a dyn Fn() -> bool>,
    has_expired: &'a Cell<bool>,
    work: WorkBudget<'a>,
}

impl<'a> SearchInput<'a> {
    pub(super) fn new(
        frames: FramePrefetch<'a>,
        breaks: &'a RefCell<Vec<u64>>,
        (expired, has_expired): (Option<&'a dyn Fn() -> bool>, &'a Cell<bool>),
        work: WorkBudget<'a>,
    ) -> Self {
        Self {
            frames,
            group: Vec::new(),
            frame: 0,
            at: 0,
            inserted: Vec::new(),
            inserted_at: 0,
            bytes_given: 0,
            run: 0,
            breaks,
            expired,
            has_expired,
            work,
        }
    }

    /// Advances to the next frame; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.note_end_of_frame();
        self.frame += 1;
        self.at = 0;
        if self.frame < self.group.len() {
            self.insert_break();
            return Ok(true);
        }
        let used = std::mem::take(&mut self.group);
        // Keep the end of the last frame: the next group needs it for the overlap.
        let tail = tail(used.last()).to_vec();
        self.frame = 0;
        let Some(group) = self.frames.next(used)? else {
            return Ok(false);
        };
        self.group = group;
        self.insert_break_after(&tail);
        Ok(true)
    }

    fn note_end_of_frame(&mut self) {
        let frame = self.group.get(self.frame).map_or(&[][..], Vec::as_slice);
        // Only the length since the last newline matters for splitting.
        self.run = match memchr::memrchr(b'\n', frame) {
            Some(newline) => frame.len() - newline - 1,
            None => self.run + frame.len(),
        };
    }

    fn insert_break(&mut self) {
        let before = self.frame.checked_sub(1).and_then(|at| self.group.get(at));
        let tail = tail(before).to_vec();
        self.insert_break_after(&tail);
    }

    fn insert_break_after(&mut self, tail: &[u8]) {
        if self.run < WINDOW {
            return;
        }
        self.inserted.clear();
        self.inserted.push(b'\n');
        self.inserted.extend_from_slice(tail);
        self.inserted_at = 0;
        // The window starts after the inserted newline.
        self.breaks.borrow_mut().push(self.bytes_given + 1);
    }
}

fn tail(frame: Option<&Vec<u8>>) -> &[u8] {
    let frame = frame.map_or(&[][..], Vec::as_slice);
    let skip = frame.len().saturating_sub(OVERLAP);
    frame.get(skip..).unwrap_or_default()
}

impl Read for SearchInput<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Check the time per read, which is a buffer of many lines.
        if self.expired.is_some_and(|expired| expired()) {
            self.has_expired.set(true);
            // An early end of the input, so that the searcher reports the matches so far.
            return Ok(0);
        }
        if self.work.remaining.get() == 0 {
            return Ok(0);
        }
        loop {
            // Inserted bytes come first, then the frame.
            let mut inserted = self.inserted.get(self.inserted_at..).unwrap_or_default();
            let read = inserted.read(into)?;
            self.inserted_at += read;
            let read = if read > 0 {
                read
            } else {
                let frame = self.group.get(self.frame).map_or(&[][..], Vec::as_slice);
                let mut rest = frame.get(self.at..).unwrap_or_default();
                let read = rest.read(into)?;
                self.at += read;
                read
            };
            self.bytes_given += read as u64;
            let cost = (read as u64).saturating_mul(self.work.cost);
            self.work
                .remaining
                .set(self.work.remaining.get().saturating_sub(cost));
            if read > 0 || into.is_empty() || !self.advance()? {
                return Ok(read);
            }
        }
    }
}
