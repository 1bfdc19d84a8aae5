//! Observations: tool outputs that an agent sends as user messages.
//!
//! Some agents make no tool calls: the model writes down what to run, and the agent sends the
//! result as a user message. We treat such a message as an output. It is marked at admission
//! ([`ObservationDetector`]), by the messages before it only, and the mark is stored with it. So
//! the kind of a message never changes later.

use std::borrow::Cow;

use trimtab_model::{ExtraFields, Message, MessageKind, Output, Part, Role, Text};

use crate::log::Log;
use crate::pattern::LazyRegex;
use crate::plan::Edit;

/// The beginnings of such messages. Some name the tool in their first line: `[read_file for 'a.rs']
/// Result:`.
static BEGINNING: LazyRegex = LazyRegex::new(
    r"(?xi) ^(?: observation[:\n] | [<\[]observation | execution\ (?:logs|result)
    | \[?tool\ (?:result|output) | tool\ (?:response|call\ result) | <tool_(?:result|output|response)
    | <function_result | <returncode> | <command_output | \[[^\n]*\]\ result: )",
);
/// Marks of an action in a model's text: a block of code, a tag on a line of its own, a named
/// action, or JSON.
static ACTION: LazyRegex =
    LazyRegex::new(r"(?mi)```|^\s*(?:<[a-z_]+[\s>]|(?:action|command|tool)\s*:|\{\s*\x22)");
/// The part of a text that is compared with [`BEGINNING`].
const FIRST_BYTES: usize = 300;
/// A message of this many bytes is larger than what people type.
const LARGE: usize = 1_000;
/// After this many replies, most of them large and most of them to actions, the replies come from
/// an agent. A person who pastes long texts replies to answers, not to actions.
const REPLIES: usize = 5;

/// Decides whether the next message is an observation, by the shape of the conversation so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservationDetector {
    /// The number of messages read so far.
    messages: usize,
    /// True after the first call or output: such an agent sends real outputs.
    uses_tools: bool,
    /// True if the last message was the model's.
    answered: bool,
    /// The number of replies of the user to the model, of large ones, and of replies to actions.
    replies: usize,
    large: usize,
    to_actions: usize,
    /// True if the last answer contained an action.
    acted: bool,
}

impl ObservationDetector {
    /// True if `message`, which follows `log`, contains the result of a tool.
    ///
    /// ```
    /// # use trimtab_engine::{log::Log, observation::ObservationDetector};
    /// # use trimtab_model::Message;
    /// let log: Log = [Message::user("fix it"), Message::assistant("run: ls")].into_iter().collect();
    /// let mut watch = ObservationDetector::default();
    /// assert!(watch.is_observation(&log, &Message::user("Observation:\nmain.rs")));
    /// assert!(!watch.is_observation(&log, &Message::user("thank you")));
    /// ```
    pub fn is_observation(&mut self, log: &Log, message: &Message) -> bool {
        self.catch_up(log);
        // An observation answers the model. The first message of a conversation, and messages next
        // to real tool calls, are never taken for one.
        let replies = message.is_real_user() && self.answered && !self.uses_tools;
        let Some(text) = only_text(message).filter(|_| replies) else {
            return false;
        };
        // At least three quarters, in integers.
        let most = |part: usize| part * 4 >= self.replies * 3;
        let many = self.replies >= REPLIES && most(self.large) && most(self.to_actions);
        let start = text.trim_start();
        let start = start.get(..start.floor_char_boundary(FIRST_BYTES));
        // A typical beginning is proof enough. Size alone needs the evidence of earlier replies.
        start.is_some_and(|start| BEGINNING.is_match(start)) || (many && text.len() >= LARGE)
    }

    fn catch_up(&mut self, log: &Log) {
        for message in log.messages().iter().skip(self.messages) {
            self.uses_tools |= message.has_calls() || message.has_outputs();
            match message.role {
                Role::User if self.answered => {
                    self.replies += 1;
                    self.large += usize::from(message.text().len() >= LARGE);
                    self.to_actions += usize::from(self.acted);
                    self.answered = false;
                    self.acted = false;
                }
                Role::Assistant => {
                    self.answered = true;
                    // One answer can consist of several messages.
                    self.acted |= ACTION.is_match(&message.text());
                }
                _ => {}
            }
        }
        self.messages = log.len();
    }
}

/// The text of a message with exactly one text part.
pub fn only_text(message: &Message) -> Option<&str> {
    let mut texts = message.parts.iter().filter_map(Part::as_text);
    texts.next().filter(|_| texts.next().is_none())
}

/// An observation as an output, with the index of the part that contains its text.
pub fn observed(message: &Message) -> Option<(usize, Output)> {
    let stored = message.meta.stored.as_ref();
    let stored = stored.filter(|_| message.meta.kind == Some(MessageKind::Observation))?;
    let mut texts = message.parts.iter().enumerate();
    let (part, text) = texts.find_map(|(part, found)| Some((part, found.as_text()?)))?;
    let mut output = Output::new("", text);
    // A view of an observation names its ref in the text. There is no field for it in a user
    // message.
    output.trimmed = text.contains(stored.id());
    output.stored = Some(stored.clone());
    Some((part, output))
}

