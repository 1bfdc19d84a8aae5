//! Which lines are shown.

use std::collections::BTreeMap;
use std::ops::Range;

use trimtab_model::work;

use super::clip::clip;
use super::fold::Folds;
use super::lines::Lines;
use super::marker;

/// Some lines in the order in which they are wanted.
pub(super) struct Wave<'a> {
    /// How full the room may get with this wave, in percent.
    pub(super) until: u64,
    pub(super) lines: Box<dyn Iterator<Item = usize> + 'a>,
}

impl<'a> Wave<'a> {
    pub(super) fn new(until: u64, lines: impl Iterator<Item = usize> + 'a) -> Self {
        Self {
            until,
            lines: Box::new(lines),
        }
    }
}

/// Lines that did not fit before a wave is given up.
const MISSES: u32 = 4;
/// A line may take this part of the room, if there are as many lines.
const LINE_SHARE: u64 = 12;

/// A line may always take the room of this many gap lines: clipping a short one wins nothing.
const LINE_LEAST: u64 = 4;

/// The room there is, and what things cost in it.
pub(super) struct Room<'a> {
    /// All of it but what the first gap takes.
    total: u64,
    line: u64,
    gap: u64,
    measure: &'a dyn Fn(&str) -> u64,
}

impl<'a> Room<'a> {
    pub(super) fn new(
        room: u64,
        lines: &Lines<'_>,
        folds: &Folds,
        measure: &'a dyn Fn(&str) -> u64,
    ) -> Self {
        let gap = measure(&marker::longest_gap(lines.len(), folds));
        let count = lines.len().max(1) as u64;
        // There will be one gap at least, unless there is one line only.
        let total = if count == 1 {
            room
        } else {
            room.saturating_sub(gap)
        };
        let fair = total / count.min(LINE_SHARE);
        Self {
            total,
            line: fair.max(gap.saturating_mul(LINE_LEAST)).min(total),
            gap,
            measure,
        }
    }

    /// What `line` costs within `limit`, and how many of its bytes are shown for that; none if
    /// no start of it can be shown.
    fn cost(&self, line: &str, limit: u64) -> Option<(u64, usize)> {
        work::step(1);
        // Whatever is measured, no line of so many bytes can be worth measuring whole.
        let most = usize::try_from(limit.saturating_mul(64)).unwrap_or(usize::MAX);
        if line.len() <= most {
            let whole = (self.measure)(line);
            if whole <= limit {
                return Some((whole, line.len()));
            }
        }
        let body = line.strip_suffix('\n').unwrap_or(line);
        let costs = |bytes: usize| (self.measure)(&clipped(body, bytes));
        let kept = clip(body, most.min(body.len()), |bytes| costs(bytes) <= limit)?;
        (kept > 0 && kept < body.len()).then(|| (costs(kept), kept))
    }
}

/// The first `bytes` of a line and what says that there are more.
pub(super) fn clipped(line: &str, bytes: usize) -> String {
    let kept = line.get(..bytes).unwrap_or(line);
    let more = marker::more_of_line(line.len() - kept.len());
    format!("{kept}{more}\n")
}

/// The lines that were chosen.
pub(super) struct Selection {
    chosen: Vec<bool>,
    /// Of these lines only so many bytes are shown.
    clipped: BTreeMap<usize, usize>,
    used: u64,
    gaps: u64,
}

