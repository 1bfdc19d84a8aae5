//! The results of a replay.

use serde::Serialize;
use trimtab_wire::catalogue::Money;

use super::needs::{Need, NeedKind};

/// The results of one conversation under one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// Calls to the model.
    pub calls: u64,
    /// Windows that a provider would reject, and calls without a window.
    pub faults: u64,
    /// Calls for which there was no window: what must stay in it is too large.
    pub unsent: u64,
    /// The first few faults, as text.
    pub fault_texts: Vec<String>,
    /// Windows larger than the model's.
    pub over: u64,
    /// Tokens of the largest window.
    pub largest: u64,
    /// Tokens sent by all calls together, counted as the settings say.
    pub tokens: u64,
    /// Their cost with a prompt cache.
    pub billed: Money,
    /// Their cost without a cache.
    pub cold: Money,
    /// Windows that only extend the previous one.
    pub extended: u64,
    /// The windows that do not.
    pub breaks: Vec<CacheBreak>,
    /// The number of times that old rounds were replaced.
    pub compactions: u64,
    /// Calls to a model for summaries, which the policy would have made.
    pub own_calls: u64,
    /// Texts that calls took from outputs, and where the windows have them.
    pub recall: Recall,
    /// Calls that took a text from an output.
    pub needing: u64,
    /// Calls among these for which nothing had to be fetched.
    pub ready: u64,
    /// Outputs that had to be fetched.
    pub fetches: u64,
    /// The cost of the extra calls for that.
    pub fetching: Money,
    /// New outputs.
    pub arrived: u64,
    /// New outputs that were cut before the model saw them.
    pub cut_unseen: u64,
    /// Tokens of new outputs.
    pub arrived_tokens: u64,
    /// Tokens of them that were shown at first.
    pub arrived_shown: u64,
    /// Messages with reasoning in the conversation, added up over all calls.
    pub reasoning: u64,
    /// Those that were sent with their reasoning. A window has none that its model would reject.
    pub reasoning_kept: u64,
    /// The cost of asking again for what was cut.
    pub asking_again: Money,
}

/// A window that does not only extend the previous one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheBreak {
    /// The number of the call, from 1.
    pub number: u64,
    /// Position of the assistant message that answered the window.
    pub call: usize,
    /// Index of the first message that differs.
    pub message: usize,
    /// Tokens from it on that are written again. Messages that are sent for the first time do not
    /// count: they would have been written anyway.
    pub tokens: u64,
    /// The cost of that, compared to reading them from the cache. Nothing if the cache was cold.
    pub cost: Money,
    /// The decision, with its arithmetic if there is one; empty if there was none.
    pub why: String,
}

/// Texts that calls took from outputs, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recall {
    /// Names from old outputs.
    pub old_names: RecallCounts,
    /// Lines from old outputs.
    pub old_lines: RecallCounts,
    /// Names from the two newest outputs.
    pub fresh_names: RecallCounts,
    /// Lines from the two newest outputs.
    pub fresh_lines: RecallCounts,
    /// Names from old outputs whose line is in the window, too.
    pub names_in_line: u64,
}

/// Where texts of one kind were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecallCounts {
    /// The number of needed texts.
    pub needed: u64,
    /// Texts in the window.
    pub shown: u64,
    /// Texts in an output whose ref is in the window.
    pub behind: u64,
    /// Texts in neither.
    pub lost: u64,
}

impl RecallCounts {
    fn add(&mut self, other: &Self) {
        self.needed += other.needed;
        self.shown += other.shown;
        self.behind += other.behind;
        self.lost += other.lost;
    }
}

impl Recall {
    /// Texts that are neither in the window nor behind a ref.
    pub fn lost(&self) -> u64 {
        let kinds = [
            self.old_names,
            self.old_lines,
            self.fresh_names,
            self.fresh_lines,
        ];
        kinds.iter().map(|found| found.lost).sum()
    }

    /// Counts a need; `line_is_shown` says whether its line is in the window.
    pub(super) fn add(
        &mut self,
        need: &Need,
        is_shown: bool,
        behind_ref: bool,
        line_is_shown: impl FnOnce() -> bool,
    ) {
        // The line is looked up last, because that searches the whole window.
        if need.kind == NeedKind::OldName && is_shown && line_is_shown() {
            self.names_in_line += 1;
        }
        let found = match need.kind {
            NeedKind::OldName => &mut self.old_names,
            NeedKind::OldLine => &mut self.old_lines,
            NeedKind::FreshName => &mut self.fresh_names,
            NeedKind::FreshLine => &mut self.fresh_lines,
        };
        found.needed += 1;
        match (is_shown, behind_ref) {
            (true, _) => found.shown += 1,
            (false, true) => found.behind += 1,
            (false, false) => found.lost += 1,
        }
    }

    fn add_all(&mut self, other: &Self) {
        self.old_names.add(&other.old_names);
        self.old_lines.add(&other.old_lines);
        self.fresh_names.add(&other.fresh_names);
        self.fresh_lines.add(&other.fresh_lines);
        self.names_in_line += other.names_in_line;
    }
}

impl ReplayReport {
    /// Adds the report of another conversation.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.faults += other.faults;
        self.reasoning += other.reasoning;
        self.reasoning_kept += other.reasoning_kept;
        self.unsent += other.unsent;
        let texts = other.fault_texts.iter().cloned();
        self.fault_texts.extend(texts);
        self.over += other.over;
        self.largest = self.largest.max(other.largest);
        self.tokens += other.tokens;
        self.billed = self.billed + other.billed;
        self.cold = self.cold + other.cold;
        self.extended += other.extended;
        self.breaks.extend_from_slice(&other.breaks);
        self.compactions += other.compactions;
        self.own_calls += other.own_calls;
        self.recall.add_all(&other.recall);
        self.needing += other.needing;
        self.ready += other.ready;
        self.fetches += other.fetches;
        self.fetching = self.fetching + other.fetching;
        self.arrived += other.arrived;
        self.cut_unseen += other.cut_unseen;
        self.arrived_tokens += other.arrived_tokens;
        self.arrived_shown += other.arrived_shown;
        self.asking_again = self.asking_again + other.asking_again;
    }

    /// The bill with a prompt cache, plus the cost of retrieving what the windows lacked.
    pub fn effective(&self) -> Money {
        self.billed + self.fetching + self.asking_again
    }
}
