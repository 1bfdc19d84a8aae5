//! Our own messages in logs of other agents: a separate field names their kind.

use trimtab_model::{Message, MessageKind, Role};

use crate::json::{self, JsonFields, ObjectWriter};

/// The name of the field; agents ignore unknown fields.
pub(super) const FIELD: &str = "trimtab";

/// The value of the field for `message`; none if the log can express everything.
pub(super) fn mark(message: &Message) -> Option<String> {
    let kind = message
        .meta
        .kind
        .and_then(|kind| serde_json::to_string(&kind).ok());
    let system = message.role == Role::System;
    (kind.is_some() || system).then(|| {
        let object = ObjectWriter::new().maybe("kind", kind);
        object
            .maybe("role", system.then(|| json::quoted("system")))
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
    for message in messages {
        if message.role == Role::User {
            message.meta.kind = kind.or(message.meta.kind);
            if system {
                message.role = Role::System;
            }
        }
    }
}
