//! A message of a window, as a band of a film.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use trimtab_engine::normalise::Slot;
use trimtab_model::{Message, MessageKind, Role};

/// The kind of content of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FilmRegion {
    /// Instructions.
    System,
    /// User messages.
    User,
    /// Answers and calls of the model.
    Assistant,
    /// Outputs of tools.
    Output,
    /// A text of ours: a summary, a digest, a note.
    Ours,
}

impl FilmRegion {
    /// All regions, in the order of a legend.
    pub const ALL: [Self; 5] = [
        Self::System,
        Self::User,
        Self::Assistant,
        Self::Output,
        Self::Ours,
    ];

    /// Its name in the legend.
    pub fn label(self) -> &'static str {
        match self {
            Self::System => "instructions",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Output => "outputs",
            Self::Ours => "written by Trimtab",
        }
    }
}

/// How a message of the log is shown in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Unchanged.
    Whole,
    /// In part.
    View,
    /// As a text that says where it is.
    Placeholder,
    /// Not in the window.
    Hidden,
    /// A summary represents it and others.
    Summary,
    /// Normalisation changed it, or created it.
    Repaired,
}

/// A message of a window, or a run of small ones of the same kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilmBand {
    /// The position of its first message in the log; none for a text of ours.
    pub message: Option<usize>,
    /// The number of messages that it represents.
    pub count: usize,
    /// The kind of its content.
    pub region: FilmRegion,
    /// How it is shown.
    pub state: MessageState,
    /// Its tokens.
    pub tokens: u64,
}

/// Written as a short list, because a film has thousands of them: message, count, region, state,
/// tokens.
impl Serialize for FilmBand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list = (
            self.message,
            self.count,
            self.region,
            self.state,
            self.tokens,
        );
        list.serialize(serializer)
    }
}

/// The band of a slot; `came` is the original message.
pub fn band_of(slot: &Slot, came: Option<&Arc<Message>>, tokens: u64) -> FilmBand {
    let message = slot.source.in_log();
    FilmBand {
        message,
        count: 1,
        region: region(&slot.message, message.is_none()),
        state: message_state(&slot.message, came),
        tokens,
    }
}

fn region(message: &Message, is_ours: bool) -> FilmRegion {
    let is_output = message.has_outputs()
        || message.meta.kind == Some(MessageKind::Observation)
        || message.role == Role::Tool;
    match message.role {
        _ if is_ours => FilmRegion::Ours,
        _ if is_output => FilmRegion::Output,
        Role::System => FilmRegion::System,
        Role::Assistant => FilmRegion::Assistant,
        _ => FilmRegion::User,
    }
}

/// How `shown` represents the original message.
pub fn message_state(shown: &Arc<Message>, came: Option<&Arc<Message>>) -> MessageState {
    let Some(came) = came else {
        return MessageState::Summary;
    };
    if Arc::ptr_eq(shown, came) || shown.parts == came.parts {
        return MessageState::Whole;
    }
    let (now, before) = (shown.text().len(), came.text().len());
    // A placeholder says little more than where an output is.
    if is_trimmed(shown) && now < PLACEHOLDER_BYTES && now.saturating_mul(4) < before {
        MessageState::Placeholder
    } else {
        MessageState::View
    }
}

/// A shown output of fewer bytes is a placeholder, if it is also much shorter than the original.
const PLACEHOLDER_BYTES: usize = 512;

fn is_trimmed(message: &Message) -> bool {
    message.outputs().any(|output| output.trimmed) || message.meta.stored.is_some()
}
