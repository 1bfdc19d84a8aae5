//! The fields of a body besides its messages.

use crate::json::span::Span;

/// An output limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimit {
    /// The field.
    pub name: LimitName,
    /// The number.
    pub span: Span,
}

/// The fields that limit the length of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitName {
    /// `max_tokens`: Messages, and Chat Completions of most servers.
    MaxTokens,
    /// `max_completion_tokens`: Chat Completions.
    MaxCompletionTokens,
    /// `max_output_tokens`: Responses.
    MaxOutputTokens,
}

impl LimitName {
    /// The field's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxOutputTokens => "max_output_tokens",
        }
    }
}

/// The definition of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolSpan {
    /// The definition.
    pub span: Span,
    /// The string with its name; empty for built-in tools without one.
    pub name: Span,
}

/// The fields that mark the end of a cached prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkerName {
    /// `cache_control`.
    CacheControl,
    /// `prompt_cache_breakpoint`.
    PromptCacheBreakpoint,
}

impl MarkerName {
    /// The field's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CacheControl => "cache_control",
            Self::PromptCacheBreakpoint => "prompt_cache_breakpoint",
        }
    }

    /// The marker with the field name `name`, if any.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let all = [Self::CacheControl, Self::PromptCacheBreakpoint];
        all.into_iter().find(|marker| marker.as_str() == name)
    }
}

/// A cache marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerSpan {
    /// Its kind.
    pub name: MarkerName,
    /// The field, including its name.
    pub field: Span,
    /// Its value.
    pub value: Span,
    /// The object that it marks.
    pub object: Span,
}

/// Values that may identify a session. Each span is empty if the field is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionHints {
    /// `metadata.user_id`, in which some clients put their session.
    pub metadata_user_id: Span,
    /// `user`.
    pub user: Span,
    /// `prompt_cache_key`.
    pub prompt_cache_key: Span,
    /// `previous_response_id`.
    pub previous_response_id: Span,
    /// `conversation`.
    pub conversation: Span,
    /// `prompt`, a stored prompt of Responses.
    pub stored_prompt: Span,
    /// `store`.
    pub store: Span,
}

/// The fields of a body besides its messages. Spans are of values, empty if missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFields {
    /// The body's object.
    pub body: Span,
    /// `model`.
    pub model: Span,
    /// `stream`.
    pub stream: Span,
    /// `background`, with which Responses answers later.
    pub background: Span,
    /// The output limits, in order.
    pub limits: Vec<AnswerLimit>,
    /// `system` or `instructions`; Chat Completions has system messages instead.
    pub system: Span,
    /// The field of `system`, including its name.
    pub(crate) system_field: Span,
    /// `tools`.
    pub tools: Span,
    /// The definitions in `tools`.
    pub tool_list: Vec<ToolSpan>,
    /// `messages` or `input`.
    pub list: Span,
    /// `thinking`, the switch of Messages for reasoning.
    pub thinking: Span,
    /// The cache markers, in the order of the body.
    pub markers: Vec<MarkerSpan>,
    /// Values that may identify a session.
    pub session: SessionHints,
    /// True if the provider keeps the earlier messages of the conversation. They cannot be managed,
    /// so the body is sent unchanged.
    pub partial: bool,
}
