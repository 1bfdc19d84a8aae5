//! The reactions to an overflow, as data.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};
use trimtab_model::{Message, turns};

use crate::removal::safe_cut;

/// One way to make a window smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Shorten outputs that were not sent yet.
    ShortenNew,
    /// Reserve less for the answer.
    LowerAnswer,
    /// Trim old outputs.
    Trim,
    /// Compact.
    Compact,
    /// Drop the oldest half of the turns, with a note.
    DropHalfOfTurns,
    /// Drop the oldest message with its counterparts.
    DropOldest,
}

/// Which ways are tried, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryPolicy {
    /// The ways, in order. The last one is repeated.
    pub ladder: Vec<Rung>,
    /// The number of further calls.
    pub retries: u32,
}

impl Default for RecoveryPolicy {
    fn default() -> Self {
        Self {
            ladder: vec![Rung::LowerAnswer, Rung::Trim, Rung::Compact],
            retries: 2,
        }
    }
}

/// The cut that removes the oldest half of the turns. None if nothing can go: there are at most two
/// messages, or no safe boundary. If there are only rounds, whole rounds go.
pub fn half_of_turns<M: Borrow<Message>>(messages: &[M]) -> Option<usize> {
    if messages.len() <= 2 {
        return None;
    }
    let starts = turns::boundaries(messages);
    let middle = match starts.get(starts.len() / 2) {
        Some(start) if starts.len() >= 2 => *start,
        _ => turns::nearest_safe_boundary(messages, messages.len() / 2),
    };
    // A turn can begin between a call and a late output.
    let middle = safe_cut(messages, middle);
    (0 < middle && middle < messages.len()).then_some(middle)
}

/// A summary with the note that says how much was dropped.
pub fn with_note(summary: &str, dropped: usize) -> String {
    let note =
        format!("[Emergency compression dropped {dropped} oldest messages due to context limit]");
    if summary.is_empty() {
        note
    } else {
        format!("{summary}\n\n{note}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Call;

    #[test]
    fn a_round_is_not_split_where_there_is_no_user() {
        let call = |id: &str| Message::assistant("").with_call(Call::new(id, "read", "{}"));
        let log = [
            call("a"),
            Message::output("a", "1"),
            call("b"),
            Message::output("b", "2"),
        ];
        assert_eq!(half_of_turns(&log), Some(2));
        assert_eq!(half_of_turns(&log[..3]), Some(2));
        let one = [
            call("a").with_call(Call::new("b", "read", "{}")),
            Message::output("a", "1"),
            Message::output("b", "2"),
        ];
        assert_eq!(half_of_turns(&one), None);
    }

    #[test]
    fn the_oldest_half_of_the_turns_goes() {
        let talk = |turns: usize| -> Vec<Message> {
            (0..turns)
                .flat_map(|_| [Message::user("q"), Message::assistant("a")])
                .collect()
        };
        assert_eq!(half_of_turns(&talk(4)), Some(4));
        assert_eq!(half_of_turns(&talk(3)), Some(2));
        assert_eq!(half_of_turns(&talk(1)), None);
    }
}
