//! The token heuristics of the five designs.

use super::size::{Length, MessageSizes};
use crate::Message;

/// A design's way to estimate tokens from lengths.
///
/// ```
/// use trimtab_model::{Message, estimate::Heuristic};
///
/// let message = Message::user("abcde");
/// assert_eq!(Heuristic::Refs.message(&message), 2);
/// assert_eq!(Heuristic::Turns.message(&message), 6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heuristic {
    /// `refs`: bytes of the text projection, four to a token, rounded up.
    Refs,
    /// `turns`: two and a half characters to a token, twelve more per message, rounded down;
    /// the fields of calls in bytes; 256 tokens per medium.
    Turns,
    /// `archive`: four characters to a token, rounded up; 4,800 characters per medium; nothing for
    /// hidden messages. The design says characters, but its code counts bytes.
    Archive,
    /// `checkpoint`: three and a half characters to a token,
    /// twenty more per message, rounded down.
    Checkpoint,
}

/// Bytes of `function`, the type of all calls, which `turns` counts.
const CALL_TYPE: u64 = 8;
/// What `turns` adds: characters per message and per tool, tokens per medium.
const TURNS_MESSAGE: u64 = 12;
const TURNS_TOOL: u64 = 20;
const TURNS_MEDIUM: u64 = 256;
/// The characters that a medium is to `archive`.
const ARCHIVE_MEDIUM: u64 = 4_800;
/// The characters that `checkpoint` adds per message.
const CHECKPOINT_MESSAGE: u64 = 20;

impl Heuristic {
    /// The tokens of a plain text.
    pub fn text(self, text: &str) -> u64 {
        self.convert(self.units(Length::of(text)))
    }

    /// The tokens of a message.
    pub fn message(self, message: &Message) -> u64 {
        if self == Self::Archive && !message.agent_visible() {
            return 0;
        }
        self.sizes(&MessageSizes::of(message))
    }

    /// The tokens of one message with known sizes, in constant time.
    ///
    /// Rounding is per message, so add up these results, not the sizes.
    pub fn sizes(self, sizes: &MessageSizes) -> u64 {
        let chars = |length: Length| u64::from(length.chars);
        let bytes = |length: Length| u64::from(length.bytes);
        let messages = u64::from(sizes.messages);
        let media = u64::from(sizes.media);
        match self {
            Self::Refs => self.convert(bytes(sizes.text) + u64::from(sizes.tags)),
            Self::Turns => {
                let calls = bytes(sizes.names)
                    + bytes(sizes.arguments)
                    + u64::from(sizes.call_ids)
                    + u64::from(sizes.calls) * CALL_TYPE
                    + u64::from(sizes.output_ids);
                let texts = chars(sizes.text) + chars(sizes.reasoning);
                self.convert(texts + calls + messages * TURNS_MESSAGE) + media * TURNS_MEDIUM
            }
            Self::Archive => {
                let texts = [sizes.text, sizes.reasoning, sizes.names, sizes.arguments];
                let texts: u64 = texts.into_iter().map(chars).sum();
                self.convert(texts + media * ARCHIVE_MEDIUM)
            }
            Self::Checkpoint => self.convert(chars(sizes.text) + messages * CHECKPOINT_MESSAGE),
        }
    }

    /// The tokens of tool definitions with these sizes: name, description and the JSON of the
    /// parameters, converted once for all tools.
    pub fn tools(self, sizes: &MessageSizes) -> u64 {
        let around = match self {
            Self::Turns => u64::from(sizes.tools) * TURNS_TOOL,
            _ => 0,
        };
        self.convert(self.units(sizes.tool_fields) + around)
    }

    fn units(self, length: Length) -> u64 {
        u64::from(match self {
            Self::Refs => length.bytes,
            _ => length.chars,
        })
    }

    fn convert(self, units: u64) -> u64 {
        match self {
            Self::Refs | Self::Archive => units.div_ceil(4),
            Self::Turns => units.saturating_mul(2) / 5,
            Self::Checkpoint => units.saturating_mul(2) / 7,
        }
    }
}

#[cfg(test)]
mod tests;
