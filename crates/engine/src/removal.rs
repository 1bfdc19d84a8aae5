//! Removing messages without splitting a round.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};

use trimtab_model::rounds::{self, Answer, Pairing};
use trimtab_model::{Message, Role};

/// The messages that must go, or stay, together with `chosen`: calls take their outputs
/// along, outputs their call, until nothing more is touched.
///
/// ```
/// # use trimtab_engine::removal::with_counterparts;
/// # use trimtab_model::{Call, Message};
/// let log = [
///     Message::user("q"),
///     Message::assistant("")
///         .with_call(Call::new("a", "read", "{}"))
///         .with_call(Call::new("b", "read", "{}")),
///     Message::output("a", "1"),
///     Message::output("b", "2"),
/// ];
/// assert!(with_counterparts(&log, [3]).into_iter().eq([1, 2, 3]));
/// ```
pub fn with_counterparts<M: Borrow<Message>>(
    messages: &[M],
    chosen: impl IntoIterator<Item = usize>,
) -> BTreeSet<usize> {
    let chosen = chosen.into_iter().filter(|at| *at < messages.len());
    Groups::of(messages).together(chosen)
}

/// The oldest message that may go, with its counterparts. System messages never go.
pub fn oldest<M: Borrow<Message>>(messages: &[M]) -> Option<BTreeSet<usize>> {
    let oldest = messages
        .iter()
        .position(|message| message.borrow().role != Role::System)?;
    Some(with_counterparts(messages, [oldest]))
}

/// How many messages to drop from the front so that at most `keep` remain and no round is
/// split; the cut falls on the next real user message. None if there is no such place.
pub fn safe_trim<M: Borrow<Message>>(messages: &[M], keep: usize) -> Option<usize> {
    let excess = messages
        .len()
        .checked_sub(keep)
        .filter(|excess| *excess > 0)?;
    let starts_turn = |at: &usize| {
        messages
            .get(*at)
            .is_some_and(|message| message.borrow().is_real_user())
    };
    (excess..messages.len()).find(starts_turn)
}

/// The nearest place at or before `cut` where dropping everything in front splits no round;
/// the next one behind it if there is none but the front.
///
/// ```
/// # use trimtab_engine::removal::unsplit;
/// # use trimtab_model::{Call, Message};
/// let log = [
///     Message::assistant("a"),
///     Message::assistant("").with_call(Call::new("c", "read", "{}")),
///     Message::output("c", "text"),
///     Message::assistant("b"),
/// ];
/// assert_eq!([1, 2, 3].map(|cut| unsplit(&log, cut)), [1, 1, 3]);
/// assert_eq!(unsplit(&log[1..], 1), 2);
/// ```
pub fn unsplit<M: Borrow<Message>>(messages: &[M], cut: usize) -> usize {
    let mut back = cut;
    loop {
        let behind = with_counterparts(messages, back..messages.len());
        match behind.first() {
            Some(first) if *first < back => back = *first,
            _ => break,
        }
    }
    if back > 0 {
        return back;
    }
    let mut forth = cut;
    loop {
        let before = with_counterparts(messages, 0..forth);
        match before.last() {
            Some(last) if *last >= forth => forth = last + 1,
            _ => return forth,
        }
    }
}

/// Which rounds a message belongs to, and which messages a round has.
pub(crate) struct Groups {
    rounds_of: HashMap<usize, Vec<usize>>,
    messages_of: Vec<Vec<usize>>,
}

impl Groups {
    /// The rounds of `messages`, for more than one question about them.
    pub(crate) fn of<M: Borrow<Message>>(messages: &[M]) -> Self {
        Self::new(&rounds::pair(messages))
    }

    /// The messages that must go, or stay, together with `chosen`.
    pub(crate) fn together(&self, chosen: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut together = BTreeSet::new();
        let mut waiting: Vec<usize> = chosen.into_iter().collect();
        while let Some(at) = waiting.pop() {
            if together.insert(at) {
                waiting.extend(self.neighbours(at));
            }
        }
        together
    }

    fn new(pairing: &Pairing) -> Self {
        let mut groups = Self {
            rounds_of: HashMap::new(),
            messages_of: vec![Vec::new(); pairing.rounds.len()],
        };
        for (round, found) in pairing.rounds.iter().enumerate() {
            groups.join(found.start, round);
        }
        for (place, answer) in &pairing.outputs {
            if let Answer::Answers { round, .. } = answer {
                groups.join(place.message, *round);
            }
        }
        groups
    }

    fn join(&mut self, message: usize, round: usize) {
        self.rounds_of.entry(message).or_default().push(round);
        if let Some(messages) = self.messages_of.get_mut(round) {
            messages.push(message);
        }
    }

    fn neighbours(&self, message: usize) -> impl Iterator<Item = usize> {
        let rounds = self.rounds_of.get(&message).into_iter().flatten();
        rounds
            .filter_map(|round| self.messages_of.get(*round))
            .flatten()
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::{Call, Output, Part};

    fn calls(ids: &[&str]) -> Message {
        ids.iter().fold(Message::assistant(""), |message, id| {
            message.with_call(Call::new(*id, "tool", "{}"))
        })
    }

    #[test]
    fn a_call_takes_all_its_outputs_along() {
        let log = [
            calls(&["a", "b"]),
            Message::output("a", ""),
            Message::output("b", ""),
            Message::user("x"),
        ];
        assert!(oldest(&log).unwrap().into_iter().eq([0, 1, 2]));
    }

    #[test]
    fn an_output_before_its_call_takes_it_along() {
        let log = [Message::output("a", ""), calls(&["a"])];
        assert!(oldest(&log).unwrap().into_iter().eq([0, 1]));
    }

    #[test]
    fn a_message_that_answers_two_rounds_joins_them() {
        let both = Message::new(
            Role::Tool,
            vec![
                Part::Output(Output::new("a", "")),
                Part::Output(Output::new("b", "")),
            ],
        );
        let log = [calls(&["a"]), calls(&["b"]), both];
        assert!(with_counterparts(&log, [0]).into_iter().eq([0, 1, 2]));
    }

    #[test]
    fn system_messages_never_go() {
        assert_eq!(oldest(&[Message::system("s")]), None);
        let log = [Message::system("s"), Message::user("q")];
        assert!(oldest(&log).unwrap().into_iter().eq([1]));
    }

    #[test]
    fn a_trim_falls_on_a_real_user_message_or_does_not_happen() {
        let log = [
            Message::user("1"),
            calls(&["a"]),
            Message::output("a", "r"),
            Message::assistant("x"),
            Message::user("2"),
        ];
        assert_eq!(safe_trim(&log, 3), Some(4));
        assert_eq!(safe_trim(&log[..4], 2), None);
        assert_eq!(safe_trim(&log, 9), None);
    }
}
