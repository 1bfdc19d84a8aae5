//! Reads a model's answer as a message, from a stream or a complete body.

mod assemble;

use memchr::memmem;
use serde_json::{Value, json};
use trimtab_model::{Dialect, Message, Role, Usage};

pub use assemble::AnswerAssembler;

use crate::{chat, messages, responses};

/// The maximum size of an answer that is buffered.
///
/// The longest real answers have some hundred kilobytes; the buffered form takes a few times its
/// size.
pub const LONGEST_ANSWER: usize = 8 << 20;

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeAnswer {
    /// The message.
    pub message: Message,
    /// The reported usage.
    pub usage: Option<Usage>,
    /// The stop reason, in the spelling of the dialect.
    pub stop: Option<String>,
}

impl WholeAnswer {
    /// Parses the body of an answer; none if it does not match the dialect.
    pub fn read(dialect: Dialect, mut body: Value) -> Option<Self> {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let stop = match dialect {
            Dialect::Chat => text("/choices/0/finish_reason"),
            Dialect::Messages => text("/stop_reason"),
            Dialect::Responses => text("/incomplete_details/reason").or_else(|| text("/status")),
        };
        let stop = stop.map(str::to_owned);
        let usage = body.get("usage").filter(|usage| usage.is_object());
        let usage = usage.map(|usage| Usage::read(dialect, usage));
        // Taken out and not copied: an answer can have megabytes.
        let said = match dialect {
            Dialect::Chat => body.pointer_mut("/choices/0/message")?.take(),
            Dialect::Messages => {
                let content = body.get_mut("content")?.take();
                json!({"role": "assistant", "content": content})
            }
            Dialect::Responses => body.get_mut("output")?.take(),
        };
        let message = read_message(dialect, &said)?;
        Some(Self {
            message,
            usage,
            stop,
        })
    }
}

/// True if a complete answer calls a tool. Avoids parsing most answers.
pub fn calls_a_tool(dialect: Dialect, body: &[u8]) -> bool {
    let names: &[&str] = match dialect {
        Dialect::Chat => &["tool_calls", "function_call"],
        Dialect::Messages => &["tool_use"],
        // Calls of built-in tools have types of their own.
        Dialect::Responses => &["call_id"],
    };
    may_name(body, names) && {
        let body = serde_json::from_slice(body).ok();
        let answer = body.and_then(|body| WholeAnswer::read(dialect, body));
        answer.is_some_and(|answer| answer.message.has_calls())
    }
}

/// False if a JSON text contains none of the names.
pub fn may_name(json: &[u8], names: &[&str]) -> bool {
    // A name can be written with escapes, in which case the search does not find it.
    let escaped = || memmem::find(json, b"\\u00").is_some();
    let is_named = |name: &&str| memmem::find(json, name.as_bytes()).is_some();
    names.iter().any(is_named) || escaped()
}

/// True for stop reasons, of all dialects, of an unfinished answer.
pub fn is_cut_off(stop: &str) -> bool {
    matches!(
        stop,
        "length"
            | "max_tokens"
            | "max_output_tokens"
            | "incomplete"
            | "model_context_window_exceeded"
    )
}

/// True if a content type is an event stream.
pub fn is_event_stream(content_type: &str) -> bool {
    content_type.trim_start().starts_with("text/event-stream")
}

/// Parses the message in the form of the dialect.
fn read_message(dialect: Dialect, said: &Value) -> Option<Message> {
    let json = said.to_string();
    let read = match dialect {
        Dialect::Chat => vec![chat::read_message(&json).ok()?],
        Dialect::Messages => messages::read_message(&json).ok()?,
        Dialect::Responses => responses::read_input(&json).ok()?,
    };
    // Responses can give several messages, for example with a provider's own output in between.
    let mut spoken = read.into_iter().filter(|said| said.role == Role::Assistant);
    let first = spoken.next()?;
    Some(spoken.fold(first, |mut whole, more| {
        whole.parts.extend(more.parts);
        whole
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_answer_is_read_in_every_dialect() {
        let read = |dialect, body: &str| {
            let answer = WholeAnswer::read(dialect, serde_json::from_str(body).unwrap());
            let answer = answer.unwrap();
            let prompt = answer.usage.unwrap().prompt();
            (
                answer.message.text().into_owned(),
                prompt,
                answer.stop.unwrap(),
            )
        };
        let said = |stop: &str| ("hi".to_owned(), 7, stop.to_owned());
        let chat = r#"{"choices": [{"message": {"role": "assistant", "content": "hi"},
            "finish_reason": "stop"}], "usage": {"prompt_tokens": 7}}"#;
        assert_eq!(read(Dialect::Chat, chat), said("stop"));
        let messages = r#"{"content": [{"type": "text", "text": "hi"}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 7}}"#;
        assert_eq!(read(Dialect::Messages, messages), said("end_turn"));
        let responses = r#"{"output": [{"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "hi"}]}],
            "status": "completed", "usage": {"input_tokens": 7}}"#;
        assert_eq!(read(Dialect::Responses, responses), said("completed"));
        assert!(WholeAnswer::read(Dialect::Chat, json!({})).is_none());
    }
}
