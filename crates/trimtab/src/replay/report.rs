//! What a replay found.

use serde::Serialize;
use trimtab_wire::catalogue::Money;

/// What became of one conversation under one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Calls of the model.
    pub calls: u64,
    /// Windows that a provider would refuse, and calls for which there was none.
    pub faults: u64,
    /// The first few faults, in words.
    pub fault_texts: Vec<String>,
    /// Windows larger than the model's.
    pub over: u64,
    /// Tokens of the largest window.
    pub largest: u64,
    /// Tokens sent, all calls together.
    pub tokens: u64,
    /// What they cost with a prompt cache.
    pub billed: Money,
    /// What they cost where nothing is cached.
    pub cold: Money,
    /// Windows that only add to the one before.
    pub extended: u64,
    /// Where they did not.
    pub breaks: Vec<Break>,
    /// How often old rounds were replaced.
    pub compactions: u64,
    /// What later calls needed from old outputs.
    pub recall: Recall,
}

/// A window that did not only add to the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// Position of the assistant message that answered the window.
    pub call: usize,
    /// Index of the first message that differs.
    pub message: usize,
    /// Tokens behind it that were in the window before and are written anew.
    pub tokens: u64,
    /// What that costs beyond reading them from the cache.
    pub cost: Money,
    /// What was decided there, with its arithmetic where there is one; empty if nothing was.
    pub why: String,
}

/// Identifiers that calls took from old outputs, and where a policy has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recall {
    /// How many there are.
    pub needed: u64,
    /// In the window.
    pub shown: u64,
    /// In an output that the window names a ref for.
    pub behind: u64,
    /// Neither.
    pub lost: u64,
}

impl Report {
    /// Takes in the report of another conversation.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.faults += other.faults;
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
        self.recall.needed += other.recall.needed;
        self.recall.shown += other.recall.shown;
        self.recall.behind += other.recall.behind;
        self.recall.lost += other.recall.lost;
    }
}
