//! Decides what to do, as pure functions of values.
//!
//! [`ConversationState`] is the input of every decision: the conversation, its settings
//! ([`Policy`](crate::policy::Policy)), and what is known about the call ([`CallConditions`]). The
//! result is nothing or a [`PlanStep`]: a plan, or a [`CompactionDraft`], which says what must be
//! stored, and perhaps summarised, before the plan can be executed. Nothing here calls a model.
//!
//! | what is cut | where that is decided |
//! |---|---|
//! | a new output | [`admit`] |
//! | old outputs | [`age`](mod@age), in the way of each design |
//! | old rounds under our own preset, with a digest in their place | `steady` |
//! | old rounds, with a summary in their place | [`compact`], and [`summary`] asks for it |
//! | whatever else must go so that a window fits | [`fit`] |
//!
//! None of them removes what is in `must_stay`.

pub mod admit;
pub mod age;
pub mod compact;
mod conditions;
pub mod fit;
mod must_stay;
mod steady;
pub mod summary;

pub use age::{ArchivedOutputs, age};
pub use compact::{
    CompactionDraft, CompactionRequest, EstimateTokens, FinishedCompaction, draft, failed_before,
    gained_enough, is_suspended, may_summarise_outputs, pays, time_to_compact,
};
pub use conditions::{CallConditions, ConversationState, ReportedUsage, conservative_tokens};
pub use fit::{
    MediaPlace, Overflow, drop_by_own_estimate, rungs_after_overflow, rungs_before_call,
    rungs_before_summary, shed_media, shorten_sent, step_for_rung,
};
pub use steady::{PriceCliff, TokenRates};

use std::sync::Arc;

use trimtab_model::{Message, MessageKind, Part, Role, work};

use crate::normalise::Slot;
use crate::plan::{Edit, Plan, PlanReason};

/// One step that changes a window.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// Execute this plan, and show the line to the user.
    Plan(Plan, Option<String>),
    /// Store what this replaces, then finish it.
    Draft(Box<CompactionDraft>),
    /// Ask a model for a short summary of each of these outputs.
    ToolSummaries(Box<ArchivedOutputs>),
    /// Store these media unless they are stored, then show them as text.
    Media(Vec<MediaPlace>),
    /// Reserve no more than this for the answer.
    LowerAnswer(u64),
}

impl PlanStep {
    /// The position after the last output that it archives; none if it archives none.
    pub fn archived_before(&self) -> Option<usize> {
        let edits = match self {
            Self::Plan(plan, _) => &plan.edits,
            Self::ToolSummaries(archived) => &archived.plan.edits,
            Self::Draft(_) | Self::Media(_) | Self::LowerAnswer(_) => return None,
        };
        let archived = edits.iter().filter_map(|edit| match edit {
            Edit::Archive { message } => Some(message + 1),
            _ => None,
        });
        archived.max()
    }
}

impl From<CompactionDraft> for PlanStep {
    fn from(draft: CompactionDraft) -> Self {
        Self::Draft(Box::new(draft))
    }
}

/// A plan of `edits` as a step, with a line for the user; none if there are no edits.
fn plan_step(reason: &PlanReason, edits: Vec<Edit>, note: Option<String>) -> Option<PlanStep> {
    let plan = Plan::new(reason.clone(), edits);
    (!plan.is_empty()).then_some(PlanStep::Plan(plan, note))
}

/// A plan that also removes the signed reasoning behind its changes, for a provider that binds
/// reasoning to everything before it.
#[must_use]
pub fn without_bound_reasoning(mut plan: Plan, slots: &[Slot]) -> Plan {
    let first = plan.edits.iter().map(first_affected).min();
    let strip = first.and_then(|first| strip_bound_reasoning(first, slots));
    // A message that moves has others in front of it than those that its reasoning is bound to.
    for edit in &mut plan.edits {
        if let Edit::Insert { message, .. } = edit
            && message.parts.iter().any(is_bound)
        {
            Arc::make_mut(message).parts.retain(|part| !is_bound(part));
        }
    }
    plan.edits.extend(strip);
    plan
}

fn is_bound(part: &Part) -> bool {
    matches!(part, Part::Reasoning(thought) if thought.is_sealed())
}

/// The removal of the signed reasoning from `first` on; none if there is none.
pub fn strip_bound_reasoning(first: usize, slots: &[Slot]) -> Option<Edit> {
    let newest_first = slots.iter().rev();
    let mut behind = newest_first.take_while(|slot| slot.source.position() >= first);
    behind.find_map(|slot| {
        work::step(1);
        let before = slot.source.in_log()? + 1;
        let is_signed = slot.message.parts.iter().any(is_bound);
        is_signed.then_some(Edit::StripReasoning {
            from: first,
            before,
        })
    })
}

/// The first position whose preceding bytes an edit changes. Signed reasoning is valid only after
/// the exact bytes that it was created for.
fn first_affected(edit: &Edit) -> usize {
    match edit {
        Edit::Show { message, .. }
        | Edit::ShowAsText { message, .. }
        | Edit::Archive { message } => message + 1,
        Edit::Hide { from, .. } => *from,
        // Some dialects have the system prompt in front of all messages.
        Edit::Insert { message, .. } if message.role == Role::System => 0,
        Edit::Insert { before, .. } => *before,
        // The withdrawn messages may stand anywhere before.
        Edit::Withdraw { .. } => 0,
        Edit::StripReasoning { .. } => usize::MAX,
    }
}

/// True for messages that we inserted in a compaction.
fn is_ours(message: &Message) -> bool {
    is_summary(message) || message.meta.kind == Some(MessageKind::ToolSummary)
}

/// True for what an earlier compaction left. There is no point in compacting only that again.
fn is_summary(message: &Message) -> bool {
    message.is_summary() || message.meta.kind == Some(MessageKind::Note)
}