impl Selection {
    fn none(lines: usize) -> Self {
        Self {
            chosen: vec![false; lines],
            clipped: BTreeMap::new(),
            used: 0,
            gaps: 1,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0 && !self.chosen.contains(&true)
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.chosen.get(at).copied().unwrap_or(false)
    }

    /// How many bytes of line `at` are shown, where that is not all of it.
    pub(super) fn clip(&self, at: usize) -> Option<usize> {
        self.clipped.get(&at).copied()
    }

    /// Takes line `at` if the room then is no fuller than `limit`.
    fn take(&mut self, lines: &Lines<'_>, at: usize, room: &Room<'_>, limit: u64) -> bool {
        if at >= lines.len() {
            return false;
        }
        if self.has(at) {
            return true;
        }
        let line = lines.whole(at);
        // An empty line alone between gaps says nothing; it comes along with a neighbour.
        if at > 0 && line.trim().is_empty() && !self.has(at - 1) && !self.has(at + 1) {
            return true;
        }
        let Some((cost, bytes)) = room.cost(line, room.line) else {
            return false;
        };
        let gaps = self.gaps_with(at);
        if self.used + cost + gaps.saturating_sub(1) * room.gap > limit {
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

    /// How many gaps there are once line `at` is shown: it may split one in two or close one.
    fn gaps_with(&self, at: usize) -> u64 {
        let left = at.checked_sub(1).is_some_and(|at| !self.has(at));
        let right = at + 1 < self.chosen.len() && !self.has(at + 1);
        (self.gaps + u64::from(left) + u64::from(right)).saturating_sub(1)
    }

    /// The runs of lines that are left out.
    pub(super) fn gaps(&self) -> Vec<Range<usize>> {
        let mut gaps: Vec<Range<usize>> = Vec::new();
        for (at, _) in self
            .chosen
            .iter()
            .enumerate()
            .filter(|(_, chosen)| !**chosen)
        {
            match gaps.last_mut().filter(|gap| gap.end == at) {
                Some(gap) => gap.end = at + 1,
                None => gaps.push(at..at + 1),
            }
        }
        gaps
    }

    /// Shows the lines of gaps that cost no more than the gap line would.
    fn close_small_gaps(&mut self, lines: &Lines<'_>, room: &Room<'_>) {
        for gap in self.gaps().into_iter().filter(|gap| gap.len() <= 4) {
            let cost: u64 = gap.clone().map(|at| (room.measure)(lines.whole(at))).sum();
            if cost <= room.gap {
                for at in gap {
                    self.take(lines, at, room, room.total);
                }
            }
        }
    }

    /// Gives what room is left to the lines that are not shown whole.
    fn stretch(&mut self, lines: &Lines<'_>, room: &Room<'_>) {
        for (at, bytes) in std::mem::take(&mut self.clipped) {
            let taken = self.used + self.gaps.saturating_sub(1) * room.gap;
            let before = (room.measure)(&clipped(lines.get(at), bytes));
            let limit = before + room.total.saturating_sub(taken);
            let line = lines.whole(at);
            let (cost, longer) = room.cost(line, limit).unwrap_or((before, bytes));
            self.used = self.used + cost - before.min(self.used);
            if longer < line.len() {
                self.clipped.insert(at, longer);
            }
        }
    }
}

/// Takes the lines of each wave in turn; repeated ones wait until everything else had its
/// chance.
pub(super) fn select(
    lines: &Lines<'_>,
    folds: &Folds,
    waves: &mut [Wave<'_>],
    room: &Room<'_>,
) -> Selection {
    let mut selection = Selection::none(lines.len());
    for wave in waves {
        let limit = room.total / 100 * wave.until + room.total % 100 * wave.until / 100;
        fill(
            &mut selection,
            lines,
            (&mut wave.lines).filter(|at| !folds.hides(*at)),
            room,
            limit,
        );
    }
    fill(&mut selection, lines, 0..lines.len(), room, room.total);
    selection.close_small_gaps(lines, room);
    selection.stretch(lines, room);
    selection
}

fn fill(
    selection: &mut Selection,
    lines: &Lines<'_>,
    wanted: impl Iterator<Item = usize>,
    room: &Room<'_>,
    limit: u64,
) {
    let mut misses = 0;
    for at in wanted {
        if !selection.take(lines, at, room, limit) {
            misses += 1;
            if misses > MISSES {
                return;
            }
        }
    }
}

/// `items` from both ends inward: first, last, second, second to last, and so on.
pub(super) fn inward(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| {
        if at % 2 == 0 {
            at / 2
        } else {
            count - 1 - at / 2
        }
    })
}
