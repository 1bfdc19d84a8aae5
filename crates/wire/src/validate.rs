//! Strict validation of a body by the rules of its dialect's providers.
//!
//! It works on the spans of a body as it is sent, and shares no code with the splicer.
//!
//! ```
//! use trimtab_model::Dialect;
//! use trimtab_wire::scan::BodyScan;
//! use trimtab_wire::validate::validate;
//!
//! let body = br#"{"messages": [{"role": "user", "content": "hi"},
//!     {"role": "tool", "tool_call_id": "c1", "content": "of nothing"}]}"#;
//! let faults = validate(&BodyScan::new(body, Dialect::Chat).unwrap());
//! assert_eq!(faults[0].to_string(), "entry 1: output \"c1\" answers no call before it");
//! ```

mod rules;

#[cfg(test)]
mod tests;

use std::fmt;

use trimtab_model::Role;

use crate::scan::BodyScan;
use rules::BodyValidator;

/// The maximum number of cache markers.
pub(crate) const MAX_MARKERS: usize = 4;

/// A fault for which a provider would reject the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFault {
    /// The index of the element in the list of messages; the length of the list if the fault is at
    /// the end or outside of it.
    pub entry: usize,
    /// The broken rule.
    pub rule: RequestRule,
}

/// The rules.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestRule {
    /// A call is not answered directly after it.
    OpenCall(String),
    /// An output answers no call of the round directly before it.
    OrphanOutput(String),
    /// A call is answered twice.
    DuplicateOutput(String),
    /// A call is in a message of another role.
    MisplacedCall(String),
    /// An output is at an invalid position.
    MisplacedOutput(String),
    /// An output follows other parts of its message.
    OutputNotFirst(String),
    /// A call or output has no id.
    MissingId,
    /// Two calls that must be distinguished have the same id.
    RepeatedId(String),
    /// An id has invalid characters.
    MalformedId(String),
    /// A message is empty.
    EmptyMessage,
    /// A text part is blank.
    BlankPart,
    /// Reasoning is in a message of another role.
    MisplacedReasoning,
    /// Reasoning is not followed by its text or call.
    DanglingReasoning,
    /// The first message is not the user's.
    UserNotFirst,
    /// There is no message.
    NoMessage,
    /// There are too many cache markers.
    TooManyMarkers(usize),
    /// A cache marker is on reasoning or a blank text.
    MisplacedMarker,
}

impl fmt::Display for RequestRule {
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
            Self::MisplacedReasoning => f.write_str("reasoning outside the model's messages"),
            Self::DanglingReasoning => f.write_str("reasoning without the text or call it led to"),
            Self::UserNotFirst => f.write_str("the conversation does not begin with the user"),
            Self::NoMessage => f.write_str("there is no message"),
            Self::TooManyMarkers(count) => {
                write!(f, "{count} cache markers, more than {MAX_MARKERS}")
            }
            Self::MisplacedMarker => f.write_str("a cache marker on reasoning or blank text"),
        }
    }
}

impl fmt::Display for RequestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}: {}", self.entry, self.rule)
    }
}

/// All faults of a body, in order; empty if providers of its dialect accept it.
pub fn validate(scan: &BodyScan<'_>) -> Vec<RequestFault> {
    let mut judge = BodyValidator::new(scan);
    // The system field is no message to the providers, and has no rules here.
    let first = usize::from(scan.has_head());
    for message in first..scan.len() {
        judge.message(message);
    }
    judge.end();
    judge.faults
}

impl BodyValidator<'_, '_> {
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
