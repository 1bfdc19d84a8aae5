//! Retention: above an input budget, old outputs keep their first chars only.

use std::borrow::{Borrow, Cow};

use serde::{Deserialize, Serialize};
use trimtab_model::{Message, Output, Part, Role};

use super::figures::grouped;
use super::trim::replaced;
use super::{Change, Prefix, WindowOutputs, placeholder};

/// Settings of retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Above this many input tokens old outputs are cut; none or zero switches it off.
    pub input_budget: Option<u64>,
    /// What is kept of them.
    pub keep: Prefix,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            input_budget: Some(40_000),
            keep: Prefix::default(),
        }
    }
}

/// What retention decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// The outputs to show shorter.
    pub changes: Vec<Change>,
    /// One line for the person who watches, without a newline; none if nothing changes.
    pub note: Option<String>,
}

/// The outputs to cut after a call that used `input_tokens`: all but the newest batch, each
/// once.
///
/// Only outputs that are one plain text are cut, errors included. A view may end up a few
/// chars longer than an output that was just over the length kept; the design wants it so.
///
/// With `way_back` each view names the call that gets the rest.
pub fn retain_in<M: Borrow<Message>>(
    outputs: &WindowOutputs<'_, M>,
    retention: &Retention,
    input_tokens: u64,
    way_back: bool,
) -> Retained {
    let budget = retention.input_budget.filter(|budget| *budget > 0);
    let Some(budget) = budget.filter(|budget| input_tokens > *budget) else {
        return Retained::default();
    };
    let longer = outputs.longer_than(retention.keep.chars).into_iter();
    let cut = longer.filter_map(|place| {
        let (message, output) = outputs.get(place)?;
        let stored = output.stored.as_ref().filter(|_| way_back);
        let line = stored.map(placeholder::way_back);
        let text = plain_text(message, &output)?;
        let Cow::Owned(text) = retention.keep.view(text, line.as_deref()) else {
            return None;
        };
        Some(Change {
            message: place.message,
            part: place.part,
            output: replaced(&output, text),
        })
    });
    let changes: Vec<Change> = cut.collect();
    let note = (!changes.is_empty()).then(|| note(changes.len(), input_tokens, budget));
    Retained { changes, note }
}

/// The text of an output that the client wrote as one string. In a tool message the list
/// is the message's own content; elsewhere it is not.
pub(super) fn plain_text<'a>(message: &Message, output: &'a Output) -> Option<&'a str> {
    if message.role == Role::Tool && message.meta.content_list {
        return None;
    }
    let [only] = output.content.as_slice() else {
        return None;
    };
    Part::as_text(only)
}

fn note(count: usize, input_tokens: u64, budget: u64) -> String {
    let (used, budget) = (grouped(input_tokens), grouped(budget));
    format!(
        "  Note: Compacted {count} old tool result(s) — input tokens ({used}) exceeded budget ({budget})"
    )
}
