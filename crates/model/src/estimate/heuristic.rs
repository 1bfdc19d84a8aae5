//! The token heuristics of the five designs, as data.

use super::size::{Length, MessageSizes};
use crate::Message;

/// The unit of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthUnit {
    /// UTF-8 bytes.
    Bytes,
    /// Unicode scalar values.
    Chars,
}

/// The rounding of fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Rounds up.
    Up,
    /// Rounds down.
    Down,
}

/// A countable item of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedField {
    /// The text of the message and of its outputs.
    Text,
    /// The tags of media and unknown parts, as in [`Message::text`].
    Tags,
    /// Readable reasoning.
    Reasoning,
    /// The ids of calls.
    CallId,
    /// The type of calls, which is always `function`.
    CallType,
    /// The names of called tools.
    Name,
    /// The arguments of calls.
    Arguments,
    /// The ids that outputs answer.
    OutputCallId,
}

/// The cost of an image, a document or a sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaCost {
    /// This many units, converted together with the rest.
    Units(u32),
    /// This many tokens.
    Tokens(u32),
}

/// A design's way to estimate tokens from lengths.
///
/// ```
/// use trimtab_model::{Message, estimate::Heuristic};
///
/// let message = Message::user("abcde");
/// assert_eq!(Heuristic::REFS.message(&message), 2);
/// assert_eq!(Heuristic::TURNS.message(&message), 6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// The unit of a plain text.
    pub unit: LengthUnit,
    /// Tokens are units times `numerator` …
    pub numerator: u32,
    /// … divided by `denominator`,
    pub denominator: u32,
    /// rounded this way, once per text or message.
    pub rounding: Rounding,
    /// Units added to each message.
    pub per_message: u32,
    /// The cost of a medium.
    pub per_media: MediaCost,
    /// Units added to each tool definition.
    pub per_tool: u32,
    /// The counted items, and their units.
    pub counted: &'static [(CountedField, LengthUnit)],
    /// True if messages that the model does not see cost nothing.
    pub skips_hidden: bool,
}

/// Bytes of `function`.
const CALL_TYPE: u32 = 8;

impl Heuristic {
    /// `refs`: bytes of the text projection, four to a token, rounded up.
    pub const REFS: Self = Self {
        unit: LengthUnit::Bytes,
        numerator: 1,
        denominator: 4,
        rounding: Rounding::Up,
        per_message: 0,
        per_media: MediaCost::Tokens(0),
        per_tool: 0,
        counted: &[
            (CountedField::Text, LengthUnit::Bytes),
            (CountedField::Tags, LengthUnit::Bytes),
        ],
        skips_hidden: false,
    };

    /// `turns`: two and a half characters to a token, twelve more per message, rounded down;
    /// the fields of calls in bytes; 256 tokens per medium.
    pub const TURNS: Self = Self {
        unit: LengthUnit::Chars,
        numerator: 2,
        denominator: 5,
        rounding: Rounding::Down,
        per_message: 12,
        per_media: MediaCost::Tokens(256),
        per_tool: 20,
        counted: &[
            (CountedField::Text, LengthUnit::Chars),
            (CountedField::Reasoning, LengthUnit::Chars),
            (CountedField::CallId, LengthUnit::Bytes),
            (CountedField::CallType, LengthUnit::Bytes),
            (CountedField::Name, LengthUnit::Bytes),
            (CountedField::Arguments, LengthUnit::Bytes),
            (CountedField::OutputCallId, LengthUnit::Bytes),
        ],
        skips_hidden: false,
    };

    /// `archive`: four characters to a token, rounded up; 4,800 characters per medium; nothing for
    /// hidden messages. The design says characters, but its code counts bytes.
    pub const ARCHIVE: Self = Self {
        unit: LengthUnit::Chars,
        numerator: 1,
        denominator: 4,
        rounding: Rounding::Up,
        per_message: 0,
        per_media: MediaCost::Units(4800),
        per_tool: 0,
        counted: &[
            (CountedField::Text, LengthUnit::Chars),
            (CountedField::Reasoning, LengthUnit::Chars),
            (CountedField::Name, LengthUnit::Chars),
            (CountedField::Arguments, LengthUnit::Chars),
        ],
        skips_hidden: true,
    };

    /// `checkpoint`: three and a half characters to a token,
    /// twenty more per message, rounded down.
    pub const CHECKPOINT: Self = Self {
        unit: LengthUnit::Chars,
        numerator: 2,
        denominator: 7,
        rounding: Rounding::Down,
        per_message: 20,
        per_media: MediaCost::Tokens(0),
        per_tool: 0,
        counted: &[(CountedField::Text, LengthUnit::Chars)],
        skips_hidden: false,
    };

    /// The tokens of a plain text.
    pub fn text(&self, text: &str) -> u64 {
        self.convert(units(Length::of(text), self.unit))
    }

    /// The tokens of a message.
    pub fn message(&self, message: &Message) -> u64 {
        if self.skips_hidden && !message.agent_visible() {
            return 0;
        }
        self.sizes(&MessageSizes::of(message))
    }

    /// The tokens of one message with known sizes, in constant time.
    ///
    /// Rounding is per message, so add up these results, not the sizes.
    pub fn sizes(&self, sizes: &MessageSizes) -> u64 {
        let counted: u64 = self
            .counted
            .iter()
            .map(|&(what, unit)| counted_units(sizes, what, unit))
            .sum();
        let overhead = u64::from(self.per_message) * u64::from(sizes.messages);
        let media = u64::from(sizes.media);
        match self.per_media {
            MediaCost::Units(units) => self.convert(counted + overhead + media * u64::from(units)),
            MediaCost::Tokens(tokens) => {
                self.convert(counted + overhead) + media * u64::from(tokens)
            }
        }
    }

    /// The tokens of tool definitions with these sizes: name, description and the JSON of the
    /// parameters, converted once for all tools.
    pub fn tools(&self, sizes: &MessageSizes) -> u64 {
        let around = u64::from(self.per_tool) * u64::from(sizes.tools);
        self.convert(units(sizes.tool_fields, self.unit) + around)
    }

    fn convert(&self, units: u64) -> u64 {
        let scaled = units.saturating_mul(u64::from(self.numerator));
        // The fields are public, and a division by zero would panic.
        let denominator = u64::from(self.denominator.max(1));
        match self.rounding {
            Rounding::Up => scaled.div_ceil(denominator),
            Rounding::Down => scaled / denominator,
        }
    }
}

fn counted_units(sizes: &MessageSizes, what: CountedField, unit: LengthUnit) -> u64 {
    match what {
        CountedField::Text => units(sizes.text, unit),
        CountedField::Reasoning => units(sizes.reasoning, unit),
        CountedField::Name => units(sizes.names, unit),
        CountedField::Arguments => units(sizes.arguments, unit),
        CountedField::Tags => u64::from(sizes.tags),
        CountedField::CallId => u64::from(sizes.call_ids),
        CountedField::CallType => u64::from(sizes.calls) * u64::from(CALL_TYPE),
        CountedField::OutputCallId => u64::from(sizes.output_ids),
    }
}

fn units(length: Length, unit: LengthUnit) -> u64 {
    u64::from(match unit {
        LengthUnit::Bytes => length.bytes,
        LengthUnit::Chars => length.chars,
    })
}

#[cfg(test)]
mod tests;
