//! Learns from the end of an answer: how a model counts tokens, how large its window is, and
//! whether it is time for a summary.

use std::sync::Arc;

use trimtab::session::Moment;
use trimtab_model::Usage;

use super::background_summary;
use crate::answer::usage_watch::ObservedAnswer;
use crate::conversation::branch::Branch;
use crate::models::silent_truncation::PromptCheck;
use crate::request::plan::ManagedRequest;
use crate::resources::deadline;

/// Learns from an answer on a blocking thread. If it takes too long, nothing is learned.
pub(crate) async fn learn_later(
    managed: Arc<ManagedRequest>,
    window: u64,
    observed: ObservedAnswer,
) {
    let limit = managed.job.settings.config.limits.plan_time();
    let learning = deadline::run_within(limit, move || learn_from(&managed, window, &observed));
    learning.await.unwrap_or(());
}

/// Learns from the answer to window number `window` of the session.
fn learn_from(managed: &Arc<ManagedRequest>, window: u64, observed: &ObservedAnswer) {
    let mut learned = false;
    let pending = managed.after_answer(|branch| {
        // If the client has sent its next request already, the usage is not about the current
        // window. Some providers report no usage; then the policy works with estimates.
        let usage = observed.usage.as_ref();
        if let Some(usage) = usage.filter(|_| branch.session().windows() == window) {
            if was_truncated(managed, branch, usage, &mut learned) {
                // The figures are those of a truncated prompt, so they say nothing about how the
                // model counts.
                return Ok(None);
            }
            // If the provider may have removed outputs, the figures are about less than was sent.
            if asks_for(managed, b"\"clear_tool_uses") {
                branch.session().record_of_shortened(usage)?;
            } else {
                branch.session().record(usage)?;
                let calibration = branch.session().calibration();
                // Calibration is kept per model, so that the next conversation starts with good
                // estimates.
                let models = &managed.job.shared.models;
                learned |= models.keep_calibration(managed.model_key(), calibration);
            }
        }
        // The client brings the answer with its next request, but it counts from now on.
        if let Some(said) = observed
            .said()
            .filter(|_| branch.session().windows() == window)
        {
            branch.session().answer_comes(said);
        }
        // An answer without calls ends the turn.
        let moments: &[Moment] = if observed.has_calls() {
            &[Moment::AfterAnswer]
        } else {
            &[Moment::AfterAnswer, Moment::BeforeFinal, Moment::AfterTurn]
        };
        Ok(branch.check(moments)?.filter(|_| observed.is_complete))
    });
    if learned {
        write_down(managed);
    }
    if let Ok(Some(pending)) = pending {
        background_summary::in_background(managed, pending);
    }
}

/// Writes what was learned about the model to the store.
pub(super) fn write_down(managed: &ManagedRequest) {
    let shared = &managed.job.shared;
    let store = managed.job.opened.store.as_ref();
    shared.models.write(store, managed.model_key());
}

/// True if the server may have truncated the prompt silently. Its window is learned once that is
/// certain.
fn was_truncated(
    managed: &ManagedRequest,
    branch: &mut Branch,
    usage: &Usage,
    learned: &mut bool,
) -> bool {
    let (models, model_key) = (&managed.job.shared.models, managed.model_key());
    *learned |= models.disprove_learned_window(model_key, usage.prompt());
    // With `context_management` the provider removes old content on the client's request, so a
    // small count is no truncation.
    if asks_for(managed, b"\"context_management\"") {
        return false;
    }
    match branch.check_truncation(model_key, usage.prompt()) {
        PromptCheck::Whole => false,
        PromptCheck::Suspicious => true,
        PromptCheck::Truncated(window) => {
            *learned |= models.learn_truncation(model_key, window);
            true
        }
    }
}

/// True if the client's request contains these bytes.
fn asks_for(managed: &ManagedRequest, what: &[u8]) -> bool {
    memchr::memmem::find(&managed.job.body, what).is_some()
}
