//! Conversations for the tests.

use std::sync::Arc;

use trimtab::model::{Call, Message};

use crate::entry::{Entries, Entry};

pub(crate) fn call(id: &str, arguments: &str) -> Message {
    Message::assistant("").with_call(Call::new(id, "read", arguments))
}

pub(crate) fn log(messages: Vec<Message>) -> Vec<Arc<Entry>> {
    let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
    Entries::default().of(&messages)
}

/// A listing, `between` rounds of nothing, and a call that uses a path of the listing.
pub(crate) fn listing_then_use(between: usize) -> Vec<Message> {
    let mut messages = vec![
        Message::user("tidy up"),
        call("0", "{}"),
        Message::output(
            "0",
            "long line: src/parser/lexer.rs is long\nsrc/parser/tokens.rs\n",
        ),
    ];
    for round in 1..=between {
        messages.push(call(&round.to_string(), "{}"));
        messages.push(Message::output(round.to_string(), "nothing"));
    }
    messages.push(call("last", r#"{"path": "src/parser/lexer.rs"}"#));
    messages
}
