//! The strict validator of a window: the rules by which providers of a dialect reject one.
//!
//! It shares no code with normalisation, so that one fault cannot hide in both. It reads a window
//! once, from the front, and keeps only what the rules need. So a window that grows at its end is
//! verified by reading what is new.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};

use serde::Serialize;
use thiserror::Error;
use trimtab_model::{Dialect, Message, Part, Role, Treatment, work};

/// One reason for which a provider would reject the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Error)]
#[error("message {message}: {kind}")]
pub struct WindowFault {
    /// Index of the message in the window; the length of the window for a fault at its end.
    pub message: usize,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// Kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum FaultKind {
    /// A call is not answered directly behind it.
    #[error("call {id:?} has no output directly behind it")]
    OpenCall {
        /// The call's id.
        id: String,
    },
    /// An output answers no call of the round directly before it.
    #[error("output {id:?} answers no call before it")]
    OrphanOutput {
        /// The id it carries.
        id: String,
    },
    /// A call is answered twice.
    #[error("call {id:?} is answered twice")]
    DuplicateOutput {
        /// The call's id.
        id: String,
    },
    /// A call stands in a message that is not the assistant's.
    #[error("call {id:?} is not in an assistant message")]
    MisplacedCall {
        /// The call's id.
        id: String,
    },
    /// An output stands in a message that is not a tool's.
    #[error("output {id:?} is not in a tool message")]
    MisplacedOutput {
        /// The id it carries.
        id: String,
    },
    /// Reasoning stands in a message that is not the assistant's.
    #[error("reasoning outside an assistant message")]
    MisplacedReasoning,
    /// Reasoning at the end of a message, with nothing after it.
    #[error("reasoning is followed by nothing")]
    DanglingReasoning,
    /// A tool message contains something other than outputs.
    #[error("a tool message with something besides outputs")]
    ForeignPart,
    /// A message is empty.
    #[error("the message is empty")]
    EmptyMessage,
    /// A text part is blank, next to others that are not.
    #[error("a text part is blank")]
    BlankPart,
    /// A call has no id.
    #[error("a call has no id")]
    MissingCallId,
    /// Two calls that must be distinguished have the same id.
    #[error("call id {id:?} is used twice")]
    RepeatedCallId {
        /// The id.
        id: String,
    },
    /// An id contains characters that the dialect rejects.
    #[error("call id {id:?} has forbidden characters")]
    MalformedCallId {
        /// The id.
        id: String,
    },
    /// The first message that is not a system message is not the user's.
    #[error("the conversation does not begin with the user")]
    UserNotFirst,
    /// There is nothing that the dialect counts as a message.
    #[error("there is no message")]
    NoMessage,
    /// A message that is hidden from the model is in the window.
    #[error("a hidden message is in the window")]
    HiddenMessage,
}

/// All faults of a window, in order. If there are none, providers of `dialect` accept it.
///
/// ```
/// # use trimtab_engine::verify;
/// # use trimtab_model::{Dialect, Message};
/// let window = [Message::user("hello"), Message::output("c1", "result of nothing")];
/// let faults = verify::verify(&window, Dialect::Chat);
/// assert_eq!(faults[0].to_string(), "message 1: output \"c1\" answers no call before it");
/// ```
pub fn verify<M: Borrow<Message>>(window: &[M], dialect: Dialect) -> Vec<WindowFault> {
    let mut verifier = Verifier::new(dialect);
    for message in window {
        verifier.push(message.borrow());
    }
    verifier.finish()
}

/// What the rules must know of the part of a window that was verified before.
#[derive(Clone, Debug, Default)]
pub struct VerifiedPart {
    length: usize,
    has_beginning: bool,
    ids: HashSet<String>,
}

/// Reads a window message by message.
#[derive(Debug, Default)]
pub struct Verifier<'a> {
    dialect: Dialect,
    /// The state of an earlier run, if any.
    before: Option<&'a VerifiedPart>,
    read: VerifiedPart,
    /// The calls of the round being read, in order.
    calls: Vec<String>,
    /// For each of their ids, whether it is answered.
    answered: HashMap<String, bool>,
    /// True once the round has an output.
    answering: bool,
    /// An empty answer, which is accepted only at the end of the window.
    bare_answer: Option<usize>,
    faults: Vec<WindowFault>,
}

