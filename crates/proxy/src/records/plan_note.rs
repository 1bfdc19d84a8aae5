//! Plans of a session as they appear in records: what was done before a call, why, and what it
//! saved.

use serde::Serialize;
use trimtab::session::{SessionEvent, SessionEventKind};
use trimtab_engine::plan::PlanReason;

/// One plan of a session: what was done, why, and what it saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanNote {
    /// The kind of change.
    pub kind: SessionEventKind,
    /// The reason, in one word.
    pub reason: &'static str,
    /// The trigger that fired, as text; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trigger: String,
    /// The estimated tokens of the window before.
    pub tokens_before: u64,
    /// The estimated tokens of the window after.
    pub tokens_after: u64,
}

impl PlanNote {
    /// The note about an event; none if it changed no earlier message.
    pub(crate) fn of_event(event: &SessionEvent) -> Option<Self> {
        let changes = matches!(
            event.kind,
            SessionEventKind::Trimmed
                | SessionEventKind::Compacted
                | SessionEventKind::Dropped
                | SessionEventKind::Undone
        );
        let trigger = match &event.reason {
            PlanReason::Triggered { trigger } => trigger.clone(),
            _ => String::new(),
        };
        changes.then(|| Self {
            kind: event.kind,
            reason: reason_name(&event.reason),
            trigger,
            tokens_before: event.tokens_before,
            tokens_after: event.tokens_after,
        })
    }

    /// The name of its kind.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self.kind {
            SessionEventKind::Compacted => "compacted",
            SessionEventKind::Dropped => "dropped",
            SessionEventKind::Undone => "undone",
            _ => "trimmed",
        }
    }
}

/// The name of a reason, as in journals.
pub(crate) fn reason_name(reason: &PlanReason) -> &'static str {
    match reason {
        PlanReason::Nothing => "nothing",
        PlanReason::Admission => "admission",
        PlanReason::OutputsOverBudget => "outputs_over_budget",
        PlanReason::Triggered { .. } => "triggered",
        PlanReason::Fit => "fit",
        PlanReason::Overflow => "overflow",
        PlanReason::ByHand => "by_hand",
        PlanReason::FrontChanged => "front_changed",
    }
}
