//! Selects the lines that a view shows.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use trimtab_model::{Ref, work};

use super::clip::clip;
use super::fold::Folds;
use super::line_waves::LineWave;
use super::lines::TextLines;
use super::marker::{self, ShownCounts};

/// After this many lines that did not fit, the rest of a wave is skipped.
const MISSES: u32 = 4;
/// A line may take this fraction of the room, if there are that many lines.
const LINE_SHARE: u64 = 12;

/// A line may always take the room of this many gap lines, because cutting a short one saves
/// nothing.
const LINE_LEAST: u64 = 4;

/// The selected lines of a text, and the room that they take.
pub(super) struct LineSelection<'a> {
    lines: &'a TextLines<'a>,
    folds: &'a Folds,
    measure: &'a dyn Fn(&str) -> u64,
    /// The room, without the first gap.
    room: u64,
    /// The limit of one line, and the cost of a gap.
    line_room: u64,
    gap_cost: u64,
    chosen: Vec<bool>,
    /// Lines that are cut, with the number of shown bytes.
    clipped: BTreeMap<usize, usize>,
    /// The costs of lines that are too long to be shown in full, by line and limit. Waves ask for
    /// the same line again, and each answer takes many measurements.
    long_costs: HashMap<(usize, u64), Option<(u64, usize)>>,
    used: u64,
    gaps: u64,
}

impl<'a> LineSelection<'a> {
    /// An empty selection with `room`.
    pub(super) fn new(
        room: u64,
        lines: &'a TextLines<'_>,
        folds: &'a Folds,
        measure: &'a dyn Fn(&str) -> u64,
    ) -> Self {
        let gap_cost = measure(&marker::longest_gap(lines.len(), folds));
        let count = lines.len().max(1) as u64;
        // There is at least one gap, unless the text has only one line.
        let first_gap = if count == 1 { 0 } else { gap_cost };
        let room = room.saturating_sub(first_gap);
        // One long line must not take the room of all others.
        let fair = room / count.min(LINE_SHARE);
        Self {
            lines,
            folds,
            measure,
            room,
            line_room: fair.max(gap_cost.saturating_mul(LINE_LEAST)).min(room),
            gap_cost,
            chosen: vec![false; lines.len()],
            clipped: BTreeMap::new(),
            long_costs: HashMap::new(),
            used: 0,
            gaps: 1,
        }
    }

    /// Takes the lines of each wave in turn. Repeated lines wait until all others had their chance.
    pub(super) fn fill(&mut self, waves: Vec<LineWave<'_>>) {
        let folds = self.folds;
        for (until, lines) in waves {
            // `room * until / 100` without overflow for a huge room.
            let limit = self.room / 100 * until + self.room % 100 * until / 100;
            self.take_all(lines.filter(|at| !folds.hides(*at)), limit);
        }
        // Now the repeated lines, too.
        self.take_all(0..self.lines.len(), self.room);
        // Closing these gaps costs nothing. What is left then goes to lines that are cut.
        self.close_small_gaps();
        self.stretch();
    }

