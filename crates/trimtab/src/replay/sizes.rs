//! Measures messages, each only once.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::Arc;

use trimtab_model::Message;
use trimtab_model::estimate::Measure;

/// The size of some messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MeasuredSize(Measure);

impl AddAssign for MeasuredSize {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0 + other.0;
    }
}

impl MeasuredSize {
    /// Our estimate in tokens. Measures add up exactly; rounded tokens would not.
    pub(super) fn tokens(&self) -> u64 {
        self.0.tokens()
    }

    /// Tokens as a quarter of the bytes of text, reasoning, names and arguments.
    pub(super) fn byte_quarter(&self) -> u64 {
        let sizes = self.0.sizes();
        let lengths = [sizes.text, sizes.reasoning, sizes.names, sizes.arguments];
        let bytes: u64 = lengths.iter().map(|length| u64::from(length.bytes)).sum();
        bytes.div_ceil(4)
    }
}

/// Remembers the size of every message.
#[derive(Default)]
pub(super) struct MessageSizer {
    // The message is kept, so that no other can get the same address.
    known: HashMap<*const Message, (Arc<Message>, MeasuredSize)>,
}

impl MessageSizer {
    pub(super) fn size(&mut self, message: &Arc<Message>) -> MeasuredSize {
        let known = self.known.entry(Arc::as_ptr(message));
        known
            .or_insert_with(|| (Arc::clone(message), MeasuredSize(Measure::of(message))))
            .1
    }
}
