//! The results of a replay.

use serde::Serialize;
use trimtab_wire::catalogue::Money;

/// The results of one conversation under one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// Calls to the model.
    pub calls: u64,
    /// Calls for which there was no valid window, or none that fits: what must stay in it is too
    /// large.
    pub refused: u64,
    /// The first few faults, as text.
    pub fault_texts: Vec<String>,
    /// Windows larger than the model's.
    pub over: u64,
    /// Tokens of the largest window.
    pub largest: u64,
    /// Tokens sent by all calls together.
    pub tokens: u64,
    /// Their cost with a prompt cache.
    pub billed: Money,
    /// Windows that do not only add to the previous one, so that a part of the cache is written
    /// again.
    pub breaks: u64,
    /// Messages that the last window leaves out.
    pub hidden: u64,
    /// Outputs that the last window shows in part.
    pub cut: u64,
    /// The number of times that old rounds were replaced.
    pub compactions: u64,
    /// Calls to a model for summaries, which the policy would have made.
    pub own_calls: u64,
}

impl ReplayReport {
    /// Adds the report of another conversation.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.refused += other.refused;
        self.fault_texts.extend_from_slice(&other.fault_texts);
        self.over += other.over;
        self.largest = self.largest.max(other.largest);
        self.tokens += other.tokens;
        self.billed = self.billed + other.billed;
        self.breaks += other.breaks;
        self.hidden += other.hidden;
        self.cut += other.cut;
        self.compactions += other.compactions;
        self.own_calls += other.own_calls;
    }
}