    fn take_all(&mut self, wanted: impl Iterator<Item = usize>, limit: u64) {
        let mut misses = 0;
        for at in wanted {
            misses += u32::from(!self.take(at, limit));
            if misses > MISSES {
                return;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.chosen.contains(&true)
    }

    fn has(&self, at: usize) -> bool {
        self.chosen.get(at).copied().unwrap_or(false)
    }

    /// Takes line `at` if at most `limit` of the room is used then. Returns false if it does not
    /// fit.
    fn take(&mut self, at: usize, limit: u64) -> bool {
        // A line that is already shown is no miss.
        if at >= self.lines.len() || self.has(at) {
            return at < self.lines.len();
        }
        let line = self.lines.line_with_newline(at);
        // A blank line alone between gaps says nothing. It is taken later, with a neighbour.
        if at > 0 && line.trim().is_empty() && !self.has(at - 1) && !self.has(at + 1) {
            return true;
        }
        let Some((cost, bytes)) = self.cost(at, self.line_room) else {
            return false;
        };
        let gaps = self.gaps_with(at);
        // The first gap was taken from the room at the start.
        if self.used + cost + gaps.saturating_sub(1) * self.gap_cost > limit {
            return false;
        }
        self.used += cost;
        self.gaps = gaps;
        if let Some(chosen) = self.chosen.get_mut(at) {
            *chosen = true;
        }
        if bytes < line.len() {
            self.clipped.insert(at, bytes);
        }
        true
    }

    /// The cost of line `at` within `limit`, and the number of its bytes shown for that; none if no
    /// prefix of it can be shown.
    fn cost(&mut self, at: usize, limit: u64) -> Option<(u64, usize)> {
        work::step(1);
        let line = self.lines.line_with_newline(at);
        // The measures in use count a unit for at most four bytes, so a line this long cannot fit.
        let most = usize::try_from(limit.saturating_mul(64)).unwrap_or(usize::MAX);
        if line.len() <= most {
            let whole = (self.measure)(line);
            if whole <= limit {
                return Some((whole, line.len()));
            }
        }
        if let Some(known) = self.long_costs.get(&(at, limit)) {
            return *known;
        }
        let body = line.strip_suffix('\n').unwrap_or(line);
        let costs = |bytes: usize| (self.measure)(&clipped(body, bytes));
        let kept = clip(body, most, limit, costs);
        let kept = kept.filter(|kept| *kept > 0 && *kept < body.len());
        let cost = kept.map(|kept| (costs(kept), kept));
        self.long_costs.insert((at, limit), cost);
        cost
    }

    /// The number of gaps once line `at` is shown: it may split one in two or close one.
    fn gaps_with(&self, at: usize) -> u64 {
        // Each missing neighbour bounds a gap, and the gap that the line was in is gone.
        let left = at.checked_sub(1).is_some_and(|at| !self.has(at));
        let right = at + 1 < self.chosen.len() && !self.has(at + 1);
        (self.gaps + u64::from(left) + u64::from(right)).saturating_sub(1)
    }

    /// The runs of omitted lines.
    fn gaps(&self) -> Vec<Range<usize>> {
        let mut gaps: Vec<Range<usize>> = Vec::new();
        for at in (0..self.lines.len()).filter(|at| !self.has(*at)) {
            match gaps.last_mut().filter(|gap| gap.end == at) {
                Some(gap) => gap.end = at + 1,
                None => gaps.push(at..at + 1),
            }
        }
        gaps
    }

    /// Shows the lines of gaps that cost no more than the gap line itself.
    fn close_small_gaps(&mut self) {
        for gap in self.gaps().into_iter().filter(|gap| gap.len() <= 4) {
            let costs = gap
                .clone()
                .map(|at| (self.measure)(self.lines.line_with_newline(at)));
            if costs.sum::<u64>() <= self.gap_cost {
                for at in gap {
                    self.take(at, self.room);
                }
            }
        }
    }

    /// Gives the remaining room to the lines that are cut.
    fn stretch(&mut self) {
        for (at, bytes) in std::mem::take(&mut self.clipped) {
            let taken = self.used + self.gaps.saturating_sub(1) * self.gap_cost;
            let before = (self.measure)(&clipped(self.lines.get(at), bytes));
            // Its own cost is available again.
            let limit = before + self.room.saturating_sub(taken);
            let line = self.lines.line_with_newline(at);
            let (cost, longer) = self.cost(at, limit).unwrap_or((before, bytes));
            self.used = self.used + cost - before.min(self.used);
            if longer < line.len() {
                self.clipped.insert(at, longer);
            }
        }
    }

    /// Writes the chosen lines with gaps between them, and the marker after them.
    /// Returns the number of shown bytes, too.
    pub(super) fn render(&self, stored: Option<&Ref>) -> (String, usize) {
        let mut text = String::new();
        let (mut shown, mut shown_bytes) = (0, 0);
        let gaps = self.gaps();
        let mut left_out = gaps.iter().peekable();
        for at in 0..self.lines.len() {
            if let Some(gap) = left_out.next_if(|gap| gap.start == at) {
                text.push_str(&marker::gap_line(gap, self.folds));
            }
            if !self.has(at) {
                continue;
            }
            shown += 1;
            if let Some(bytes) = self.clipped.get(&at) {
                text.push_str(&clipped(self.lines.get(at), *bytes));
                shown_bytes += bytes;
            } else {
                text.push_str(self.lines.line_with_newline(at));
                shown_bytes += self.lines.line_with_newline(at).len();
            }
        }
        // The last line of the text may have no newline, and the marker must be on its own line.
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let first_gap = gaps.first().map(|gap| gap.start);
        let first_clipped = self.clipped.keys().next().copied();
        // The marker's call continues at the first line that is not shown in full.
        let missing = first_gap.into_iter().chain(first_clipped).min();
        let tally = ShownCounts::of_lines(self.lines, shown, shown_bytes, missing.unwrap_or(0));
        text.push_str(&marker::full_marker(&tally, stored));
        (text, shown_bytes)
    }
}

/// The first `bytes` of a line, and a note that there are more.
fn clipped(line: &str, bytes: usize) -> String {
    let kept = line.get(..bytes).unwrap_or(line);
    let more = marker::more_of_line(line.len() - kept.len());
    format!("{kept}{more}\n")
}
