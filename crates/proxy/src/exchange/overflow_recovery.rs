//! Makes a request smaller that was rejected as too large, and learns from the rejection.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use trimtab::session::RecoveryOutcome;
use trimtab_wire::overflow::{OverflowAction as Cure, OverflowKind, OverflowVerdict};

use super::Exchange;
use super::learning::write_down;
use crate::conversation::branch::LEAST_ANSWER;
use crate::conversation::retrieval_tools;
use crate::resources::deadline;

impl Exchange {
    /// Makes the request smaller. False if nothing helps.
    pub(super) async fn recover(&mut self, verdict: OverflowVerdict) -> bool {
        // What the error says about the window holds for all conversations with this model, so it
        // is learned first.
        let window = self.learn(&verdict);
        let (managed, mut ways) = (Arc::clone(&self.managed), self.options);
        let (tokens, asked) = (self.outgoing.tokens, self.outgoing.answer);
        let ours = self.is_ours();
        let (sent_window, sent_messages) = (self.outgoing.window, self.outgoing.messages);
        let whole = self.managed.job.body.len();
        let sent = self.edited().map_or(whole, Bytes::len);
        // Of a conversation that the provider keeps, the client sends only the end.
        let is_partial = self.managed.job.partial.is_some() && !self.outgoing.has_new_window;
        let sent = if is_partial { whole.max(sent) } else { sent };
        let has_no_figure = is_of_window(&verdict) && verdict.sizes.limit.is_none();
        let recovering = deadline::run_within(self.patience(), move || {
            let outgoing = managed.with_body(|branch, scan| {
                let asked = if ours { asked } else { scan.answer_limit() };
                // Lowering the limit of the answer loses nothing, so it is tried before messages
                // are removed.
                if let Some(room) = room_for_answer(&verdict, tokens, asked) {
                    ways.lowered = Some(room);
                    return branch.compose(scan, &ways).map(Some);
                }
                if window.is_some() {
                    // A smaller window has less room for the answer too.
                    branch
                        .session()
                        .set_limits(managed.limits(scan.answer_limit(), window));
                }
                // A copy of the request may have made the window smaller meanwhile. Then another plan
                // would remove too much.
                if branch.session().windows() != sent_window && branch.logged() == sent_messages {
                    let outgoing = branch.compose(scan, &ways)?;
                    if outgoing.body.as_ref().is_some_and(|body| body.len() < sent) {
                        return Ok(Some(outgoing));
                    }
                }
                let outcome = branch.session().recover(&shrinkable(verdict))?;
                let assumed = branch.session().setup().limits.window;
                // Without a figure in the error, the session assumes a window.
                if let Some(assumed) = assumed.filter(|_| has_no_figure)
                    && Some(assumed) != window
                    && (managed.job.shared.models).learn_refused(managed.model_key(), assumed)
                {
                    write_down(&managed);
                }
                match outcome {
                    RecoveryOutcome::GiveUp => return Ok(None),
                    RecoveryOutcome::Retry => {}
                    // There is no time to ask a model, so the plan is finished with the
                    // deterministic summary.
                    RecoveryOutcome::Summarise(pending) => {
                        branch.session().finish(pending)?;
                    }
                }
                branch.compose(scan, &ways).map(Some)
            });
            (outgoing, ways)
        });
        let Ok((Ok(Some(outgoing)), ways)) = recovering.await else {
            return false;
        };
        // Bytes are compared, because one of the estimates may be based on reported usage.
        let body = outgoing.body.as_ref();
        // The first ref adds the retrieval tools. In a short conversation they may be larger than
        // what was removed, and only what comes after them shows whether that was enough.
        let new_tools = outgoing.offered.filter(|_| self.outgoing.offered.is_none());
        let tools = new_tools.map_or(0, |names| {
            retrieval_tools::offered_tools(self.managed.job.dialect, names).bytes()
        });
        // A request that is not smaller would be refused again.
        let is_smaller = body.is_some_and(|body| body.len() < sent + tools);
        let asks_for_less = body.is_some() && ways.lowered != self.options.lowered;
        if !is_smaller && !asks_for_less {
            return false;
        }
        self.bypass_reason = None;
        self.outgoing = self.managed.job.with_reserved_body(outgoing);
        self.options = ways;
        self.recoveries += 1;
        true
    }

    /// Learns the model's window from an error, and returns the window that is known then.
    fn learn(&self, verdict: &OverflowVerdict) -> Option<u64> {
        let managed = Arc::clone(&self.managed);
        let known = managed.model_limits.window;
        if !is_of_window(verdict) {
            return known;
        }
        let models = &managed.job.shared.models;
        // A limit that the error names is a fact. No model has a very small window: the number in
        // the error then means something else.
        let Some(window) = verdict.sizes.limit.filter(|limit| *limit > LEAST_ANSWER) else {
            return known;
        };
        let is_new = models.learn_window(managed.model_key(), window);
        // An error can show that the window is smaller than we thought, but not that it is larger.
        let known = known.map_or(window, |known| known.min(window));
        if is_new {
            spawn_blocking(move || write_down(&managed));
        }
        Some(known)
    }
}

/// True if a rejection speaks of the window. Others speak of rates, of bytes or of the answer alone.
fn is_of_window(verdict: &OverflowVerdict) -> bool {
    matches!(
        verdict.kind,
        OverflowKind::Prompt | OverflowKind::PromptAndAnswer
    )
}

/// The room for an answer, if only its reserve was too large.
fn room_for_answer(verdict: &OverflowVerdict, estimate: u64, asked: Option<u64>) -> Option<u64> {
    if verdict.action != Cure::LowerReserve {
        return None;
    }
    let (asked, limit) = (asked?, verdict.sizes.limit?);
    let prompt = match verdict.sizes.actual {
        // The size in the error then includes the reserve for the answer.
        Some(actual) if actual > asked => actual - asked,
        _ => estimate,
    };
    // One percent of reserve, because the prompt may be an estimate.
    let room = limit.saturating_sub(prompt.saturating_add(prompt / 100));
    (room >= LEAST_ANSWER.min(asked / 2) && room < asked).then_some(room)
}

/// Turns a rejection that only a smaller prompt can cure into a prompt overflow: a request above
/// the whole rate limit, or one whose answer cannot be shorter.
fn shrinkable(mut verdict: OverflowVerdict) -> OverflowVerdict {
    if !verdict.is_overflow() || verdict.action == Cure::LowerReserve {
        verdict.kind = OverflowKind::Prompt;
        verdict.action = Cure::Compact;
    }
    verdict
}
