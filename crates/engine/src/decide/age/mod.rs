//! Shortens old outputs, in the way of each design.

pub mod archive;

use trimtab_model::Output;

use crate::decide::steady::rewrite;
use crate::decide::summary::requests::SummaryRequest;
use crate::decide::{ConversationState, PlanStep, plan_step};
use crate::normalise::Slot;
use crate::observation::show;
use crate::plan::{Edit, Plan, PlanReason};
use crate::policy::{Moment, ToolSummaries};
use crate::view::policy::CompiledViews;
use crate::view::retention::{note, retain_in};
use crate::view::{PrefixCut, ViewChange};

/// The limit of one output's summary in tokens: 1,200 characters with a margin.
const TOOL_SUMMARY_TOKENS: u64 = 600;

/// Outputs to archive, which a model should summarise. Until then, excerpts represent them in the
/// plan.
#[derive(Clone, Debug)]
pub struct ArchivedOutputs {
    /// The plan.
    pub plan: Plan,
    outputs: Vec<Output>,
    can_retrieve: bool,
}

impl ArchivedOutputs {
    /// The request for the output at an index; none if there is no such output.
    pub fn request(&self, index: usize) -> Option<SummaryRequest> {
        let output = self.outputs.get(index)?;
        Some(archive::summary_request(output, TOOL_SUMMARY_TOKENS))
    }

    /// The plan with the summaries instead of the excerpts. `written` has none where the model
    /// wrote nothing usable.
    pub fn with_summaries(&self, written: &[Option<&str>]) -> Plan {
        let mut plan = self.plan.clone();
        let mut summaries = self.outputs.iter().zip(written);
        for edit in &mut plan.edits {
            // The insertions are in the order of the outputs, one for each: see `archived`.
            if let Edit::Insert { message, .. } = edit
                && let Some((output, written)) = summaries.next()
            {
                *message = archive::tool_summary(output, *written, self.can_retrieve).into();
            }
        }
        plan
    }
}

/// What the policy does with old outputs at a moment; none if there is nothing to do.
pub fn age(conversation: &ConversationState<'_>, moment: Moment) -> Option<PlanStep> {
    match moment {
        Moment::BeforeCall => rewrite(conversation)
            .map(PlanStep::from)
            .or_else(|| placeholders(conversation))
            .or_else(|| archived(conversation)),
        Moment::AfterAnswer | Moment::BeforeFinal => prefixes(conversation),
        Moment::AfterOutputs => archived(conversation),
        Moment::AfterTurn => None,
    }
}

/// A plan that shows old outputs as `changes` say.
fn shortened(
    conversation: &ConversationState<'_>,
    changes: Vec<ViewChange>,
    note: Option<String>,
) -> Option<PlanStep> {
    let edits = as_edits(conversation.slots, changes);
    plan_step(&PlanReason::OutputsOverBudget, edits, note)
}

fn placeholders(conversation: &ConversationState<'_>) -> Option<PlanStep> {
    let placeholder = &conversation.policy.ageing.placeholder;
    if !placeholder.enabled {
        return None;
    }
    let budget = placeholder.budget.resolve(conversation.call.window);
    let protect = protected(conversation);
    let outputs = conversation.outputs();
    let changes = outputs.over_budget(budget, |tool| protect.protects(tool));
    shortened(conversation, changes, None)
}

fn prefixes(conversation: &ConversationState<'_>) -> Option<PlanStep> {
    let prefix = &conversation.policy.ageing.prefix;
    if !prefix.enabled {
        return None;
    }
    // The design uses the reported figure, so nothing happens before the first answer.
    let (used, budget) = (conversation.call.usage?.usage.prompt(), prefix.input_budget);
    let keep = PrefixCut {
        chars: prefix.chars,
    };
    let outputs = conversation.outputs();
    let changes = retain_in(
        &outputs,
        keep,
        (used, budget),
        conversation.call.can_retrieve,
    );
    let note = note(changes.len(), used, budget);
    shortened(conversation, changes, Some(note))
}

fn archived(conversation: &ConversationState<'_>) -> Option<PlanStep> {
    let can_retrieve = conversation.call.can_retrieve;
    let archiving = &conversation.policy.ageing.archive;
    if !archiving.enabled || archiving.summaries == ToolSummaries::Off {
        return None;
    }
    let protect = protected(conversation);
    let is_protected = |output: &Output| {
        let tool = output.tool.as_deref();
        tool.is_some_and(|tool| protect.protects(tool))
    };
    // Outputs that would not become shorter were examined before. Skip them.
    let before = |slot: &Slot| slot.source.position() < conversation.archive_from;
    let from = conversation.slots.partition_point(before);
    let outputs = conversation.outputs();
    let mut over = archive::excess(&outputs, archiving.cutoff, from);
    over.retain(|at| !outputs.named_in(*at).iter().any(is_protected));
    if over.is_empty() {
        return None;
    }
    let (mut edits, outputs) = archive::archived(&outputs, conversation.slots, &over);
    for output in &outputs {
        // An excerpt represents the summary, so that the plan is complete even if no model
        // answers.
        let summary = archive::tool_summary(output, None, can_retrieve);
        edits.push(Edit::insert(conversation.log.len(), summary));
    }
    let mut plan = Plan::new(PlanReason::OutputsOverBudget, edits);
    plan.refs = outputs.iter().filter_map(|o| o.stored.clone()).collect();
    if archiving.summaries == ToolSummaries::Llm {
        return Some(PlanStep::ToolSummaries(Box::new(ArchivedOutputs {
            plan,
            outputs,
            can_retrieve,
        })));
    }
    Some(PlanStep::Plan(plan, None))
}

/// The views of the policy, to look up protected tools.
pub(in crate::decide) fn protected(conversation: &ConversationState<'_>) -> CompiledViews {
    CompiledViews::new(&conversation.policy.views).unwrap_or_default()
}

/// Converts changes of slots to edits of the log. Inserted messages have no position there.
pub(in crate::decide) fn as_edits(slots: &[Slot], changes: Vec<ViewChange>) -> Vec<Edit> {
    let edit = |change: ViewChange| {
        let slot = slots.get(change.message)?;
        let at = slot.source.in_log()?;
        Some(show(&slot.message, at, change.part, change.output))
    };
    changes.into_iter().filter_map(edit).collect()
}
