//! Requests summaries from a model.

use std::sync::Arc;

use trimtab::session::{Answered, Pending, SummaryRequest};
use trimtab_engine::compaction::answer::Ending as SummaryEnding;

use crate::model::{Answer, Ending, Model, Request};
use crate::tools::Definition;

/// Requests summaries from a model.
#[derive(Clone, Debug)]
pub struct Summariser {
    /// The model.
    pub model: Model,
    /// The tools of the summarised rounds, because some providers reject calls of unlisted tools.
    pub tools: Arc<[Definition]>,
}

impl Summariser {
    /// Answers all requests of a pending plan. A failure is recorded, and the plan uses its
    /// fallback.
    pub async fn answer(&self, mut pending: Pending) -> Pending {
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

    async fn ask(&self, asked: SummaryRequest) -> Answered {
        let with_calls = asked
            .messages
            .iter()
            .any(|message| message.has_calls() || message.outputs().next().is_some());
        let messages = asked.messages.into_iter().map(Arc::new).collect();
        let mut request = Request::new(&self.model.name, messages);
        request.max_output = Some(asked.max_output);
        if with_calls {
            request.tools = Arc::clone(&self.tools);
            request.only_text = true;
        }
        match self.model.client.call(request).answer().await {
            Ok(answer) => written(&answer),
            Err(error) => Answered::Failed(error.to_string()),
        }
    }
}

fn written(answer: &Answer) -> Answered {
    Answered::Text {
        text: answer.message.text().into_owned(),
        ending: match answer.ending {
            Ending::Whole => SummaryEnding::Whole,
            Ending::CutOff => SummaryEnding::CutOff,
            Ending::Calls => SummaryEnding::ToolCall,
        },
        usage: answer.usage(),
    }
}
