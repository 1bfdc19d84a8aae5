//! Decides whether to compact, and whether a compaction is worth it.

use super::draft::CompactionRequest;
use super::ladder::waits_for_summary;
use super::{CompactionDraft, ConversationState};
use crate::plan::PlanReason;
use crate::policy::{Moment, ThrashSettings};
use crate::trigger::WindowUnknown;

/// An optional compaction must save at least this much of the window, in percent.
const LEAST_GAIN_PERCENT: u64 = 2;

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
