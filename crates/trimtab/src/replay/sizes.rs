//! Measures and compares windows.

use std::sync::Arc;

use trimtab_model::Message;
use trimtab_model::estimate::Measure;

/// The tokens of messages if each has four bytes of text, reasoning, names or arguments.
pub fn quarter_of_bytes(messages: &[Arc<Message>]) -> u64 {
    byte_quarter(&messages.iter().map(|message| Measure::of(message)).sum())
}

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

/// The number of messages with which both windows begin.
pub(super) fn common_front(one: &[Arc<Message>], other: &[Arc<Message>]) -> usize {
    let pairs = one.iter().zip(other);
    pairs
        .take_while(|(one, other)| Arc::ptr_eq(one, other) || one == other)
        .count()
}
