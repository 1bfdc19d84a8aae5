//! How a form spells what is new in it.

use std::collections::HashMap;

use trimtab_model::{Message, Output};

/// A message that must be written down, because it is ours or because it changed.
pub(super) struct New<'a> {
    /// The message.
    pub(super) message: &'a Message,
    /// The units that it stood in; none if it is ours.
    pub(super) units: Vec<&'a str>,
    /// A unit of the same conversation: what it says of the session holds for new ones too. The
    /// new ones stand before it, unless `is_last`.
    pub(super) near: Option<&'a str>,
    /// True if no unit that stays follows.
    pub(super) is_last: bool,
    /// True if it stood somewhere else in the file.
    pub(super) has_moved: bool,
    /// Its position among what is sent: no other new message has the same.
    pub(super) number: usize,
}

impl<'a> New<'a> {
    /// The unit to take the other fields from.
    pub(super) fn like(&self) -> &'a str {
        let own = self.units.last().copied();
        own.or(self.near).unwrap_or("{}")
    }

    /// True if it stood in the file before.
    pub(super) fn is_old(&self) -> bool {
        !self.units.is_empty()
    }
}

/// The names of the tools that were called, by the ids of the calls.
pub(super) type Names<'a> = HashMap<&'a str, &'a str>;

/// Spells units of one form.
pub(super) trait Pen {
    /// The unit with other contents of outputs; none if it must be written anew.
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String>;

    /// New units for some messages in a row.
    fn write(&mut self, run: &[New<'_>], names: &Names<'_>) -> Vec<String>;

    /// True if outputs stand where their calls do, so that they are written together.
    fn joins_outputs(&self) -> bool {
        false
    }

    /// The fields that link a unit to the one before it: its name, and its parent's.
    fn links(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// A name for something new, in the shape of a UUID. The same every time.
pub(super) fn name(like: &str, number: usize, message: &Message) -> String {
    // FNV-1a with 128 bits.
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
