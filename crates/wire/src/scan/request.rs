//! What a body says besides its messages.

use crate::json::span::Span;

/// A limit of the answer's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The field it stands in.
    pub name: LimitName,
    /// The figure.
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
    /// The whole definition.
    pub span: Span,
    /// The string with its name; empty for the provider's own tools that have none.
    pub name: Span,
}

/// The fields that mark where a cache may end.
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

    /// The marker that is written as field `name`, if it is one.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let all = [Self::CacheControl, Self::PromptCacheBreakpoint];
        all.into_iter().find(|marker| marker.as_str() == name)
    }
}

/// A cache marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerSpan {
    /// Which one it is.
    pub name: MarkerName,
    /// The field, its name included.
    pub field: Span,
    /// Its value.
    pub value: Span,
    /// The object that it marks.
    pub object: Span,
}

/// What may tell one session from another. Each is the span of a value, empty if missing.
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
    /// `prompt`, which Responses keeps.
    pub stored_prompt: Span,
    /// `store`.
    pub store: Span,
}

/// What a body says besides its messages. Spans are of values, empty if missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The body's one object.
    pub body: Span,
    /// `model`.
    pub model: Span,
    /// `stream`.
    pub stream: Span,
    /// The limits of the answer, as they came.
    pub limits: Vec<Limit>,
    /// `system` or `instructions`; in Chat Completions the system speaks in messages.
    pub system: Span,
    /// The field that `system` is the value of, its name included.
    pub(crate) system_field: Span,
    /// `tools`.
    pub tools: Span,
    /// The definitions in it.
    pub tool_list: Vec<ToolSpan>,
    /// `messages` or `input`.
    pub list: Span,
    /// `context_management`: the provider is asked to cut by itself.
    pub context_management: Span,
    /// The cache markers, in the order of the body.
    pub markers: Vec<MarkerSpan>,
    /// What may tell one session from another.
    pub session: SessionHints,
    /// True if the messages are only the newest of a conversation that the provider keeps:
    /// the rest is not ours to cut, so the body goes as it came.
    pub partial: bool,
}
