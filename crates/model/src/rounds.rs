//! Rounds: an assistant message with its calls, its reasoning and all their outputs.
//!
//! Normalisation, the decisions and compaction pair messages to keep rounds together. In real logs,
//! call ids repeat across rounds, and outputs arrive late, twice or not at all. An output answers
//! the most recent call with its id; if that call is already answered, the output is a duplicate.

use std::borrow::Borrow;
use std::collections::HashMap;

use crate::program::PartLinks;
use crate::{Call, Message, work};

/// The position of a part: message index, then part index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartPosition {
    /// Index of the message.
    pub message: usize,
    /// Index of the part in it.
    pub part: usize,
}

/// One call of a round, with its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundCall {
    /// The position of the call.
    pub call: PartPosition,
    /// The position of its output, if it has one.
    pub output: Option<PartPosition>,
}

/// An assistant message with calls, and the positions of their outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Index of the assistant message.
    pub start: usize,
    /// Its calls in order.
    pub calls: Vec<RoundCall>,
}

/// The classification of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStatus {
    /// It answers call `call` of round `round`.
    Answers {
        /// Index into [`Pairing::rounds`].
        round: usize,
        /// Index into the calls of that round.
        call: usize,
    },
    /// Its call already has an output.
    Duplicate,
    /// It answers a call before the paired messages.
    ReachesBack,
    /// No earlier call has its id.
    Orphan,
}

/// The pairing of outputs and calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairing {
    /// The rounds, in order.
    pub rounds: Vec<Round>,
    /// Every output with its classification, in order.
    pub outputs: Vec<(PartPosition, OutputStatus)>,
    /// The first and the last message of each program of the provider, and of other parts that name
    /// each other.
    pub(crate) linked: Vec<(usize, usize)>,
}

impl Pairing {
    /// The call that an output of `messages` turned out to answer.
    pub fn call_of<'m, M: Borrow<Message>>(
        &self,
        messages: &'m [M],
        answer: OutputStatus,
    ) -> Option<&'m Call> {
        let OutputStatus::Answers { round, call } = answer else {
            return None;
        };
        let place = self.rounds.get(round)?.calls.get(call)?.call;
        let message: &Message = messages.get(place.message)?.borrow();
        message.parts.get(place.part)?.as_call()
    }

    /// The first and the last message of each answered call, and of each program. A cut between the
    /// two would split their round.
    pub fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        let answered = self.outputs.iter().filter_map(|(place, answer)| {
            let OutputStatus::Answers { round, .. } = answer else {
                return None;
            };
            let start = self.rounds.get(*round)?.start;
            // An early output comes before its call, so order both ends.
            Some((start.min(place.message), start.max(place.message)))
        });
        answered.chain(self.linked.iter().copied())
    }
}

/// Pairs the outputs of a log with its calls, by position and id.
///
/// An output that was recorded just before its call, with only other outputs in between, answers it
/// too.
///
/// ```
/// # use trimtab_model::{Call, Message, rounds};
/// let log = [
///     Message::assistant("").with_call(Call::new("call_0", "read", "{}")),
///     Message::output("call_0", "first"),
///     Message::assistant("").with_call(Call::new("call_0", "read", "{}")),
///     Message::output("call_0", "second"),
/// ];
/// let pairing = rounds::pair(&log);
/// let answered: Vec<_> = pairing.rounds.iter().map(|r| r.calls[0].output.unwrap().message).collect();
/// assert_eq!(answered, [1, 3]);
/// ```
pub fn pair<M: Borrow<Message>>(messages: &[M]) -> Pairing {
    pair_after(messages, |_| None)
}

