//! Prompts that are too long, refused as each provider does it.

use serde_json::json;
use trimtab_model::Dialect;

use super::answer::{AnswerEvent, RenderedEvents};
use super::refusal::ProviderRefusal;

/// How a prompt that is too long is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverflowForm {
    /// With status 400.
    #[default]
    Status,
    /// With status 200 and an error as the first event; status 400 when not streamed.
    FirstEvent,
    /// With status 200, a stream that begins well, and `response.failed`; the other dialects,
    /// which have no such event, use the first event.
    Failed,
    /// With status 400, in the words of llama.cpp's server.
    LlamaCpp,
    /// Not at all: the prompt is cut to the window, and only the usage tells.
    Silent,
}

/// How much is too much.
#[derive(Clone, Copy)]
pub(super) struct Excess {
    pub(super) tokens: u64,
    /// The limit of the answer, where that is what makes it too much.
    pub(super) answer: Option<u64>,
    pub(super) window: u64,
}

impl Excess {
    /// What is too much about a prompt of `tokens` that leaves room for `answer`.
    pub(super) fn of(tokens: u64, answer: Option<u64>, window: u64) -> Option<Self> {
        let excess = |answer| Self {
            tokens,
            answer,
            window,
        };
        if tokens > window {
            return Some(excess(None));
        }
        let both = tokens.saturating_add(answer?);
        (both > window).then(|| excess(answer))
    }

    /// A prompt of `tokens` that is too much for `window`, whatever its length.
    pub(super) fn of_any(tokens: u64, window: u64) -> Self {
        Self {
            tokens: tokens.max(window.saturating_add(1)),
            answer: None,
            window,
        }
    }

    /// The error as status and body.
    pub(super) fn refusal(self, dialect: Dialect, form: OverflowForm) -> ProviderRefusal {
        if form == OverflowForm::LlamaCpp {
            return self.llama();
        }
        let Self { tokens, window, .. } = self;
        let code = Some("context_length_exceeded");
        match (dialect, self.answer) {
            (Dialect::Chat, None) => ProviderRefusal::openai(
                format!(
                    "This model's maximum context length is {window} tokens. However, your \
                     messages resulted in {tokens} tokens. Please reduce the length of the \
                     messages."
                ),
                Some("messages"),
                code,
            ),
            (Dialect::Chat, Some(answer)) => ProviderRefusal::openai(
                format!(
                    "This model's maximum context length is {window} tokens. However, you \
                     requested {both} tokens ({tokens} in the messages, {answer} in the \
                     completion). Please reduce the length of the messages or completion.",
                    both = tokens.saturating_add(answer)
                ),
                Some("messages"),
                code,
            ),
            (Dialect::Responses, _) => ProviderRefusal::openai(
                "Your input exceeds the context window of this model. Please adjust your input \
                 and try again.",
                Some("input"),
                code,
            ),
            (Dialect::Messages, None) => ProviderRefusal::anthropic(format!(
                "prompt is too long: {tokens} tokens > {window} maximum"
            )),
            (Dialect::Messages, Some(answer)) => ProviderRefusal::anthropic(format!(
                "input length and `max_tokens` exceed context limit: {tokens} + {answer} > \
                 {window}, decrease input length or `max_tokens` and try again"
            )),
        }
    }

    fn llama(self) -> ProviderRefusal {
        let Self { tokens, window, .. } = self;
        let message = format!(
            "request ({tokens} tokens) exceeds the available context size ({window} tokens), \
             try increasing it"
        );
        let error = json!({
            "code": 400, "message": message, "type": "exceed_context_size_error",
            "n_prompt_tokens": tokens, "n_ctx": window,
        });
        ProviderRefusal {
            status: 400,
            body: json!({"error": error}),
        }
    }

    /// The error as a stream, where `form` wants one.
    pub(super) fn stream(self, dialect: Dialect, form: OverflowForm) -> Option<RenderedEvents> {
        let refusal = self.refusal(dialect, form);
        let events = match (form, dialect) {
            (OverflowForm::Failed, Dialect::Responses) => failed(&refusal),
            (OverflowForm::FirstEvent | OverflowForm::Failed, _) => {
                vec![error_event(dialect, &refusal, 0)]
            }
            _ => return None,
        };
        Some(RenderedEvents::Events(events))
    }
}

/// An error as an event, the one with number `sequence` of its stream.
pub(super) fn error_event(
    dialect: Dialect,
    refusal: &ProviderRefusal,
    sequence: usize,
) -> AnswerEvent {
    match dialect {
        Dialect::Chat => AnswerEvent::new(None, refusal.body.clone()),
        Dialect::Messages => AnswerEvent::new(Some("error"), refusal.body.clone()),
        Dialect::Responses => {
            let error = refusal.error();
            let data = json!({"type": "error", "sequence_number": sequence, "error": error});
            AnswerEvent::new(Some("error"), data)
        }
    }
}

fn failed(refusal: &ProviderRefusal) -> Vec<AnswerEvent> {
    let code = refusal.body.pointer("/error/code").cloned();
    let error = json!({"code": code, "message": refusal.message()});
    let steps = [
        ("response.created", "in_progress"),
        ("response.in_progress", "in_progress"),
        ("response.failed", "failed"),
    ];
    let events = steps
        .into_iter()
        .enumerate()
        .map(|(sequence, (name, status))| {
            let error = (status == "failed").then_some(&error);
            let response = json!({
                "id": "resp_overflow", "object": "response", "created_at": super::answer::CREATED,
                "status": status, "background": false, "error": error, "output": [],
                "usage": null, "user": null, "metadata": {},
            });
            let data = json!({"type": name, "sequence_number": sequence, "response": response});
            AnswerEvent::new(Some(name), data)
        });
    events.collect()
}