impl<'a> Verifier<'a> {
    /// A verifier at the front of a window.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            ..Self::default()
        }
    }

    /// A verifier that continues after an earlier run, at the end of a round.
    pub fn resume(dialect: Dialect, before: &'a VerifiedPart) -> Self {
        let read = VerifiedPart {
            length: before.length,
            has_beginning: before.has_beginning,
            // Copying the ids of the earlier run would cost the whole window on each call.
            ids: HashSet::new(),
        };
        Self {
            before: Some(before),
            read,
            ..Self::new(dialect)
        }
    }

    /// Reads the next message.
    pub fn push(&mut self, message: &Message) {
        let index = self.read.length;
        self.read.length += 1;
        self.refuse_bare_answer();
        if !message.agent_visible() {
            self.fault(index, FaultKind::HiddenMessage);
        }
        // The round is closed before the parts are read: they may open the next one.
        if self.ends_round(message.role) {
            self.close_round(index);
        }
        self.check_head(index, message);
        self.check_parts(index, message);
    }

    /// Ends the window and returns its faults.
    pub fn finish(mut self) -> Vec<WindowFault> {
        let end = self.read.length;
        self.close_round(end);
        if !self.read.has_beginning {
            self.fault(end, FaultKind::NoMessage);
        }
        self.faults
    }

    /// Ends a run at the end of a round. Returns the state to resume from, and the faults so far.
    pub fn pause(mut self) -> (VerifiedPart, Vec<WindowFault>) {
        let end = self.read.length;
        self.close_round(end);
        // More messages follow a paused part, so an empty answer here is not at the end.
        self.refuse_bare_answer();
        (self.read, self.faults)
    }

    /// True if no output of the round can follow a message of this role.
    fn ends_round(&self, role: Role) -> bool {
        match (self.dialect, role) {
            (Dialect::Chat, role) => role != Role::Tool,
            // Responses finds an output by its id, anywhere behind the call. In Messages,
            // consecutive answers are one message, and system messages do not count.
            (Dialect::Responses, _) | (Dialect::Messages, Role::Tool | Role::System) => false,
            (Dialect::Messages, Role::Assistant) => self.answering,
            (Dialect::Messages, Role::User) => true,
        }
    }

    fn check_head(&mut self, index: usize, message: &Message) {
        // In the other dialects, any message is a valid beginning.
        let insists = self.dialect == Dialect::Messages;
        if self.read.has_beginning || (insists && message.role == Role::System) {
            return;
        }
        self.read.has_beginning = true;
        let is_summary = message.has_part_with(Treatment::Boundary);
        if insists && message.role != Role::User && !is_summary {
            self.fault(index, FaultKind::UserNotFirst);
        }
    }

    fn check_parts(&mut self, index: usize, message: &Message) {
        match self.dialect {
            Dialect::Messages => self.check_blanks(index, message),
            Dialect::Chat => self.check_answer(index, message),
            Dialect::Responses => {}
        }
        if self.ends_in_refused_reasoning(message) {
            self.fault(index, FaultKind::DanglingReasoning);
        }
        work::step(1 + message.parts.len());
        for part in &message.parts {
            match part {
                Part::Call(call) => self.check_call(index, message.role, &call.id),
                Part::Output(output) => self.check_output(index, message.role, &output.call_id),
                Part::Reasoning(_) if message.role == Role::Assistant => {}
                Part::Reasoning(_) if self.dialect != Dialect::Chat => {
                    self.fault(index, FaultKind::MisplacedReasoning);
                }
                _ if message.role == Role::Tool => self.fault(index, FaultKind::ForeignPart),
                _ => {}
            }
        }
    }

    /// Providers of Chat Completions reject an answer with neither text nor calls, unless it has
    /// unknown fields.
    fn check_answer(&mut self, index: usize, message: &Message) {
        let is_answer = message.role == Role::Assistant;
        if is_answer && message.is_empty() && !message.has_unknown_fields() {
            self.fault(index, FaultKind::EmptyMessage);
        }
    }

    /// Messages rejects empty messages and texts, except for an answer at the end that is still to
    /// be written, and instructions that are an empty string.
    fn check_blanks(&mut self, index: usize, message: &Message) {
        let has_blank = message.parts.iter().any(Part::is_blank);
        if message.role == Role::System {
            if has_blank && message.meta.content_list {
                self.fault(index, FaultKind::BlankPart);
            }
            return;
        }
        let is_nothing = |part: &Part| matches!(part, Part::Text(text) if text.text.is_empty());
        let as_string = !message.meta.content_list || message.parts.is_empty();
        if message.role == Role::Assistant && as_string && message.parts.iter().all(is_nothing) {
            self.bare_answer = Some(index);
        } else if message.is_empty() {
            self.fault(index, FaultKind::EmptyMessage);
        } else if has_blank {
            self.fault(index, FaultKind::BlankPart);
        }
    }

    /// Records a fault if a message follows an empty answer.
    fn refuse_bare_answer(&mut self) {
        if let Some(index) = self.bare_answer.take() {
            self.fault(index, FaultKind::EmptyMessage);
        }
    }

    fn ends_in_refused_reasoning(&self, message: &Message) -> bool {
        let mut end = message.parts.iter().rev();
        match self.dialect {
            Dialect::Chat => false,
            Dialect::Messages => {
                // Blank texts are removed or reported on their own, so they do not follow anything.
                let last = end.find(|part| !part.is_blank());
                matches!(last, Some(Part::Reasoning(_))) && !message.is_empty()
            }
            // The provider checks only reasoning with an id for the item that it led to.
            Dialect::Responses => end.next().is_some_and(|part| match part {
                Part::Reasoning(reasoning) => reasoning.extra.iter().any(|(name, _)| name == "id"),
                _ => false,
            }),
        }
    }

    fn check_call(&mut self, index: usize, role: Role, id: &str) {
        let id = id.to_owned();
        if role != Role::Assistant {
            return self.fault(index, FaultKind::MisplacedCall { id });
        }
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if id.is_empty() {
            self.fault(index, FaultKind::MissingCallId);
        } else if self.dialect == Dialect::Messages && !id.bytes().all(legal) {
            self.fault(index, FaultKind::MalformedCallId { id: id.clone() });
        }
        if self.is_taken(&id) {
            self.fault(index, FaultKind::RepeatedCallId { id: id.clone() });
        }
        // In Chat Completions, ids must be unique only within their round.
        if self.dialect != Dialect::Chat {
            self.read.ids.insert(id.clone());
        }
        // A repeated id is reported above. Here the newest call counts, so that its output is no
        // orphan.
        self.answered.insert(id.clone(), false);
        self.calls.push(id);
    }

    fn is_taken(&self, id: &str) -> bool {
        self.answered.contains_key(id)
            || self.read.ids.contains(id)
            || self.before.is_some_and(|before| before.ids.contains(id))
    }

    fn check_output(&mut self, index: usize, role: Role, id: &str) {
        let id = id.to_owned();
        if role != Role::Tool {
            return self.fault(index, FaultKind::MisplacedOutput { id });
        }
        self.answering = true;
        match self.answered.get_mut(&id) {
            None => self.fault(index, FaultKind::OrphanOutput { id }),
            Some(answered @ false) => *answered = true,
            Some(true) => self.fault(index, FaultKind::DuplicateOutput { id }),
        }
    }

    fn close_round(&mut self, index: usize) {
        self.answering = false;
        let answered = std::mem::take(&mut self.answered);
        for id in std::mem::take(&mut self.calls) {
            if answered.get(&id) == Some(&false) {
                self.fault(index, FaultKind::OpenCall { id });
            }
        }
    }

    fn fault(&mut self, message: usize, kind: FaultKind) {
        self.faults.push(WindowFault { message, kind });
    }
}

impl VerifiedPart {
    /// Adds the result of a resumed run. Returns what [`take_back`](Self::take_back) needs if that
    /// part changes later.
    #[must_use]
    pub fn extend(&mut self, later: Self) -> Self {
        let step = Self {
            length: self.length,
            has_beginning: self.has_beginning,
            // An id that was known before must survive when the step is taken back.
            ids: later.ids.difference(&self.ids).cloned().collect(),
        };
        self.length = later.length;
        self.has_beginning = later.has_beginning;
        self.ids.extend(later.ids);
        step
    }

    /// Takes the newest step back.
    pub fn take_back(&mut self, step: Self) {
        self.length = step.length;
        self.has_beginning = step.has_beginning;
        for id in step.ids {
            self.ids.remove(&id);
        }
    }
}
