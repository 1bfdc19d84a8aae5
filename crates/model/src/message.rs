//! Messages: the entries sent to the model.
//!
//! `trimtab-wire` reads them from requests and transcripts, the log keeps them unchanged, and the
//! engine decides which of them a window shows.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Call, ExtraFields, Output, Part, Ref, Treatment, Usage, marks, part};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions; some clients call this role `developer`.
    System,
    /// The user, or a program that acts as one.
    User,
    /// The model.
    Assistant,
    /// The tools.
    Tool,
}

impl Role {
    /// The name of the role in every dialect that has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// The purpose of a message, beyond its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageKind {
    /// An ordinary tool output.
    ToolResult,
    /// A tool output that the agent put into a user message.
    Observation,
    /// An archived tool output: hidden from the model, still shown to the user.
    ToolResultArchived,
    /// A summary or digest that replaces archived tool outputs.
    ToolSummary,
    /// The summary that replaces compacted rounds.
    Summary,
    /// Text that must survive a compaction verbatim.
    Retain,
    /// A note of ours to the model.
    Note,
    /// A message that normalisation inserted to make the window valid.
    Repair,
    /// The note that the user interrupted a turn.
    TurnAborted,
}

/// Metadata of a message that is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageMetadata {
    /// Whether the model sees it; yes if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_visible: Option<bool>,
    /// Whether the user sees it; yes if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_visible: Option<bool>,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<MessageKind>,
    /// The ref of an observation's stored text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Ref>,
    /// The usage reported for this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The stop reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The client's spelling of the role, if it differs from [`Role::as_str`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_role: Option<String>,
    /// True if the client wrote the content as a list of parts although a string would do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub content_list: bool,
    /// Unknown fields of the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: ExtraFields,
}

/// One entry sent to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content, in order.
    pub parts: Vec<Part>,
    /// Metadata that is not sent.
    #[serde(default, skip_serializing_if = "MessageMetadata::is_empty")]
    pub meta: MessageMetadata,
}

impl MessageMetadata {
    /// True if there is no metadata.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Message {
    /// A message of `role` with `parts`.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            role,
            parts,
            meta: MessageMetadata::default(),
        }
    }

    /// A system message.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![Part::text(text)])
    }

    /// A user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::text(text)])
    }

    /// An assistant message; no text part if `text` is empty.
    pub fn assistant(text: impl Into<String>) -> Self {
        let text = text.into();
        // Assistant messages that only carry calls have no text, and providers reject empty text
        // parts.
        let parts = if text.is_empty() {
            Vec::new()
        } else {
            vec![Part::text(text)]
        };
        Self::new(Role::Assistant, parts)
    }

    /// A tool message with one plain-text output.
    pub fn output(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Role::Tool, vec![Part::Output(Output::new(call_id, text))])
    }

    /// Adds a call.
    #[must_use]
    pub fn with_call(mut self, call: Call) -> Self {
        self.parts.push(Part::Call(call));
        self
    }

    /// Sets the kind.
    #[must_use]
    pub fn with_kind(mut self, kind: MessageKind) -> Self {
        self.meta.kind = Some(kind);
        self
    }

    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(Part::as_call)
    }

    /// The outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.parts.iter().filter_map(Part::as_output)
    }

    /// True if it contains at least one call.
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// True if it contains at least one output.
    pub fn has_outputs(&self) -> bool {
        self.outputs().next().is_some()
    }

    /// Whether the model sees it.
    pub fn agent_visible(&self) -> bool {
        self.meta.agent_visible.unwrap_or(true)
    }

    /// Whether the user sees it.
    pub fn user_visible(&self) -> bool {
        self.meta.user_visible.unwrap_or(true)
    }

    /// True if a part of it has this treatment, or a part of its outputs.
    pub fn has_part_with(&self, wanted: Treatment) -> bool {
        self.parts.iter().any(|part| part.has(wanted))
    }

    /// True for a summary, and for text that was retained with one.
    pub fn is_summary(&self) -> bool {
        matches!(
            self.meta.kind,
            Some(MessageKind::Summary | MessageKind::Retain)
        )
    }

    /// True for a message that a person wrote, which starts a turn.
    ///
    /// Some designs send summaries, digests, notes, repairs and outputs as user messages; they
    /// never start a turn.
    pub fn is_real_user(&self) -> bool {
        // A plain tool result is the client's own message. All other kinds are either written by us
        // or mark text that no person typed.
        let ours = !matches!(self.meta.kind, None | Some(MessageKind::ToolResult));
        self.role == Role::User && !ours && !self.has_outputs()
    }

    /// The text projection of the message.
    pub fn text(&self) -> Cow<'_, str> {
        part::project(&self.parts)
    }

    /// True if a provider would consider it empty: no parts, blank text, or only reasoning.
    ///
    /// ```
    /// # use trimtab_model::{Message, Part, Role};
    /// assert!(Message::user("  \n").is_empty());
    /// assert!(Message::new(Role::Assistant, vec![Part::reasoning("hm")]).is_empty());
    /// assert!(!Message::output("c1", "").is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.parts
            .iter()
            .all(|part| part.is_blank() || matches!(part, Part::Reasoning(_)))
    }

    /// True if it has a field of its own that is not null, such as a refusal. Marks of ours about
    /// how the client wrote it are no such fields.
    pub fn has_unknown_fields(&self) -> bool {
        let mut fields = self.meta.extra.iter();
        fields.any(|(name, value)| !marks::is_mark(name) && value.as_str() != "null")
    }
}
