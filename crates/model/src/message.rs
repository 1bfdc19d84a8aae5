//! One entry sent to the model.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Call, Extra, Output, Part, Ref, Usage, part};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions; also what some clients call `developer`.
    System,
    /// The person, or whatever stands in for one.
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

/// What a message is for, beyond its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// An ordinary tool output.
    ToolResult,
    /// What a tool gave back, told by the agent in a message of the user.
    Observation,
    /// A tool output that was archived: hidden from the model, still shown to the user.
    ToolResultArchived,
    /// A summary or digest that stands for archived tool outputs.
    ToolSummary,
    /// The summary that stands for compacted rounds.
    Summary,
    /// What must survive a compaction word for word.
    Retain,
    /// A note of ours to the model.
    Note,
    /// A message that normalising put in so that the window is valid.
    Repair,
    /// Says that the user broke a turn off.
    TurnAborted,
}

/// What is known of a message beyond what is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Whether the model sees it; unset means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_visible: Option<bool>,
    /// Whether the user sees it; unset means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_visible: Option<bool>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Where the text of an observation is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Ref>,
    /// What the provider reported with this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The role as the client spelled it, where that is not [`Role::as_str`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_role: Option<String>,
    /// True if the client wrote the content as a list of parts although one text would do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub content_list: bool,
    /// Fields of the message that we do not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Extra,
}

/// One entry sent to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// What is known of it beyond what is sent.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub meta: Metadata,
}

impl Metadata {
    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Message {
    /// A message of `role` made of `parts`.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            role,
            parts,
            meta: Metadata::default(),
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

    /// The same message with one more call.
    #[must_use]
    pub fn with_call(mut self, call: Call) -> Self {
        self.parts.push(Part::Call(call));
        self
    }

    /// The same message marked as being of `kind`.
    #[must_use]
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.meta.kind = Some(kind);
        self
    }

    /// The calls in it, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(Part::as_call)
    }

    /// The outputs in it, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.parts.iter().filter_map(Part::as_output)
    }

    /// True if the model asks for at least one tool in it.
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// Whether the model sees it.
    pub fn agent_visible(&self) -> bool {
        self.meta.agent_visible.unwrap_or(true)
    }

    /// Whether the user sees it.
    pub fn user_visible(&self) -> bool {
        self.meta.user_visible.unwrap_or(true)
    }

    /// True for a message that a person wrote: the start of a turn.
    ///
    /// Summaries, digests, notes, repairs and outputs are sent in the user's name by some
    /// designs; they never start a turn.
    pub fn is_real_user(&self) -> bool {
        let ours = !matches!(self.meta.kind, None | Some(Kind::ToolResult));
        self.role == Role::User && !ours && self.outputs().next().is_none()
    }

    /// The text of the message, projected from its parts.
    pub fn text(&self) -> Cow<'_, str> {
        part::project(&self.parts)
    }

    /// True if a provider would find nothing in it: no part, blank text, or a thought alone.
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
}