/// Pairs the newest messages of a log whose earlier messages are already paired.
///
/// `before` tells whether the newest earlier call with an id is answered; none if there is no such
/// call.
pub fn pair_after<M: Borrow<Message>>(
    messages: &[M],
    before: impl Fn(&str) -> Option<bool>,
) -> Pairing {
    let mut pairer = PairingBuilder {
        before,
        pairing: Pairing::default(),
        newest: HashMap::new(),
        early: Vec::new(),
        early_ids: Vec::new(),
        links: PartLinks::default(),
    };
    for (index, message) in messages.iter().enumerate() {
        pairer.message(index, message.borrow());
    }
    pairer.pairing.linked = pairer.links.spans;
    pairer.pairing
}

/// The calls with one id in the newest round that has them, and how many are answered.
struct CallsOfId {
    round: usize,
    calls: Vec<usize>,
    answered: usize,
}

struct PairingBuilder<'a, F> {
    before: F,
    pairing: Pairing,
    newest: HashMap<&'a str, CallsOfId>,
    /// Orphans directly before the current message, whose call may be next.
    early: Vec<usize>,
    /// The ids of those orphans.
    early_ids: Vec<&'a str>,
    links: PartLinks,
}

impl<'a, F: Fn(&str) -> Option<bool>> PairingBuilder<'a, F> {
    fn message(&mut self, index: usize, message: &'a Message) {
        work::step(1 + message.parts.len());
        // Early outputs survive only across messages that contain nothing but outputs.
        let early = std::mem::take(&mut self.early);
        let early_ids = std::mem::take(&mut self.early_ids);
        message
            .parts
            .iter()
            .for_each(|part| self.links.add(index, part));
        // The round must be open before early outputs claim its calls.
        if message.has_calls() {
            self.open_round(index, message);
            work::step(early.len());
            for (&at, &id) in early.iter().zip(&early_ids) {
                self.answer_early(at, id);
            }
        }
        let only_outputs = message.outputs().count() == message.parts.len();
        if only_outputs && !message.has_calls() {
            self.early = early;
            self.early_ids = early_ids;
        }
        for (part, output) in message.parts.iter().enumerate() {
            if let Some(output) = output.as_output() {
                self.output(
                    PartPosition {
                        message: index,
                        part,
                    },
                    &output.call_id,
                    only_outputs,
                );
            }
        }
    }

    fn open_round(&mut self, index: usize, message: &'a Message) {
        let round = self.pairing.rounds.len();
        let mut calls = Vec::new();
        for (part, call) in message.parts.iter().enumerate() {
            let Some(call) = call.as_call() else { continue };
            let number = calls.len();
            calls.push(RoundCall {
                call: PartPosition {
                    message: index,
                    part,
                },
                output: None,
            });
            // Ids repeat across rounds: only the newest round with this id can be answered.
            match self.newest.get_mut(call.id.as_str()) {
                Some(newest) if newest.round == round => newest.calls.push(number),
                _ => {
                    let newest = CallsOfId {
                        round,
                        calls: vec![number],
                        answered: 0,
                    };
                    self.newest.insert(&call.id, newest);
                }
            }
        }
        self.pairing.rounds.push(Round {
            start: index,
            calls,
        });
    }

    fn output(&mut self, position: PartPosition, id: &'a str, may_be_early: bool) {
        let answer = self.claim(id, position);
        // Some clients record an output just before its call.
        if answer == OutputStatus::Orphan && may_be_early {
            self.early.push(self.pairing.outputs.len());
            self.early_ids.push(id);
        }
        self.pairing.outputs.push((position, answer));
    }

    fn answer_early(&mut self, at: usize, id: &str) {
        let Some(&(place, _)) = self.pairing.outputs.get(at) else {
            return;
        };
        let answer = self.claim(id, place);
        if let Some(entry) = self.pairing.outputs.get_mut(at) {
            entry.1 = answer;
        }
    }

