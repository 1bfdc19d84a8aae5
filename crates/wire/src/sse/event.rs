//! What a stream says.

use std::borrow::Cow;

use trimtab_model::{Call, Reasoning, Usage};

use crate::scan::Span;
use crate::scan::string;

/// A piece of text, unescaped only when asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta<'a> {
    json: &'a str,
}

impl<'a> Delta<'a> {
    /// `json` if it is a string.
    pub(super) fn new(json: &'a str) -> Option<Self> {
        json.starts_with('"').then_some(Self { json })
    }

    /// The text.
    pub fn text(&self) -> Cow<'a, str> {
        string(self.json, Span::new(0, self.json.len())).unwrap_or_default()
    }

    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.json.len() <= 2
    }
}

/// Something that a stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The answer begins.
    Start,
    /// More text of the answer.
    Text(Delta<'a>),
    /// More of what the model thinks.
    Reasoning(Delta<'a>),
    /// A thought, complete, with the provider's seal: what has to be sent back. Chat
    /// Completions has none.
    Thought(Reasoning),
    /// A call, complete.
    Call(Call),
    /// What the provider reports so far: the newest figures overrule the older ones.
    Usage(Usage),
    /// Why the model stopped, in the provider's word.
    Stop(String),
    /// The provider reports an error; there may be no end behind it.
    Error(StreamError),
    /// The answer is complete.
    End,
    /// An event that was too long to be read; it passed all the same.
    Overlong,
    /// An event that is not JSON; it passed all the same.
    Malformed,
}

/// An error in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamError {
    /// The provider's name for it: its `code`, else its `type`; empty if it has none.
    pub code: String,
    /// The provider's words.
    pub message: String,
    /// The data of the event, as it came.
    pub data: String,
}
