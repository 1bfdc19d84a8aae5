//! The events of a stream.

use std::borrow::Cow;

use trimtab_model::Usage;

use crate::json::unquoted;

/// A piece of text, unescaped on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextDelta<'a> {
    json: &'a str,
}

impl<'a> TextDelta<'a> {
    /// A delta, if `json` is a string.
    pub(super) fn new(json: &'a str) -> Option<Self> {
        json.starts_with('"').then_some(Self { json })
    }

    /// The text.
    pub fn text(&self) -> Cow<'a, str> {
        unquoted(self.json).unwrap_or_default()
    }

    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.json.len() <= 2
    }
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent<'a> {
    /// The answer starts.
    Start,
    /// More text of the answer.
    Text(TextDelta<'a>),
    /// More of the model's reasoning.
    Reasoning(TextDelta<'a>),
    /// A call of a tool, or more of one. [`AnswerReader`](crate::answer::AnswerReader) has its
    /// arguments.
    Call,
    /// The usage so far; newer figures override older ones.
    Usage(Usage),
    /// The stop reason, in the provider's spelling.
    Stop(String),
    /// An error of the provider; the stream may have no end event.
    Error(StreamError),
    /// The answer is complete.
    End,
    /// An event that was too long to parse, but was forwarded.
    Overlong,
    /// An event that is not JSON, but was forwarded.
    Malformed,
}

/// An error in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamError {
    /// The provider's `code`, else its `type`; may be empty.
    pub code: String,
    /// The provider's message.
    pub message: String,
    /// The original data of the event.
    pub data: String,
}