    /// Assigns the output at `position` to the next unanswered call of the newest round with `id`.
    fn claim(&mut self, id: &str, position: PartPosition) -> OutputStatus {
        // No call with this id among these messages. The caller knows the earlier ones.
        let Some(newest) = self.newest.get_mut(id) else {
            return match (self.before)(id) {
                None => OutputStatus::Orphan,
                Some(true) => OutputStatus::Duplicate,
                Some(false) => OutputStatus::ReachesBack,
            };
        };
        // Calls with equal ids in one message are answered in order. Further outputs are
        // duplicates.
        let Some(&call) = newest.calls.get(newest.answered) else {
            return OutputStatus::Duplicate;
        };
        newest.answered += 1;
        let round = newest.round;
        let found = self
            .pairing
            .rounds
            .get_mut(round)
            .and_then(|r| r.calls.get_mut(call));
        if let Some(found) = found {
            found.output = Some(position);
        }
        OutputStatus::Answers { round, call }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Opaque, Part, RawJson, Role};

    fn calls(ids: &[&str]) -> Message {
        ids.iter().fold(Message::assistant(""), |message, id| {
            message.with_call(Call::new(*id, "tool", "{}"))
        })
    }

    fn answers(log: &[Message]) -> Vec<OutputStatus> {
        pair(log)
            .outputs
            .into_iter()
            .map(|(_, answer)| answer)
            .collect()
    }

    #[test]
    fn parallel_calls_are_answered_in_any_order() {
        let log = [
            calls(&["a", "b"]),
            Message::output("b", ""),
            Message::output("a", ""),
        ];
        let expected = [
            OutputStatus::Answers { round: 0, call: 1 },
            OutputStatus::Answers { round: 0, call: 0 },
        ];
        assert_eq!(answers(&log), expected);
    }

    #[test]
    fn the_second_output_for_one_call_is_a_duplicate() {
        let log = [
            calls(&["a"]),
            Message::output("a", "1"),
            Message::output("a", "2"),
        ];
        assert_eq!(answers(&log)[1], OutputStatus::Duplicate);
    }

    #[test]
    fn a_late_output_finds_its_round() {
        let log = [
            calls(&["a"]),
            Message::user("hurry"),
            calls(&["b"]),
            Message::output("a", ""),
            Message::output("b", ""),
        ];
        let expected = [
            OutputStatus::Answers { round: 0, call: 0 },
            OutputStatus::Answers { round: 1, call: 0 },
        ];
        assert_eq!(answers(&log), expected);
    }

    #[test]
    fn parts_of_a_program_are_linked() {
        let opaque = |json: &str| {
            let (raw, type_name) = (RawJson::parse(json).unwrap(), String::new());
            Part::Opaque(Opaque { type_name, raw })
        };
        let mut call = Call::new("c", "read", "{}");
        let caller = RawJson::parse(r#"{"type":"code","tool_id":"p"}"#).unwrap();
        call.extra.push(("caller".to_owned(), caller));
        let log = [
            Message::new(Role::Assistant, vec![opaque(r#"{"id":"p"}"#)]),
            Message::assistant("").with_call(call),
            Message::output("c", ""),
            Message::new(
                Role::Assistant,
                vec![opaque(r#"{"id":"x","tool_use_id":"p"}"#)],
            ),
        ];
        let spans: Vec<_> = pair(&log).spans().collect();
        assert_eq!(spans, [(1, 2), (0, 3)]);
    }

    #[test]
    fn an_output_written_just_before_its_call_answers_it() {
        let log = [Message::output("a", ""), calls(&["a"])];
        assert_eq!(answers(&log), [OutputStatus::Answers { round: 0, call: 0 }]);
        let log = [Message::output("a", ""), Message::user("x"), calls(&["a"])];
        assert_eq!(answers(&log), [OutputStatus::Orphan]);
    }

    #[test]
    fn equal_ids_in_one_message_are_answered_in_order() {
        let log = [
            calls(&["", ""]),
            Message::output("", "1"),
            Message::output("", "2"),
        ];
        let expected = [
            OutputStatus::Answers { round: 0, call: 0 },
            OutputStatus::Answers { round: 0, call: 1 },
        ];
        assert_eq!(answers(&log), expected);
    }
}
