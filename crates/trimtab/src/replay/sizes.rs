//! Measures messages, each only once.

use std::collections::HashMap;
use std::sync::Arc;

use trimtab_model::Message;
use trimtab_model::estimate::Measure;

/// How the tokens of a bill are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenCount {
    /// A quarter of the bytes, as other tools count that compare policies.
    #[default]
    ByteQuarter,
    /// Our estimate, by which windows are drawn and the demo's provider counts.
    Estimate,
}

impl TokenCount {
    /// The tokens of something of this size.
    pub(super) fn tokens(self, size: &Measure) -> u64 {
        match self {
            Self::ByteQuarter => byte_quarter(size),
            Self::Estimate => size.tokens(),
        }
    }
}

/// Tokens as a quarter of the bytes of text, reasoning, names and arguments.
fn byte_quarter(size: &Measure) -> u64 {
    let sizes = size.sizes();
    let lengths = [sizes.text, sizes.reasoning, sizes.names, sizes.arguments];
    let bytes: u64 = lengths.iter().map(|length| u64::from(length.bytes)).sum();
    bytes.div_ceil(4)
}

/// Our estimate in tokens, or a quarter of the bytes if that is more, so that a window fits by both
/// counts.
pub(super) fn larger_count(size: &Measure) -> u64 {
    size.tokens().max(byte_quarter(size))
}

/// Remembers the size of every message.
#[derive(Default)]
pub(super) struct MessageSizer {
    // The message is kept, so that no other can get the same address.
    known: HashMap<*const Message, (Arc<Message>, Measure)>,
    /// The last window and its size. Most windows begin like the one before.
    last: (Vec<Arc<Message>>, Measure),
}

impl MessageSizer {
    pub(super) fn size(&mut self, message: &Arc<Message>) -> Measure {
        let known = self.known.entry(Arc::as_ptr(message));
        known
            .or_insert_with(|| (Arc::clone(message), Measure::of(message)))
            .1
    }

    /// The size of a window, whose messages are measured only from its first difference to the last
    /// one on.
    pub(super) fn window(&mut self, window: &[Arc<Message>]) -> Measure {
        let (mut before, size) = std::mem::take(&mut self.last);
        let front = common_front(&before, window);
        let mut size = if front == before.len() {
            size
        } else {
            self.total(window.iter().take(front))
        };
        size += self.total(window.iter().skip(front));
        before.truncate(front);
        before.extend(window.iter().skip(front).cloned());
        self.last = (before, size);
        size
    }

    /// The size of all messages together. Measures add up exactly; rounded tokens would not.
    pub(super) fn total<'m>(
        &mut self,
        messages: impl IntoIterator<Item = &'m Arc<Message>>,
    ) -> Measure {
        messages.into_iter().map(|message| self.size(message)).sum()
    }
}

/// The number of messages with which both windows begin.
pub(super) fn common_front(one: &[Arc<Message>], other: &[Arc<Message>]) -> usize {
    let pairs = one.iter().zip(other);
    pairs
        .take_while(|(one, other)| Arc::ptr_eq(one, other) || one == other)
        .count()
}
