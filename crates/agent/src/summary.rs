//! Requests summaries from a model.

use std::sync::Arc;

use trimtab::session::{PendingSummary, SummariserAnswer, SummaryRequest};
use trimtab_engine::decide::summary::answer::SummaryEnding;

use crate::model::{AnswerEnding, Model, ModelAnswer, ModelRequest};
use crate::tools::ToolDefinition;

/// Requests summaries from a model.
#[derive(Clone, Debug)]
pub struct ModelSummariser {
    /// The model.
    pub model: Model,
    /// The tools of the summarised rounds, because some providers reject calls of unlisted tools.
    pub tools: Arc<[ToolDefinition]>,
}

impl ModelSummariser {
    /// Answers all requests of a pending plan. A failure is recorded, and the plan uses its
    /// fallback.
    pub async fn answer(&self, mut pending: PendingSummary) -> PendingSummary {
        while let Some(request) = pending.request() {
            let answered = self.ask(request).await;
            let failed = answered.is_failed();
            pending.answer(answered);
            if failed {
                // The client has already retried, so further requests would fail too.
                break;
            }
        }
        pending
    }

    async fn ask(&self, asked: SummaryRequest) -> SummariserAnswer {
        let with_calls = asked
            .messages
            .iter()
            .any(|message| message.has_calls() || message.outputs().next().is_some());
        let messages = asked.messages.into_iter().map(Arc::new).collect();
        let mut request = ModelRequest::new(&self.model.name, messages);
        request.max_output = Some(asked.max_output);
        if with_calls {
            request.tools = Arc::clone(&self.tools);
            // The definitions must be listed for the calls in the history, but the summariser must
            // not call.
            request.only_text = true;
        }
        match self.model.client.call(request).answer().await {
            Ok(answer) => written(&answer),
            Err(error) => SummariserAnswer::Failed(error.to_string()),
        }
    }
}

fn written(answer: &ModelAnswer) -> SummariserAnswer {
    SummariserAnswer::Text {
        text: answer.message.text().into_owned(),
        ending: match answer.ending {
            AnswerEnding::Whole => SummaryEnding::Whole,
            AnswerEnding::CutOff => SummaryEnding::CutOff,
            AnswerEnding::Calls => SummaryEnding::ToolCall,
        },
        usage: answer.usage(),
    }
}
