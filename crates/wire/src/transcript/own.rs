//! Messages of ours in the logs of others: which kind they are stands in a field of our own.

use trimtab_model::{Kind, Message, Role};

use crate::json::{self, Fields, Object};

/// The field; agents pass over fields that they do not know.
pub(super) const FIELD: &str = "trimtab";

/// The value of the field for `message`; none if there is nothing that the log cannot say.
pub(super) fn mark(message: &Message) -> Option<String> {
    let kind = message
        .meta
        .kind
        .and_then(|kind| serde_json::to_string(&kind).ok());
    let system = message.role == Role::System;
    (kind.is_some() || system).then(|| {
        let object = Object::new().maybe("kind", kind);
        object
            .maybe("role", system.then(|| json::quoted("system")))
            .end()
    })
}

/// Gives the user's messages of a line what its field says.
pub(super) fn apply<'m>(line: &Fields<'_>, messages: impl IntoIterator<Item = &'m mut Message>) {
    let Some(ours) = line.fields(FIELD) else {
        return;
    };
    let kind = ours.get("kind").and_then(json::parse::<Kind>);
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
