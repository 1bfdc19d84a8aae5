//! Faults that a provider would reject, in plain words.

use serde::Serialize;
use trimtab_engine::verify::{self, FaultKind};
use trimtab_model::{Dialect, Message};

use super::report::MessagePositions;

/// A fault that a provider would reject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InspectFault {
    /// The index of the message, or the number of messages for a fault at the end.
    pub message: usize,
    /// The fault in plain words.
    pub text: String,
    /// The same for scripts, with the id of its call.
    #[serde(flatten)]
    pub kind: FaultKind,
}

/// All faults of `window` by the rules of `dialect`.
pub fn find(
    window: &[&Message],
    positions: &MessagePositions,
    dialect: Dialect,
) -> Vec<InspectFault> {
    let faults = verify::verify(window, dialect).into_iter();
    let mut found: Vec<InspectFault> = faults
        .map(|fault| {
            let place = place(&fault, window);
            InspectFault {
                message: positions.in_transcript(place),
                text: describe(&fault.kind, window.get(place).copied()),
                kind: fault.kind,
            }
        })
        .collect();
    found.sort_by_key(|fault| fault.message);
    found
}

/// The message to show: an open call is detected where its output is missing, which is after the
/// call.
fn place(fault: &verify::WindowFault, window: &[&Message]) -> usize {
    let FaultKind::OpenCall { id } = &fault.kind else {
        return fault.message;
    };
    let before = window.get(..fault.message).unwrap_or(window);
    before
        .iter()
        .rposition(|message| message.calls().any(|call| call.id == *id))
        .unwrap_or(fault.message)
}

/// The fault in words, with the name of the tool if that helps.
fn describe(kind: &FaultKind, message: Option<&Message>) -> String {
    let FaultKind::OpenCall { id } = kind else {
        return kind.to_string();
    };
    let tool = message
        .and_then(|message| message.calls().find(|call| call.id == *id))
        .map(|call| format!(" of {}", call.name))
        .unwrap_or_default();
    format!("open call: {id:?}{tool} has no output")
}
