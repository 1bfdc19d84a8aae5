//! Selects the lines that a view shows.

use std::ops::Range;

use trimtab_model::work;

use super::ShownCounts;
use super::lines::{Likeness, TextLines};
use crate::view::figures::{first_bytes, grouped, last_bytes, longest_start};

/// After this many lines that did not fit, a step of the selection ends.
const MISSES: u32 = 4;
/// A line may take this fraction of the room, if there are that many lines.
const LINE_SHARE: u64 = 12;
/// A line may always take the room of this many gap lines, because cutting a short one saves
/// nothing.
const LINE_LEAST: u64 = 4;
/// A line with more bytes for each unit of its limit cannot fit: the measures in use count a unit
/// for at most four bytes.
const BYTES_PER_UNIT: u64 = 64;

/// The selected lines of a text, and the room that they take.
pub(super) struct LineSelection<'a> {
    lines: &'a TextLines<'a>,
    measure: &'a dyn Fn(&str) -> u64,
    room: u64,
    /// The limit of one line, and the cost of a gap.
    line_room: u64,
    gap_cost: u64,
    /// The shown bytes of each line, with its newline; 0 for a line that is left out.
    shown: Vec<usize>,
    used: u64,
    gaps: u64,
}

impl<'a> LineSelection<'a> {
    /// An empty selection with `room`.
    pub(super) fn new(
        room: u64,
        lines: &'a TextLines<'a>,
        measure: &'a dyn Fn(&str) -> u64,
    ) -> Self {
        let count = lines.len();
        let likeness = if lines.has_repetitions() {
            Likeness::ButForNumbers
        } else {
            Likeness::Different
        };
        let gap_cost = measure(&gap_line(&(count..count + 2), likeness));
        // One long line must not take the room of all others.
        let fair = room / (count as u64).clamp(1, LINE_SHARE);
        Self {
            lines,
            measure,
            room,
            line_room: fair.max(gap_cost.saturating_mul(LINE_LEAST)).min(room),
            gap_cost,
            shown: vec![0; count],
            used: 0,
            gaps: 1,
        }
    }

    /// Takes what is most useful first, and always leaves room for what comes after it.
    pub(super) fn fill(&mut self, errors: &[Range<usize>]) {
        let (lines, count) = (self.lines, self.lines.len());
        let is_new = |at: &usize| !lines.is_repeated(*at);
        // The first error is the cause, the last one the result.
        let errors = || inward(errors.len()).filter_map(|at| errors.get(at));
        let traces = || errors().flat_map(|error| error.start.saturating_sub(1)..error.end);
        self.take_all((0..count).filter(is_new), 15);
        self.take_all((0..count).rev().filter(is_new), 35);
        self.take_all(errors().map(|error| error.start), 65);
        self.take_all(traces().filter(is_new), 85);
        self.take_all(inward(count).filter(is_new), 100);
        self.take_all(inward(count), 100);
        self.lengthen();
    }

    /// Takes lines until `percent` of the room is used.
    fn take_all(&mut self, wanted: impl Iterator<Item = usize>, percent: u64) {
        // `room * percent / 100` without overflow for a huge room.
        let limit = self.room / 100 * percent + self.room % 100 * percent / 100;
        let mut misses = 0;
        for at in wanted {
            misses += u32::from(!self.take(at, limit));
            if misses > MISSES {
                return;
            }
        }
    }

    /// Takes line `at` if at most `limit` of the room is used then. Returns false if it does not
    /// fit.
    fn take(&mut self, at: usize, limit: u64) -> bool {
        if self.has(at) {
            return true;
        }
        let Some((cost, bytes)) = self.cost(at, self.line_room) else {
            return false;
        };
        let gaps = self.gaps_with(at);
        if self.used + cost + gaps * self.gap_cost > limit {
            return false;
        }
        self.used += cost;
        self.gaps = gaps;
        self.set_shown(at, bytes);
        true
    }

    fn has(&self, at: usize) -> bool {
        self.shown.get(at).is_some_and(|bytes| *bytes > 0)
    }

    fn set_shown(&mut self, at: usize, bytes: usize) {
        if let Some(shown) = self.shown.get_mut(at) {
            *shown = bytes;
        }
    }

    /// The number of gaps once line `at` is shown: it may split one in two or close one.
    fn gaps_with(&self, at: usize) -> u64 {
        // Each missing neighbour bounds a gap, and the gap that the line was in is gone.
        let left = at.checked_sub(1).is_some_and(|at| !self.has(at));
        let right = at + 1 < self.shown.len() && !self.has(at + 1);
        (self.gaps + u64::from(left) + u64::from(right)).saturating_sub(1)
    }

