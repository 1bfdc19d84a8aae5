//! The forms of transcripts, detected by content.

use std::fmt;

use serde_json::value::RawValue;
use trimtab_model::Dialect;

use crate::json::{self, JsonFields, JsonType, type_of};

/// The form of a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TranscriptForm {
    /// Chat Completions messages.
    #[default]
    Chat,
    /// A Messages request.
    Messages,
    /// Responses input.
    Responses,
    /// A session of Claude Code.
    ClaudeCode,
    /// A rollout of Codex.
    Codex,
    /// A session exported by opencode.
    OpenCode,
}

impl TranscriptForm {
    /// All forms.
    pub const ALL: [Self; 6] = [
        Self::Chat,
        Self::Messages,
        Self::Responses,
        Self::ClaudeCode,
        Self::Codex,
        Self::OpenCode,
    ];

    /// A short name for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Responses => "responses",
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }

    /// The dialect whose rules its windows must follow.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Messages | Self::ClaudeCode => Dialect::Messages,
            Self::Responses | Self::Codex => Dialect::Responses,
            Self::Chat | Self::OpenCode => Dialect::Chat,
        }
    }

    /// True if [`write`](fn@super::write) writes transcripts of this form. Sessions of opencode are
    /// only read: it keeps them in a database.
    pub fn is_written(self) -> bool {
        self != Self::OpenCode
    }
}

impl fmt::Display for TranscriptForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chat => "Chat Completions messages (JSON or JSONL)",
            Self::Messages => "Messages requests",
            Self::Responses => "Responses input",
            Self::ClaudeCode => "Claude Code session JSONL",
            Self::Codex => "Codex rollout JSONL",
            Self::OpenCode => "opencode session export",
        })
    }
}

/// The classification of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineContent {
    /// A whole conversation.
    Conversation,
    /// One line of a session of Claude Code.
    ClaudeCode,
    /// One line of a rollout of Codex.
    Codex,
    /// One message of a conversation with one message per line.
    Message,
}

impl LineContent {
    /// True for a line of a client's log.
    pub(super) fn is_log(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex)
    }
}

/// Classifies a value.
pub(super) fn recognise(raw: &RawValue) -> Option<LineContent> {
    match type_of(raw) {
        JsonType::List => Some(LineContent::Conversation),
        JsonType::Object => recognise_object(&json::fields(raw)?),
        _ => None,
    }
}

fn recognise_object(fields: &JsonFields<'_>) -> Option<LineContent> {
    if conversation(fields).is_some() {
        return Some(LineContent::Conversation);
    }
    let type_name = fields.text("type").unwrap_or_default();
    if fields.has("payload") && is_codex(&type_name) {
        return Some(LineContent::Codex);
    }
    if is_claude_code(fields) {
        return Some(LineContent::ClaudeCode);
    }
    // Entries of Responses need not have a role.
    let entry = fields.has("call_id") || type_name == "reasoning";
    (fields.type_of("role") == Some(JsonType::Text) || entry).then_some(LineContent::Message)
}

fn is_codex(type_name: &str) -> bool {
    matches!(
        type_name,
        "session_meta" | "turn_context" | "response_item" | "event_msg" | "compacted"
    )
}

fn is_claude_code(fields: &JsonFields<'_>) -> bool {
    let named = ["uuid", "sessionId", "leafUuid", "snapshot"];
    fields.type_of("type") == Some(JsonType::Text) && named.iter().any(|name| fields.has(name))
}

/// The fields of batch files that hold a request.
pub(super) const BATCH_FIELDS: [&str; 3] = ["body", "params", "request"];

/// The object with the conversation: this one, or the request inside a batch entry.
pub(super) fn conversation<'a>(fields: &JsonFields<'a>) -> Option<JsonFields<'a>> {
    if holds_conversation(fields) {
        return Some(fields.clone());
    }
    let mut inner = BATCH_FIELDS.iter().filter_map(|name| fields.fields(name));
    inner.find(holds_conversation)
}

/// True if an object has a list of messages, or the input of Responses.
pub(super) fn holds_conversation(fields: &JsonFields<'_>) -> bool {
    let input = matches!(
        fields.type_of("input"),
        Some(JsonType::List | JsonType::Text)
    );
    // A call of Responses also has an `input`, but it has a type.
    fields.type_of("messages") == Some(JsonType::List) || (input && !fields.has("type"))
}

/// The dialect of a list of messages; none if every dialect would do.
pub(super) fn dialect_of(messages: &[JsonFields<'_>]) -> Option<TranscriptForm> {
    messages.iter().find_map(dialect_of_message)
}

/// The dialect of a message, if it can be told.
pub(super) fn dialect_of_message(message: &JsonFields<'_>) -> Option<TranscriptForm> {
    let chat = [
        "tool_calls",
        "tool_call_id",
        "function_call",
        "reasoning_content",
    ];
    if chat.iter().any(|name| message.has(name)) {
        return Some(TranscriptForm::Chat);
    }
    let type_name = message.text("type").unwrap_or_default();
    if message.has("call_id") || type_name == "reasoning" {
        return Some(TranscriptForm::Responses);
    }
    let content = message.get("content")?;
    if type_of(content) != JsonType::List {
        return None;
    }
    json::list(content)?.into_iter().find_map(dialect_of_part)
}

fn dialect_of_part(part: &RawValue) -> Option<TranscriptForm> {
    let fields = json::fields(part)?;
    match fields.text("type")?.as_ref() {
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use" => {
            Some(TranscriptForm::Messages)
        }
        // Other dialects have parts of these names as well, without a `source`.
        "image" | "document" if fields.has("source") => Some(TranscriptForm::Messages),
        "input_text" | "output_text" | "input_image" => Some(TranscriptForm::Responses),
        "image_url" | "file" => Some(TranscriptForm::Chat),
        _ => None,
    }
}
