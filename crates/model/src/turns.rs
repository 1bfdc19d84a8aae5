//! Turns: a real user message and everything up to the next one.
//!
//! These functions assume neither a system message nor a leading user message.

use std::borrow::Borrow;

use crate::Message;

/// The index of each message that starts a turn.
///
/// ```
/// # use trimtab_model::{MessageKind, Message, turns};
/// let log = [
///     Message::user("[summary of earlier work]").with_kind(MessageKind::Summary),
///     Message::user("go on"),
///     Message::assistant("done"),
/// ];
/// assert_eq!(turns::boundaries(&log), [1]);
/// ```
pub fn boundaries<M: Borrow<Message>>(messages: &[M]) -> Vec<usize> {
    messages
        .iter()
        .enumerate()
        .filter(|(_, message)| (*message).borrow().is_real_user())
        .map(|(index, _)| index)
        .collect()
}

/// The safe boundary nearest to `target`: the last turn start at or before it, else the next one
/// after it, else 0.
///
/// Index 0 is never chosen backwards, because a cut there removes nothing. A history without real
/// user messages has no turns, and the result is `target` itself.
pub fn nearest_safe_boundary<M: Borrow<Message>>(messages: &[M], target: usize) -> usize {
    if target >= messages.len() {
        return messages.len();
    }
    if target == 0 {
        return 0;
    }
    // Without user messages, any position is as good as another.
    let starts = boundaries(messages);
    if starts.is_empty() {
        return target;
    }
    let before = starts
        .iter()
        .rev()
        .find(|&&start| start <= target && start > 0);
    let after = starts.iter().find(|&&start| start > target);
    before.or(after).copied().unwrap_or(0)
}
