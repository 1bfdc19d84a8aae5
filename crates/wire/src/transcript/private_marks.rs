//! Our own messages in logs of other agents: a separate field names their kind.

use trimtab_model::{Message, MessageKind, Role};

use super::Conversation;
use crate::json::{self, JsonFields, ObjectWriter};

/// The name of the field; agents ignore unknown fields.
pub(super) const FIELD: &str = "trimtab";

/// The field that says how many messages were behind ours when it was written.
const BEHIND: &str = "behind";
/// The same number on a message that was read, until [`take_behind_marks`] takes it.
const BEHIND_MARK: &str = "trimtab:behind";

/// The value of the field for `message` with `behind` messages behind it; none if the log can
/// express everything.
pub(super) fn mark(message: &Message, behind: usize) -> Option<String> {
    let kind = message
        .meta
        .kind
        .and_then(|kind| serde_json::to_string(&kind).ok());
    let system = message.role == Role::System;
    (kind.is_some() || system).then(|| {
        let object = ObjectWriter::new().maybe("kind", kind);
        object
            .maybe("role", system.then(|| json::quoted("system")))
            .raw(BEHIND, &behind.to_string())
            .end()
    })
}

/// Applies the field of a line to its user messages.
pub(super) fn apply<'m>(
    line: &JsonFields<'_>,
    messages: impl IntoIterator<Item = &'m mut Message>,
) {
    let Some(ours) = line.fields(FIELD) else {
        return;
    };
    let kind = ours.get("kind").and_then(json::parse::<MessageKind>);
    let system = ours.text("role").is_some_and(|role| role == "system");
    let behind = ours.get(BEHIND).map(json::owned);
    for message in messages {
        if message.role == Role::User {
            message.meta.kind = kind.or(message.meta.kind);
            let mark = behind.clone().map(|raw| (BEHIND_MARK.to_owned(), raw));
            message.meta.extra.extend(mark);
            if system {
                message.role = Role::System;
            }
        }
    }
}

/// Takes the number of messages behind our own from them: it says what was there when they were
/// written. The usage of answers behind them describes a prompt that is no longer sent.
pub(super) fn take_behind_marks(read: &mut Conversation) {
    let mut outdated = 0;
    for (at, message) in read.messages.iter_mut().enumerate() {
        if let Some(behind) = take_behind(message) {
            outdated = outdated.max(at.saturating_add(1).saturating_add(behind));
            // Notes and repairs are inserted without a compaction.
            if message.is_summary() {
                read.already_compacted = outdated;
            }
        }
        if at < outdated {
            message.meta.usage = None;
        }
    }
}

fn take_behind(message: &mut Message) -> Option<usize> {
    let extra = &mut message.meta.extra;
    let at = extra.iter().position(|(name, _)| name == BEHIND_MARK)?;
    let (_, raw) = extra.remove(at);
    raw.as_str().parse().ok()
}