    /// The cost of line `at` within `limit`, and the number of its bytes shown for that; none if
    /// nothing of it can be shown.
    fn cost(&self, at: usize, limit: u64) -> Option<(u64, usize)> {
        work::step(1);
        let line = self.lines.text_of(at..at + 1);
        let most = usize::try_from(limit.saturating_mul(BYTES_PER_UNIT)).unwrap_or(usize::MAX);
        if line.len() <= most {
            let whole = (self.measure)(line);
            if whole <= limit {
                return Some((whole, line.len()));
            }
        }
        // A line that is cut lacks at least one byte besides its newline.
        let most = most.min(line.trim_end_matches('\n').len().saturating_sub(1));
        let cost = |bytes: usize| (self.measure)(&ends(line, bytes).0);
        let bytes = longest_start(line, most, |bytes| cost(bytes) <= limit);
        (bytes > 0).then(|| (cost(bytes), bytes))
    }

    /// Gives the remaining room to the lines that are cut.
    fn lengthen(&mut self) {
        for at in 0..self.lines.len() {
            let line = self.lines.text_of(at..at + 1);
            let shown = self.shown.get(at).copied().unwrap_or_default();
            if shown == 0 || shown == line.len() {
                continue;
            }
            let before = (self.measure)(&ends(line, shown).0);
            let free = self
                .room
                .saturating_sub(self.used + self.gaps * self.gap_cost);
            if let Some((cost, longer)) = self.cost(at, before + free) {
                self.used = self.used.saturating_sub(before) + cost;
                self.set_shown(at, longer);
            }
        }
    }

    /// The selected lines with gaps between them, and their counts.
    pub(super) fn render(&self) -> (String, ShownCounts) {
        let (mut text, mut counts, mut missing) = (String::new(), ShownCounts::default(), None);
        let count = self.lines.len();
        let mut at = 0;
        while at < count {
            let shown = self.shown.get(at).copied().unwrap_or_default();
            let end = (at..count).find(|at| self.has(*at)).unwrap_or(count);
            let lines = at..end.max(at + 1);
            let whole = self.lines.text_of(lines.clone());
            let (ours, bytes) = if shown == 0 {
                let likeness = self.lines.likeness_of(lines.clone());
                (gap_line(&lines, likeness), 0)
            } else {
                ends(whole, shown)
            };
            // Lines that are no longer than ours are shown instead.
            if shown == whole.len() || whole.len() <= ours.len() {
                text.push_str(whole);
                counts.lines += lines.len();
                counts.bytes += whole.len();
            } else {
                text.push_str(&ours);
                counts.lines += usize::from(shown > 0);
                counts.bytes += bytes;
                missing = missing.or(Some(at));
            }
            at = lines.end;
        }
        // The last line of the text may have no newline, and the marker must be on its own line.
        if !text.ends_with('\n') {
            text.push('\n');
        }
        counts.first_missing = missing.unwrap_or(0);
        (text, counts)
    }
}

/// The line that represents the omitted lines of `gap`.
fn gap_line(gap: &Range<usize>, likeness: Likeness) -> String {
    let (before, first, last) = (gap.start, gap.start + 1, gap.end);
    let like = match likeness {
        Likeness::Equal => format!(", all equal to line {before}"),
        Likeness::ButForNumbers => format!(", like line {before} but for numbers"),
        Likeness::Different => String::new(),
    };
    if first == last {
        format!("[… line {first} left out{like}]\n")
    } else {
        format!("[… lines {first}-{last} left out{like}]\n")
    }
}

/// The start and the end of a line, `bytes` in total, with the number of bytes missing between
/// them, and the bytes that are really shown.
fn ends(line: &str, bytes: usize) -> (String, usize) {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let end = bytes / 3;
    let (start, end) = (first_bytes(line, bytes - end), last_bytes(line, end));
    let shown = start.len() + end.len();
    let missing = grouped(line.len().saturating_sub(shown));
    (format!("{start}[… {missing} bytes left out]{end}\n"), shown)
}

/// The numbers below `count` from both ends inward: first, last, second, second to last, and so on.
fn inward(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| {
        if at % 2 == 0 {
            at / 2
        } else {
            count - 1 - at / 2
        }
    })
}
