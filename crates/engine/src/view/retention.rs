//! Retention: above an input budget, old outputs are cut to their first chars (design `retention`).

use std::borrow::{Borrow, Cow};

use trimtab_model::{Message, Output, Role};

use super::figures::grouped;
use super::{PrefixCut, ViewChange, WindowOutputs, placeholder};
use crate::observation::{plain_text, shown_as};

/// The outputs to cut to `keep` after a call that used `input_tokens`, if that exceeds `budget`:
/// all but the newest batch, each once. A budget of 0 disables it.
///
/// Only outputs that are one plain text are cut, including errors.
///
/// With `can_retrieve`, each view names the call that retrieves the rest.
pub fn retain_in<M: Borrow<Message>>(
    outputs: &WindowOutputs<'_, M>,
    keep: PrefixCut,
    (input_tokens, budget): (u64, u64),
    can_retrieve: bool,
) -> Vec<ViewChange> {
    if budget == 0 || input_tokens <= budget {
        return Vec::new();
    }
    let longer = outputs.longer_than(keep.chars).into_iter();
    let cut = longer.filter_map(|place| {
        let (message, output) = outputs.get(place)?;
        let stored = output.stored.as_ref().filter(|_| can_retrieve);
        let line = stored.map(placeholder::retrieval_hint);
        let whole = written_as_string(message, &output)?;
        let Cow::Owned(text) = keep.view(whole, line.as_deref()) else {
            return None;
        };
        Some(ViewChange {
            message: place.message,
            part: place.part,
            output: shown_as(&output, text)?,
        })
    });
    cut.collect()
}

/// The text of an output that the client wrote as one string. In a tool message, the list of parts
/// is the content of the message itself.
pub(super) fn written_as_string<'a>(message: &Message, output: &'a Output) -> Option<&'a str> {
    // The design cuts strings only, and leaves outputs in parts alone.
    let is_list = message.role == Role::Tool && message.meta.content_list;
    plain_text(output).filter(|_| !is_list)
}

/// The line about `count` such outputs for the user, without a newline.
pub(crate) fn note(count: usize, input_tokens: u64, budget: u64) -> String {
    let (used, budget) = (grouped(input_tokens), grouped(budget));
    format!(
        "  Note: Compacted {count} old tool result(s) — input tokens ({used}) exceeded budget ({budget})"
    )
}
