//! Another attempt after a provider has refused our body for another reason than its size.
//!
//! A refusal because of reasoning teaches us the rule of the model, and the request is planned again
//! under it. Otherwise the client's own request is sent, once.

use std::sync::Arc;

use http::Response;
use tokio::task::spawn_blocking;

use super::Exchange;
use super::learning::write_down;
use crate::answer::refused_reasoning::{self, ReadRefusal};
use crate::models::reasoning_rule::{ReasoningFault, ReasoningRule};
use crate::resources::deadline;
use crate::transport::body::ProxyBody;

/// Why the client's own request is sent.
const REFUSED: &str = "refused";

impl Exchange {
    /// Prepares the next attempt after a refusal. Gives the refusal back if there is none.
    pub(super) async fn after_refusal(
        &mut self,
        answer: Response<ProxyBody>,
    ) -> Option<Response<ProxyBody>> {
        let is_about_content = matches!(answer.status().as_u16(), 400 | 422);
        // Once something of an answer was used, the client's own request is no alternative.
        if !is_about_content || self.edited().is_none() || self.is_continued {
            return Some(answer);
        }
        let ReadRefusal { fault, answer } = refused_reasoning::read(answer).await;
        if let Some(fault) = fault.filter(|fault| self.can_plan_for(*fault))
            && self.plan_for_reasoning(fault).await
        {
            return None;
        }
        // After an overflow the client's own request is known to be too long.
        if self.recoveries > 0 {
            return Some(answer);
        }
        self.bypass_reason = Some(REFUSED);
        None
    }

    /// True if another plan can help: the request was not planned again yet, and a setting that the
    /// provider does not know is ours.
    fn can_plan_for(&self, fault: ReasoningFault) -> bool {
        let is_setting = fault == ReasoningFault::UnknownSetting;
        !self.is_replanned && (!is_setting || self.options.reasoning.may_drop)
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
                let outgoing = branch.compose(scan, &options)?;
                // Removed reasoning must not come back after a crash.
                branch.flush()?;
                Ok(outgoing)
            })
        });
        let Ok(Ok(outgoing)) = planning.await else {
            return false;
        };
        self.outgoing = self.managed.job.with_reserved_body(outgoing);
        true
    }
}
