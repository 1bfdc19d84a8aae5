//! Another attempt after a provider has refused our body for another reason than its size.
//!
//! A refusal because of reasoning teaches us the rule of the model, and the request is planned again
//! under it. Otherwise the client's own request is sent, once. It goes without its reasoning if the
//! model binds that to our tools.

use std::sync::Arc;

use http::{Response, StatusCode};
use tokio::task::spawn_blocking;
use trimtab_model::Dialect;

use super::Exchange;
use super::learning::write_down;
use crate::models::reasoning_rule::{
    ReasoningFault, ReasoningRule, reasoning_fault, without_reasoning,
};
use crate::resources::deadline;
use crate::transport::body::{CollectedBody, ProxyBody, collect};

/// The longest error that is read.
const LONGEST: usize = 256 << 10;
/// Why the client's own request is sent.
const REFUSED: &str = "refused";

impl Exchange {
    /// True if a request with this answer can be sent in another form: our body was refused, and
    /// nothing of an answer was used yet.
    pub(super) fn may_send_again(&self, status: StatusCode) -> bool {
        let is_refusal = matches!(status.as_u16(), 400 | 422);
        is_refusal && self.edited().is_some() && self.recoveries == 0 && !self.is_continued
    }

    /// Prepares the next attempt after a refusal.
    pub(super) async fn after_refusal(&mut self, answer: Response<ProxyBody>) {
        let error = match collect(answer.into_body(), LONGEST).await {
            CollectedBody::Whole(error) | CollectedBody::Longer(error, _) => error,
        };
        let fault = reasoning_fault(&error).filter(|fault| self.is_ours_to_mend(*fault));
        let planned = match fault {
            Some(fault) => self.plan_for_reasoning(fault).await,
            None => false,
        };
        if !planned {
            self.bypass_reason = Some(REFUSED);
            let job = &self.managed.job;
            if self.options.reasoning.bound && job.dialect == Dialect::Messages {
                let body = job.body.clone();
                let stripped = spawn_blocking(move || without_reasoning(&body)).await;
                self.stripped_body = stripped.ok().flatten();
            }
        }
    }

    /// True if another plan can help: the request was not planned again yet, and a setting that the
    /// provider does not know is ours.
    fn is_ours_to_mend(&self, fault: ReasoningFault) -> bool {
        let is_setting = fault == ReasoningFault::UnknownSetting;
        !self.is_replanned && (!is_setting || self.outgoing.drops_stale_reasoning)
    }

    /// Learns the rule that the request broke, and plans it again. False if that fails.
    async fn plan_for_reasoning(&mut self, fault: ReasoningFault) -> bool {
        self.is_replanned = true;
        let managed = Arc::clone(&self.managed);
        let models = &managed.job.shared.models;
        if models.learn_reasoning(managed.model_key(), fault) {
            let managed = Arc::clone(&managed);
            spawn_blocking(move || write_down(&managed));
        }
        self.options.reasoning = match fault {
            ReasoningFault::Stale | ReasoningFault::Damaged => ReasoningRule {
                bound: true,
                ..self.options.reasoning
            },
            ReasoningFault::UnknownSetting => ReasoningRule {
                may_drop: false,
                ..self.options.reasoning
            },
        };
        let options = self.options;
        let planning = deadline::run_within(self.patience(), move || {
            managed.with_body(|branch, scan| {
                if fault != ReasoningFault::UnknownSetting {
                    branch.session().reasoning_was_refused()?;
                }
                branch.compose(scan, &options)
            })
        });
        let Ok(Ok(outgoing)) = planning.await else {
            return false;
        };
        self.outgoing = self.managed.job.with_reserved_body(outgoing);
        true
    }
}
