//! What a scan found, as tables of spans.

use trimtab_model::{MediaKind, Role};

use crate::json::span::Span;
use crate::json::unscannable::{Unscannable, Why};

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// Plain text.
    Text,
    /// What the model thought.
    Reasoning {
        /// True if the provider signed or encrypted it.
        sealed: bool,
    },
    /// An image, a document, a sound.
    Media(MediaKind),
    /// The model asks for a tool.
    Call,
    /// What the tool gave back.
    Output,
    /// A part of a type that we do not know.
    Opaque,
}

/// One part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSpan {
    /// What it is.
    pub kind: PartKind,
    /// The whole part: an element of a list, an entry of the list of messages, or the value
    /// of a field where the dialect keeps a text or thought in one.
    pub span: Span,
    /// The value that matters: the text of a text or thought, the arguments of a call, the
    /// content of an output. Empty if it is missing.
    pub content: Span,
    /// The string that holds the id of a call, or that of the call which an output answers.
    /// Empty if it is missing.
    pub id: Span,
}

/// One element of the body's list of messages, as the dialect has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) span: Span,
    /// The message of the model that it is, or that it is the first of, or that it adds to.
    pub(crate) message: u32,
}

/// One message of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageRow {
    pub(crate) role: Role,
    /// The first entry that it is made of.
    pub(crate) entry: u32,
    /// Its first part.
    pub(crate) part: u32,
}

/// The tables of a scan, being filled or finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) entries: Vec<Entry>,
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) parts: Vec<PartSpan>,
}

/// What the tables may hold for a body of this many bytes, at least.
const FREE: usize = 64 << 10;

impl Tables {
    /// Adds a message of `role`; its parts follow.
    pub(crate) fn message(&mut self, role: Role) {
        self.messages.push(MessageRow {
            role,
            entry: narrow(self.entries.len().saturating_sub(1)),
            part: narrow(self.parts.len()),
        });
    }

    /// Adds an entry; the messages in it follow.
    pub(crate) fn entry(&mut self, span: Span, body: usize) -> Result<(), Unscannable> {
        self.entries.push(Entry {
            span,
            message: narrow(self.messages.len()),
        });
        self.check_size(span.start as usize, body)
    }

    /// The tables may not outweigh the body: a hostile one is all tiny parts.
    pub(crate) fn check_size(&self, offset: usize, body: usize) -> Result<(), Unscannable> {
        if self.size() > FREE.max(body.saturating_mul(2)) {
            let why = Why::TooManyParts;
            return Err(Unscannable { offset, why });
        }
        Ok(())
    }

    /// How many bytes the tables hold.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.entries.as_slice())
            + size_of_val(self.messages.as_slice())
            + size_of_val(self.parts.as_slice())
    }
}

pub(crate) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
