//! What a session did, for whoever watches.

use serde::{Deserialize, Serialize};
use trimtab_engine::compaction::audit::Coverage;
use trimtab_engine::plan::{Plan, PlanReason};
use trimtab_model::{Ref, Usage};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionEventKind {
    /// Outputs are shown shorter.
    Trimmed,
    /// Old rounds were replaced by a summary.
    Compacted,
    /// Messages were dropped with a note.
    Dropped,
    /// The answer's reserve was lowered.
    AnswerLowered,
    /// A plan was not carried out, because it would not have made the window smaller.
    NoOp,
    /// A summary came too late: another plan was carried out since it was asked for.
    Stale,
    /// The newest plan was taken back.
    Undone,
    /// Automatic compaction stopped, because it does not help.
    Suspended,
    /// Something that somebody should know of.
    Warning,
}

/// One thing that a session did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// What happened.
    pub kind: SessionEventKind,
    /// Why.
    pub reason: PlanReason,
    /// Tokens of the window before, by estimate.
    pub tokens_before: u64,
    /// Tokens of the window after, by estimate.
    pub tokens_after: u64,
    /// Messages of the window before.
    pub messages_before: usize,
    /// Messages of the window after.
    pub messages_after: usize,
    /// Where everything is that went.
    pub refs: Vec<Ref>,
    /// How much of what was replaced is in the summary; none where there is none.
    pub coverage: Option<Coverage>,
    /// True if a model wrote the summary, false if nobody did.
    pub by_model: bool,
    /// How often a model was asked for a summary.
    #[serde(default)]
    pub own_calls: u32,
    /// What the summariser's calls used.
    pub usage: Option<Usage>,
    /// What they cost, in dollars, where the prices are known.
    pub cost: Option<f64>,
    /// In words: a warning, an error, the diagnostic line of a design.
    pub note: Option<String>,
}

impl SessionEvent {
    /// An event about nothing but itself.
    pub(super) fn new(kind: SessionEventKind, reason: PlanReason) -> Self {
        Self {
            kind,
            reason,
            tokens_before: 0,
            tokens_after: 0,
            messages_before: 0,
            messages_after: 0,
            refs: Vec::new(),
            coverage: None,
            by_model: false,
            own_calls: 0,
            usage: None,
            cost: None,
            note: None,
        }
    }

    /// The same with a note.
    pub(super) fn with_note(self, note: impl Into<Option<String>>) -> Self {
        Self {
            note: note.into(),
            ..self
        }
    }

    /// The same about a plan that was carried out.
    pub(super) fn with_plan(self, plan: &Plan, messages: (usize, usize)) -> Self {
        Self {
            reason: plan.reason.clone(),
            tokens_before: plan.tokens_before,
            tokens_after: plan.tokens_after,
            messages_before: messages.0,
            messages_after: messages.1,
            refs: plan.refs.clone(),
            ..self
        }
    }

    /// How many tokens it freed.
    pub fn tokens_saved(&self) -> u64 {
        self.tokens_before.saturating_sub(self.tokens_after)
    }
}
