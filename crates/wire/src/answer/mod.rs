//! Reads a model's answer as a message, from a stream or a complete body.

mod assemble;
mod reader;

use std::borrow::Cow;

use memchr::memmem;
use serde_json::{Map, Value};
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Part, Role, Usage};

pub use reader::AnswerReader;

use crate::json::{elements, pick, text_of};
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
    pub fn read(dialect: Dialect, body: &[u8]) -> Option<Self> {
        let body = str::from_utf8(body).ok()?;
        // Only the fields that are needed are read, because an answer can have megabytes.
        let (said, stop) = match dialect {
            Dialect::Chat => {
                let [choices] = pick(body, ["choices"])?;
                let choice = elements(choices?).next()?;
                let [message, stop] = pick(choice, ["message", "finish_reason"])?;
                (Cow::from(message?), text_of(stop))
            }
            Dialect::Messages => {
                let [content, stop] = pick(body, ["content", "stop_reason"])?;
                let said = format!(r#"{{"role":"assistant","content":{}}}"#, content?);
                (said.into(), text_of(stop))
            }
            Dialect::Responses => {
                let [output, status, details] =
                    pick(body, ["output", "status", "incomplete_details"])?;
                let reason = details.and_then(|json| pick(json, ["reason"]));
                let reason = reason.and_then(|[reason]| text_of(reason));
                (output?.into(), reason.or_else(|| text_of(status)))
            }
        };
        Some(Self {
            message: read_message(dialect, &said)?,
            usage: usage_in(dialect, body.as_bytes()),
            stop,
        })
    }

    /// The measure of its text: see [`StreamWatcher::said`](crate::sse::StreamWatcher::said).
    pub fn said(&self) -> Measure {
        Measure::of(&Message::assistant(self.message.text()))
    }
}

/// The usage that the body of an answer reports.
pub fn usage_in(dialect: Dialect, body: &[u8]) -> Option<Usage> {
    let [usage] = pick(str::from_utf8(body).ok()?, ["usage"])?;
    let usage: Map<String, Value> = serde_json::from_str(usage?).ok()?;
    Some(Usage::read(dialect, &Value::Object(usage)))
}

/// True if a complete answer calls a tool. Avoids parsing most answers.
pub fn calls_a_tool(dialect: Dialect, body: &[u8]) -> bool {
    let names: &[&str] = match dialect {
        Dialect::Chat => &["tool_calls", "function_call"],
        Dialect::Messages => &["tool_use"],
        // Calls of built-in tools have types of their own.
        Dialect::Responses => &["call_id"],
    };
    may_name(body, names)
        && WholeAnswer::read(dialect, body)
            .is_some_and(|answer| answer.message.has_calls() || has_search(&answer.message))
}

/// True if a message has a search for tools that the client carries out. The provider gives its own
/// searches no call id.
fn has_search(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Opaque(part) => part.type_name == "tool_search_call" && part.ids().shared.is_some(),
        _ => false,
    })
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
fn read_message(dialect: Dialect, json: &str) -> Option<Message> {
    let read = match dialect {
        Dialect::Chat => vec![chat::read_message(json).ok()?],
        Dialect::Messages => messages::read_message(json).ok()?,
        Dialect::Responses => responses::read_input(json).ok()?,
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
            let answer = WholeAnswer::read(dialect, body.as_bytes()).unwrap();
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
        assert!(WholeAnswer::read(Dialect::Chat, b"{}").is_none());
    }
}
