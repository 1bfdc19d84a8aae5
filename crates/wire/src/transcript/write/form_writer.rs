//! The trait of the writers, one per form.

use trimtab_model::{Message, Output};

use crate::json::JsonFields;

/// A message that must be written, because it is ours or because it changed.
pub(super) struct NewMessage<'a> {
    /// The message.
    pub(super) message: &'a Message,
    /// Its original units; empty if it is ours.
    pub(super) units: Vec<&'a str>,
    /// A unit of the same conversation, whose session fields also apply to new units.
    pub(super) near: Option<&'a str>,
    /// Its position in the new window, which is unique.
    pub(super) number: usize,
    /// The number of messages behind it in the new window.
    pub(super) behind: usize,
}

impl<'a> NewMessage<'a> {
    /// The unit from which other fields are copied.
    pub(super) fn like(&self) -> &'a str {
        let own = self.units.last().copied();
        own.or(self.near).unwrap_or("{}")
    }

    /// True if it was in the file before.
    pub(super) fn is_old(&self) -> bool {
        !self.units.is_empty()
    }
}

/// Writes units of one form.
pub(super) trait FormWriter {
    /// The unit with other contents of outputs; none if it must be rewritten.
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String>;

    /// New units for a message.
    fn write(&mut self, new: &NewMessage<'_>) -> Vec<String>;

    /// True if each unit names the one before it.
    fn has_links(&self) -> bool {
        false
    }
}

/// The output of the call that a field names.
pub(super) fn output_of<'o>(
    outputs: &[&'o Output],
    fields: &JsonFields<'_>,
    id: &str,
) -> Option<&'o Output> {
    let id = fields.text(id)?;
    let mut outputs = outputs.iter().copied();
    outputs.find(|output| output.call_id == id)
}

/// A deterministic id in the form of a UUID.
pub(super) fn name(like: &str, number: usize, message: &Message) -> String {
    // Version 4 and variant 8 mark the result as an ordinary UUID.
    // The same input must give the same file, so ids are hashes and not random. FNV-1a with 128
    // bits is enough, because nobody profits from a collision.
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let text = message.text();
    let number = number.to_le_bytes();
    for byte in [like.as_bytes(), number.as_slice(), text.as_bytes()]
        .into_iter()
        .flatten()
    {
        hash = (hash ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    }
    let hex = format!("{hash:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-4{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}
