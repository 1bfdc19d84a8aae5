//! The strict judge of a window: the rules by which providers accept or refuse one.
//!
//! The verifier shares no code with normalising. It reads a window once, from the front, and
//! keeps only what the rules need, so that a window which grows at its end is verified by
//! reading what is new.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Serialize;
use trimtab_model::{Dialect, Message, Part, Role, work};

/// One thing for which a provider would refuse the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Index of the message in the window; its length where the fault is at the end.
    pub message: usize,
    /// What is wrong there.
    pub kind: FaultKind,
}

/// What can be wrong with a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum FaultKind {
    /// A call is not answered directly behind it.
    OpenCall {
        /// The call's id.
        id: String,
    },
    /// An output answers no call of the round directly before it.
    OrphanOutput {
        /// The id it carries.
        id: String,
    },
    /// A call is answered twice.
    DuplicateOutput {
        /// The call's id.
        id: String,
    },
    /// A call stands in a message that is not the assistant's.
    MisplacedCall {
        /// The call's id.
        id: String,
    },
    /// An output stands in a message that is not a tool's.
    MisplacedOutput {
        /// The id it carries.
        id: String,
    },
    /// A thought stands in a message that is not the assistant's.
    MisplacedReasoning,
    /// A thought at the end of a message leads to nothing.
    DanglingReasoning,
    /// A tool message holds something other than outputs.
    ForeignPart,
    /// A message has nothing in it.
    EmptyMessage,
    /// A text part has nothing in it, beside others that do.
    BlankPart,
    /// A call has no id.
    MissingCallId,
    /// Two calls that must be told apart have one id.
    RepeatedCallId {
        /// The id.
        id: String,
    },
    /// An id has characters that the dialect refuses.
    MalformedCallId {
        /// The id.
        id: String,
    },
    /// The first message that is not a system message is not the user's.
    UserNotFirst,
    /// There is nothing but system messages, or nothing at all.
    NoUser,
    /// A message that the model must not see is in the window.
    HiddenMessage,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenCall { id } => write!(f, "call {id:?} has no output directly behind it"),
            Self::OrphanOutput { id } => write!(f, "output {id:?} answers no call before it"),
            Self::DuplicateOutput { id } => write!(f, "call {id:?} is answered twice"),
            Self::MisplacedCall { id } => write!(f, "call {id:?} is not in an assistant message"),
            Self::MisplacedOutput { id } => write!(f, "output {id:?} is not in a tool message"),
            Self::MisplacedReasoning => f.write_str("a thought outside an assistant message"),
            Self::DanglingReasoning => f.write_str("a thought is followed by nothing"),
            Self::ForeignPart => f.write_str("a tool message with something besides outputs"),
            Self::EmptyMessage => f.write_str("the message is empty"),
            Self::BlankPart => f.write_str("a text part is blank"),
            Self::MissingCallId => f.write_str("a call has no id"),
            Self::RepeatedCallId { id } => write!(f, "call id {id:?} is used twice"),
            Self::MalformedCallId { id } => write!(f, "call id {id:?} has forbidden characters"),
            Self::UserNotFirst => f.write_str("the conversation does not begin with the user"),
            Self::NoUser => f.write_str("there is no user message"),
            Self::HiddenMessage => f.write_str("a hidden message is in the window"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: {}", self.message, self.kind)
    }
}

/// Every fault of a window, in order; none means that `dialect`'s providers accept it.
///
/// ```
/// # use trimtab_engine::verify;
/// # use trimtab_model::{Dialect, Message};
/// let window = [Message::user("hello"), Message::output("c1", "result of nothing")];
/// let faults = verify::verify(&window, Dialect::Chat);
/// assert_eq!(faults[0].to_string(), "message 1: output \"c1\" answers no call before it");
/// ```
pub fn verify<M: Borrow<Message>>(window: &[M], dialect: Dialect) -> Vec<Fault> {
    let mut verifier = Verifier::new(dialect);
    for message in window {
        verifier.push(message.borrow());
    }
    verifier.finish()
}

/// True if the dialect wants call ids unique in the whole window, not only in their round.
pub(crate) fn ids_are_global(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Messages | Dialect::Responses)
}

/// True if `id` is spelled as the dialect wants it.
pub(crate) fn id_is_well_formed(id: &str, dialect: Dialect) -> bool {
    dialect != Dialect::Messages
        || id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// What the rules need to know of the part of a window that was verified before.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    length: usize,
    begun: bool,
    ids: HashSet<String>,
}

/// Reads a window message by message.
#[derive(Debug)]
pub struct Verifier<'a> {
    dialect: Dialect,
    /// What was read in an earlier run, if any.
    before: Option<&'a Verified>,
    read: Verified,
    /// The calls of the round being read, with whether they are answered.
    open: Vec<(String, bool)>,
    /// Where the first of them with an id stands.
    open_by_id: HashMap<String, usize>,
    faults: Vec<Fault>,
}

