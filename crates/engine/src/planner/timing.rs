//! Decides whether to compact, and whether a compaction is worth it.

use super::draft::CompactionRequest;
use super::ladder::waits_for_summary;
use super::{CompactionDraft, ConversationState};
use crate::plan::{Plan, PlanReason};
use crate::policy::{Moment, Policy, ThrashSettings};
use crate::trigger::WindowUnknown;

/// An optional compaction must save at least this much of the window, in percent.
const LEAST_GAIN_PERCENT: u64 = 2;

/// After this many consecutive failures, no model is asked about outputs until the user sends a
/// message or the settings change.
const TOOL_SUMMARY_FAILURES: u32 = 2;

/// The compaction that is due, if one is. Fails if that cannot be decided because the model's
/// window is unknown.
pub fn time_to_compact(
    conversation: &ConversationState<'_>,
    moment: Moment,
) -> Result<Option<CompactionRequest>, WindowUnknown> {
    let compaction = &conversation.policy.compaction;
    if !compaction.enabled || !compaction.auto {
        return Ok(None);
    }
    // A window that does not fit is compacted whatever the triggers say, if the policy waits for
    // summaries, and if a compaction can help at all.
    let excess = conversation.excess();
    if let Some(excess) = excess.filter(|_| moment == Moment::BeforeCall)
        && waits_for_summary(conversation.policy)
        && conversation.check_hard_floor().is_ok()
    {
        return Ok(Some(CompactionRequest {
            reason: PlanReason::Fit,
            excess,
            ..CompactionRequest::default()
        }));
    }
    if !compaction.moments.contains(&moment) {
        return Ok(None);
    }
    let situation = conversation.trigger_inputs();
    compaction.check_window(&situation)?;
    let fired = compaction.fired(&situation);
    Ok(fired.map(|trigger| CompactionRequest {
        reason: PlanReason::Triggered {
            trigger: trigger.to_string(),
        },
        ..CompactionRequest::default()
    }))
}

/// True if an optional compaction that saves `saved` of `tokens` is worth it.
pub fn is_worth_it(saved: u64, tokens: u64) -> bool {
    saved.saturating_mul(100) >= tokens.saturating_mul(LEAST_GAIN_PERCENT)
}

/// True if a plan that shows the first ref of a window is worth the retrieval tools, which then
/// take `first_ref` tokens. A window that must fit is worth them, and so is what a design wants.
/// Only a policy that weighs costs counts them.
pub fn is_worth_first_ref(policy: &Policy, plan: &Plan, first_ref: u64) -> bool {
    let costs = plan.tokens_after.saturating_add(first_ref);
    plan.reason.must_fit() || !policy.ageing.rewrite.enabled || costs < plan.tokens_before
}

/// True if a model may still be asked for summaries of outputs, after `failures` failed ones in a
/// row.
pub fn may_summarise_outputs(failures: u32) -> bool {
    failures < TOOL_SUMMARY_FAILURES
}

/// True if a summary of nearly the same messages failed before, when `before` tokens were to be
/// replaced. It is asked for again when there is twice as much.
pub fn failed_before(draft: &CompactionDraft, before: u64) -> bool {
    draft.replaced_tokens() < before.saturating_mul(2)
}

/// True if a compaction from `before` to `after` tokens, by reported usage, saved enough.
pub fn gained_enough(thrash: &ThrashSettings, before: u64, after: u64) -> bool {
    let gained = before.saturating_sub(after);
    gained.saturating_mul(100) >= before.saturating_mul(thrash.gain_percent)
}

/// True if compaction failed to help `in_vain` times in a row, so that it is no longer tried
/// automatically.
pub fn is_suspended(thrash: &ThrashSettings, in_vain: u32) -> bool {
    thrash.passes > 0 && in_vain >= thrash.passes
}

/// True if this number of compactions calls for a warning.
pub fn should_warn(thrash: &ThrashSettings, compactions: usize) -> bool {
    thrash.warn_after > 0 && compactions >= thrash.warn_after as usize
}
