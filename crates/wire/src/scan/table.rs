//! The results of a scan, as tables of spans.

use trimtab_model::{MediaKind, Role};

use crate::json::span::Span;
use crate::json::unscannable::{Unscannable, UnscannableReason};

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// Plain text.
    Text,
    /// Reasoning.
    Reasoning {
        /// True if the provider signed or encrypted it.
        sealed: bool,
    },
    /// An image, a document or a sound.
    Media(MediaKind),
    /// A tool call.
    Call,
    /// The output of a tool.
    Output,
    /// A part of unknown type.
    Opaque,
}

/// One part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSpan {
    /// What it is.
    pub kind: PartKind,
    /// The whole part: an element of a list, an entry of the list of messages, or the value of a
    /// field if the dialect keeps a text or reasoning in one.
    pub span: Span,
    /// The relevant value: the text of a text or reasoning, the arguments of a call, the content of
    /// an output. Empty if it is missing.
    pub content: Span,
    /// The string with the id of a call, or of the call that an output answers. Empty if it is
    /// missing.
    pub id: Span,
}

/// One element of the body's list of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntrySpan {
    pub(crate) span: Span,
    /// The message that it starts or extends, among those of the list.
    pub(crate) message: u32,
}

/// One message of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageRow {
    pub(crate) role: Role,
    /// Its first entry.
    pub(crate) entry: u32,
    /// Its first part.
    pub(crate) part: u32,
}

/// The tables of a scan.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScanTables {
    pub(crate) entries: Vec<EntrySpan>,
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) parts: Vec<PartSpan>,
}

/// The size that the tables may always have, so that short bodies are never rejected.
const FREE: usize = 64 << 10;

impl ScanTables {
    /// Adds a message of `role`; its parts follow.
    pub(crate) fn message(&mut self, role: Role) {
        self.messages.push(MessageRow {
            role,
            entry: narrow(self.entries.len().saturating_sub(1)),
            part: narrow(self.parts.len()),
        });
    }

    /// Adds an entry; its messages follow.
    pub(crate) fn entry(&mut self, span: Span, body: usize) -> Result<(), Unscannable> {
        self.entries.push(EntrySpan {
            span,
            message: narrow(self.messages.len()),
        });
        self.check_size(span.start as usize, body)
    }

    /// Removes everything after the first entries and messages.
    pub(crate) fn truncate(&mut self, entries: usize, messages: usize) {
        let next = self.messages.get(messages);
        let parts = next.map_or(self.parts.len(), |next| next.part as usize);
        self.entries.truncate(entries);
        self.messages.truncate(messages);
        self.parts.truncate(parts);
    }

    /// Rejects tables that outweigh the body: a hostile body consists of tiny parts.
    pub(crate) fn check_size(&self, offset: usize, body: usize) -> Result<(), Unscannable> {
        if self.size() > FREE.max(body.saturating_mul(2)) {
            let why = UnscannableReason::TooManyParts;
            return Err(Unscannable { offset, why });
        }
        Ok(())
    }

    /// The size of the tables in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.entries.as_slice())
            + size_of_val(self.messages.as_slice())
            + size_of_val(self.parts.as_slice())
    }
}

pub(crate) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