impl<'a> Verifier<'a> {
    /// A verifier at the front of a window.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            before: None,
            read: Verified::default(),
            open: Vec::new(),
            open_by_id: HashMap::new(),
            faults: Vec::new(),
        }
    }

    /// A verifier that goes on where an earlier run ended, at the end of a round.
    pub fn resume(dialect: Dialect, before: &'a Verified) -> Self {
        let read = Verified {
            length: before.length,
            begun: before.begun,
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
        if !message.agent_visible() {
            self.fault(index, FaultKind::HiddenMessage);
        }
        if message.role != Role::Tool {
            self.close_round(index);
        }
        self.check_head(index, message);
        self.check_parts(index, message);
    }

    /// Ends the window and gives its faults.
    pub fn finish(mut self) -> Vec<Fault> {
        let end = self.read.length;
        self.close_round(end);
        if !self.read.begun {
            self.fault(end, FaultKind::NoUser);
        }
        self.faults
    }

    /// Ends a run at the end of a round: what to resume from, and the faults until here.
    pub fn pause(mut self) -> (Verified, Vec<Fault>) {
        let end = self.read.length;
        self.close_round(end);
        (self.read, self.faults)
    }

    fn check_head(&mut self, index: usize, message: &Message) {
        if message.role == Role::System || self.read.begun {
            return;
        }
        self.read.begun = true;
        if message.role != Role::User {
            self.fault(index, FaultKind::UserNotFirst);
        }
    }

    fn check_parts(&mut self, index: usize, message: &Message) {
        if message.is_empty() {
            self.fault(index, FaultKind::EmptyMessage);
        } else if self.dialect == Dialect::Messages && message.parts.iter().any(Part::is_blank) {
            self.fault(index, FaultKind::BlankPart);
        }
        let last = message.parts.iter().rfind(|part| !part.is_blank());
        let ends_in_thought = matches!(last, Some(Part::Reasoning(_)));
        if self.dialect != Dialect::Chat && ends_in_thought && !message.is_empty() {
            self.fault(index, FaultKind::DanglingReasoning);
        }
        work::step(1 + message.parts.len());
        for part in &message.parts {
            match part {
                Part::Call(call) => self.check_call(index, message.role, &call.id),
                Part::Output(output) => self.check_output(index, message.role, &output.call_id),
                Part::Reasoning(_) if message.role != Role::Assistant => {
                    self.fault(index, FaultKind::MisplacedReasoning);
                }
                _ if message.role == Role::Tool => self.fault(index, FaultKind::ForeignPart),
                _ => {}
            }
        }
    }

    fn check_call(&mut self, index: usize, role: Role, id: &str) {
        let id = id.to_owned();
        if role != Role::Assistant {
            return self.fault(index, FaultKind::MisplacedCall { id });
        }
        if id.is_empty() {
            self.fault(index, FaultKind::MissingCallId);
        } else if !id_is_well_formed(&id, self.dialect) {
            self.fault(index, FaultKind::MalformedCallId { id: id.clone() });
        }
        if self.is_taken(&id) {
            self.fault(index, FaultKind::RepeatedCallId { id: id.clone() });
        }
        if ids_are_global(self.dialect) {
            self.read.ids.insert(id.clone());
        }
        self.open_by_id.entry(id.clone()).or_insert(self.open.len());
        self.open.push((id, false));
    }

    fn is_taken(&self, id: &str) -> bool {
        self.open_by_id.contains_key(id)
            || self.read.ids.contains(id)
            || self.before.is_some_and(|before| before.ids.contains(id))
    }

    fn check_output(&mut self, index: usize, role: Role, id: &str) {
        let id = id.to_owned();
        if role != Role::Tool {
            return self.fault(index, FaultKind::MisplacedOutput { id });
        }
        let open = self.open_by_id.get(&id);
        match open.and_then(|at| self.open.get_mut(*at)) {
            None => self.fault(index, FaultKind::OrphanOutput { id }),
            Some((_, answered @ false)) => *answered = true,
            Some((_, true)) => self.fault(index, FaultKind::DuplicateOutput { id }),
        }
    }

    fn close_round(&mut self, index: usize) {
        self.open_by_id = HashMap::new();
        for (id, answered) in std::mem::take(&mut self.open) {
            if !answered {
                self.fault(index, FaultKind::OpenCall { id });
            }
        }
    }

    fn fault(&mut self, message: usize, kind: FaultKind) {
        self.faults.push(Fault { message, kind });
    }
}

impl Verified {
    /// Takes in what a resumed run read.
    pub fn extend(&mut self, later: Self) {
        self.length = later.length;
        self.begun = later.begun;
        self.ids.extend(later.ids);
    }
}
