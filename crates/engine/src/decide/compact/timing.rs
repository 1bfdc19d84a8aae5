//! Decides whether to compact, and whether a compaction is worth it.

use crate::decide::compact::CompactionRequest;
use crate::decide::fit::waits_for_summary;
use crate::decide::{CompactionDraft, ConversationState};
use crate::plan::{Plan, PlanReason};
use crate::policy::{Moment, Policy};
use crate::trigger::WindowUnknown;

/// An optional compaction must save at least this much of the window, in percent.
const LEAST_GAIN_PERCENT: u64 = 2;

/// A compaction did not help if it saved less than this of the window by reported usage, in percent.
const ENOUGH_GAIN_PERCENT: u64 = 10;

/// After this many compactions in a row that did not help, the next one surely will not, either.
const COMPACTIONS_IN_VAIN: u32 = 2;

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
    if moment == Moment::BeforeCall
        && waits_for_summary(conversation.policy)
        && let Some(excess) = conversation.removable_excess()
    {
        return Ok(Some(CompactionRequest {
            excess,
            ..CompactionRequest::new(PlanReason::Fit)
        }));
    }
    if !compaction.moments.contains(&moment) {
        return Ok(None);
    }
    let situation = conversation.trigger_inputs();
    compaction.check_window(&situation)?;
    let fired = compaction.fired(&situation);
    Ok(fired.map(|trigger| {
        let trigger = trigger.to_string();
        CompactionRequest::new(PlanReason::Triggered { trigger })
    }))
}

/// True if a plan that makes the window smaller is worth it. A window that must fit is worth
/// anything. Otherwise a compaction must save a share of the window, and the first ref of a window,
/// which comes with retrieval tools of `first_ref` tokens, must save more than these take. Only a
/// policy that weighs costs counts them.
pub fn pays(policy: &Policy, plan: &Plan, first_ref: u64) -> bool {
    let counts_ref = policy.ageing.rewrite.enabled && plan.shows_a_ref();
    let costs = if counts_ref { first_ref } else { 0 };
    let after = plan.tokens_after.saturating_add(costs);
    let least = if plan.compacts() {
        LEAST_GAIN_PERCENT
    } else {
        0
    };
    let saves = plan.tokens_before.saturating_sub(plan.tokens_after);
    let saves_enough = saves.saturating_mul(100) >= plan.tokens_before.saturating_mul(least);
    plan.reason.must_fit() || (saves_enough && after < plan.tokens_before)
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
pub fn gained_enough(before: u64, after: u64) -> bool {
    let gained = before.saturating_sub(after);
    gained.saturating_mul(100) >= before.saturating_mul(ENOUGH_GAIN_PERCENT)
}

/// True if compaction failed to help `in_vain` times in a row, so that it is no longer tried
/// automatically.
pub fn is_suspended(in_vain: u32) -> bool {
    in_vain >= COMPACTIONS_IN_VAIN
}
