//! Strict validation of a body by the rules of its dialect's providers.
//!
//! It works on the spans of a body as it is sent, and shares no code with the splicer.
//!
//! ```
//! use trimtab_model::Dialect;
//! use trimtab_wire::scan::Scan;
//! use trimtab_wire::validate::validate;
//!
//! let body = br#"{"messages": [{"role": "user", "content": "hi"},
//!     {"role": "tool", "tool_call_id": "c1", "content": "of nothing"}]}"#;
//! let faults = validate(&Scan::new(body, Dialect::Chat).unwrap());
//! assert_eq!(faults[0].to_string(), "entry 1: output \"c1\" answers no call before it");
//! ```

mod rules;

#[cfg(test)]
mod tests;

use std::fmt;

use trimtab_model::Role;

use crate::scan::Scan;
use rules::Judge;

/// How many cache markers a provider accepts.
pub(crate) const MAX_MARKERS: usize = 4;

/// One thing for which a provider would refuse the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Index of the element of the list of messages; its length where the fault is at the
    /// end or not in the list.
    pub entry: usize,
    /// The rule that is broken.
    pub rule: Rule,
}

/// What can be wrong with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// A call is not answered directly behind it.
    OpenCall(String),
    /// An output answers no call of the round directly before it.
    OrphanOutput(String),
    /// A call is answered twice.
    DuplicateOutput(String),
    /// A call stands in a message that is not the model's.
    MisplacedCall(String),
    /// An output stands where no output may be.
    MisplacedOutput(String),
    /// An output stands behind other parts of its message.
    OutputNotFirst(String),
    /// A call or output has no id.
    MissingId,
    /// Two calls that must be told apart have one id.
    RepeatedId(String),
    /// An id has characters that the dialect refuses.
    MalformedId(String),
    /// A message has nothing in it.
    EmptyMessage,
    /// A text part has nothing in it.
    BlankPart,
    /// A thought stands in a message that is not the model's.
    MisplacedReasoning,
    /// A thought is not followed by what it led to.
    DanglingReasoning,
    /// The first message is not the user's.
    UserNotFirst,
    /// There is no message.
    NoMessage,
    /// There are too many cache markers.
    TooManyMarkers(usize),
    /// A cache marker stands on a thought or a blank text.
    MisplacedMarker,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenCall(id) => write!(f, "call {id:?} has no output directly behind it"),
            Self::OrphanOutput(id) => write!(f, "output {id:?} answers no call before it"),
            Self::DuplicateOutput(id) => write!(f, "call {id:?} is answered twice"),
            Self::MisplacedCall(id) => write!(f, "call {id:?} is not the model's"),
            Self::MisplacedOutput(id) => write!(f, "output {id:?} is not in a tool's place"),
            Self::OutputNotFirst(id) => write!(f, "output {id:?} stands behind other parts"),
            Self::MissingId => f.write_str("a call or output has no id"),
            Self::RepeatedId(id) => write!(f, "call id {id:?} is used twice"),
            Self::MalformedId(id) => write!(f, "call id {id:?} has forbidden characters"),
            Self::EmptyMessage => f.write_str("the message is empty"),
            Self::BlankPart => f.write_str("a text part is blank"),
            Self::MisplacedReasoning => f.write_str("a thought outside the model's messages"),
            Self::DanglingReasoning => f.write_str("a thought without what it led to"),
            Self::UserNotFirst => f.write_str("the conversation does not begin with the user"),
            Self::NoMessage => f.write_str("there is no message"),
            Self::TooManyMarkers(count) => {
                write!(f, "{count} cache markers, more than {MAX_MARKERS}")
            }
            Self::MisplacedMarker => f.write_str("a cache marker on a thought or blank text"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}: {}", self.entry, self.rule)
    }
}

/// Every fault of a body, in order; none means that providers of its dialect accept it.
pub fn validate(scan: &Scan<'_>) -> Vec<Fault> {
    let mut judge = Judge::new(scan);
    let first = usize::from(scan.has_head());
    for message in first..scan.len() {
        judge.message(message);
    }
    judge.end();
    judge.faults
}

impl Judge<'_, '_> {
    fn message(&mut self, message: usize) {
        let Some(role) = self.scan.role(message) else {
            return;
        };
        self.entry = self.scan.entry_range(message).start;
        self.check_first(message, role);
        if self.closes_round(role) {
            self.close_round();
        }
        self.check_content(message, role);
        self.check_parts(message, role);
        if role == Role::Assistant {
            self.check_thoughts(message);
        }
    }
}