/// The outputs of a message, each with its part index. An observation is one output.
pub fn outputs_of(message: &Message) -> impl Iterator<Item = (usize, Cow<'_, Output>)> {
    let parts = message.parts.iter().enumerate();
    let outputs = parts.filter_map(|(part, found)| Some((part, Cow::Borrowed(found.as_output()?))));
    let observed = observed(message).map(|(part, output)| (part, Cow::Owned(output)));
    outputs.chain(observed)
}

/// The text of an output that consists of exactly one text part.
pub(crate) fn plain_text(output: &Output) -> Option<&str> {
    match output.content.as_slice() {
        [Part::Text(text)] => Some(&text.text),
        _ => None,
    }
}

/// The text of an output that consists of text alone, in one part or in several.
pub(crate) fn all_text(output: &Output) -> Option<Cow<'_, str>> {
    let mut parts = output.content.iter();
    let is_text = !output.content.is_empty() && parts.all(|part| part.as_text().is_some());
    is_text.then(|| output.text())
}

/// An output with a shorter text; none if the text is not shorter. Every view of an output is made
/// here, so no preset shows an output longer than it came. Unknown fields of a single text part
/// stay.
pub fn shown_as(output: &Output, text: impl Into<String>) -> Option<Output> {
    let text = text.into();
    // A medium takes more tokens than any text in its place.
    if all_text(output).is_some_and(|whole| !is_shorter(&text, &whole)) {
        return None;
    }
    let extra = match output.content.as_slice() {
        [Part::Text(original)] => original.extra.clone(),
        _ => ExtraFields::new(),
    };
    let mut shown = output.with_content(vec![Part::Text(Text { text, extra })]);
    shown.trimmed = true;
    Some(shown)
}

/// True if a text has fewer bytes than another one, and not more characters.
pub(crate) fn is_shorter(text: &str, whole: &str) -> bool {
    // A character has at most four bytes. Most outputs are so much longer that nothing is counted.
    let has_fewer_chars =
        || text.len() <= whole.len() / 4 || text.chars().count() <= whole.chars().count();
    text.len() < whole.len() && has_fewer_chars()
}

/// The same for an output in several parts: the new text replaces all its texts, and its media stay.
pub fn shown_beside_media(output: &Output, text: impl Into<String>) -> Option<Output> {
    let (texts, others): (Vec<Part>, Vec<Part>) =
        { output.content.iter().cloned() }.partition(|part| part.as_text().is_some());
    let mut shown = shown_as(&output.with_content(texts), text)?;
    shown.content.extend(others);
    Some(shown)
}

/// The edit that shows `output` in place of a part of `message`, which is at `position`.
pub fn show(message: &Message, position: usize, part: usize, output: Output) -> Edit {
    if message.meta.kind == Some(MessageKind::Observation) {
        return Edit::ShowAsText {
            message: position,
            part,
            text: output.text().into_owned(),
        };
    }
    Edit::Show {
        message: position,
        part,
        output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(rounds: usize, reply: &str) -> Log {
        talk_with("next\n```\nls\n```", rounds, reply)
    }

    /// The same with a model that says `said` each time.
    fn talk_with(said: &str, rounds: usize, reply: &str) -> Log {
        let round = |_| [Message::assistant(said), Message::user(reply)];
        let rounds = (0..rounds).flat_map(round);
        let last = Message::assistant("and now");
        std::iter::once(Message::user("the task"))
            .chain(rounds)
            .chain([last])
            .collect()
    }

    fn is_one(log: &Log, text: &str) -> bool {
        ObservationDetector::default().is_observation(log, &Message::user(text))
    }

    #[test]
    fn beginnings_of_outputs_are_known() {
        let log = talk(0, "");
        for text in [
            "Observation:\nfive",
            "OBSERVATION: five",
            "<returncode>0</returncode>\n<output>five</output>",
            "[execute_command for 'ls'] Result:\nfive",
        ] {
            assert!(is_one(&log, text), "{text}");
        }
        for text in [
            "go on",
            "[1] is a result: see there",
            "I made an observation: it is red",
        ] {
            assert!(!is_one(&log, text), "{text}");
        }
    }

    #[test]
    fn many_large_replies_are_those_of_an_agent() {
        let large = "x".repeat(LARGE);
        assert!(is_one(&talk(REPLIES, &large), &large));
        assert!(!is_one(&talk(REPLIES, &large), "short"));
        assert!(!is_one(&talk(REPLIES - 1, &large), &large));
        assert!(!is_one(&talk(REPLIES, "short"), &large));
    }

    #[test]
    fn long_replies_to_answers_are_those_of_a_person() {
        let large = "x".repeat(LARGE);
        assert!(!is_one(&talk_with("I see.", REPLIES, &large), &large));
        for action in ["Action: ls", "ok\n<execute>\nls", "{\"command\": \"ls\"}"] {
            assert!(
                is_one(&talk_with(action, REPLIES, &large), &large),
                "{action}"
            );
        }
    }

    #[test]
    fn the_task_and_agents_with_calls_have_none() {
        assert!(!is_one(&Log::new(), "Observation: the build is red"));
        let call = trimtab_model::Call::new("c", "read", "{}");
        let with_tools: Log = [
            Message::user("q"),
            Message::assistant("").with_call(call),
            Message::output("c", "text"),
            Message::assistant("done"),
        ]
        .into_iter()
        .collect();
        assert!(!is_one(&with_tools, "Observation: no"));
    }
}
