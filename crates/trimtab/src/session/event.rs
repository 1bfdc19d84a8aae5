//! Events: what a session did, for callers that report it.

use serde::{Deserialize, Serialize};
use trimtab_engine::plan::{Plan, PlanReason};
use trimtab_model::{Ref, Usage};

/// Kinds of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionEventKind {
    /// Outputs are shown shorter.
    #[default]
    Trimmed,
    /// Old rounds were replaced by a summary.
    Compacted,
    /// Messages were dropped with a note.
    Dropped,
    /// The reserve for the answer was lowered.
    AnswerLowered,
    /// A plan was not executed, because it would not make the window smaller.
    NoOp,
    /// A summary came too late: another plan was executed since it was asked for.
    Stale,
    /// The newest plan was undone.
    Undone,
    /// Automatic compaction stopped, because it does not help.
    Suspended,
    /// A warning for the user.
    Warning,
}

/// One thing that a session did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// The kind.
    pub kind: SessionEventKind,
    /// The reason.
    pub reason: PlanReason,
    /// Tokens of the window before, by estimate.
    pub tokens_before: u64,
    /// Tokens of the window after, by estimate.
    pub tokens_after: u64,
    /// Messages of the window before.
    pub messages_before: usize,
    /// Messages of the window after.
    pub messages_after: usize,
    /// The refs of everything that was removed.
    pub refs: Vec<Ref>,
    /// True if a model wrote the summary.
    pub by_model: bool,
    /// The number of calls to a model for summaries.
    #[serde(default)]
    pub own_calls: u32,
    /// The usage of these calls.
    pub usage: Option<Usage>,
    /// Their cost in dollars, if the prices are known.
    pub cost: Option<f64>,
    /// A text: a warning, an error, the diagnostic line of a design.
    pub note: Option<String>,
}

impl SessionEvent {
    /// An event without figures.
    pub(super) fn new(kind: SessionEventKind, reason: PlanReason) -> Self {
        Self {
            kind,
            reason,
            ..Self::default()
        }
    }

    /// The same with a note.
    pub(super) fn with_note(self, note: impl Into<Option<String>>) -> Self {
        Self {
            note: note.into(),
            ..self
        }
    }

    /// The same with the figures of an executed plan.
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

    /// The tokens that it freed.
    pub fn tokens_saved(&self) -> u64 {
        self.tokens_before.saturating_sub(self.tokens_after)
    }
}
