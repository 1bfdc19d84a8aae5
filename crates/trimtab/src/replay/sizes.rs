//! Sizes of messages, each looked at once.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::Arc;

use trimtab_model::Message;
use trimtab_model::estimate::Measure;

/// The size of some messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Bytes of text, reasoning, names and arguments.
    pub(super) bytes: u64,
    /// Our estimate, in tokens.
    pub(super) tokens: u64,
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.tokens += other.tokens;
    }
}

impl Size {
    fn of(message: &Message) -> Self {
        let measure = Measure::of(message);
        let sizes = measure.sizes();
        let lengths = [sizes.text, sizes.reasoning, sizes.names, sizes.arguments];
        Self {
            bytes: lengths.iter().map(|length| u64::from(length.bytes)).sum(),
            tokens: measure.tokens(),
        }
    }

    /// Tokens as a quarter of the bytes.
    pub(super) fn quarter(&self) -> u64 {
        self.bytes.div_ceil(4)
    }
}

/// Remembers the size of every message that it was asked about.
#[derive(Default)]
pub(super) struct Sizer {
    // The message is kept, so that no other can come to stand where it stood.
    known: HashMap<*const Message, (Arc<Message>, Size)>,
}

impl Sizer {
    pub(super) fn size(&mut self, message: &Arc<Message>) -> Size {
        let known = self.known.entry(Arc::as_ptr(message));
        known
            .or_insert_with(|| (Arc::clone(message), Size::of(message)))
            .1
    }
}
