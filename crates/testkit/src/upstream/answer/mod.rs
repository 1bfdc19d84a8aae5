//! Replies in the words of each provider.

mod chat;
mod event;
mod messages;
mod responses;

pub(super) use event::{AnswerEvent, RenderedEvents};

use serde_json::Value;
use trimtab_model::{Dialect, Usage};

use crate::script::{ScriptedCall, ScriptedReply};

/// When all answers were made, in seconds since the epoch: fixed, so that runs compare.
pub(super) const CREATED: u64 = 1_760_000_000;

/// Characters of a streamed piece of text.
const PIECE: usize = 24;

/// Pieces of one text at most, so that a long one is not a million events.
const MOST_PIECES: usize = 256;

/// A reply on its way to the client.
pub(super) struct OutgoingReply {
    pub(super) dialect: Dialect,
    /// What the ids in it are made of.
    pub(super) id: String,
    pub(super) model: String,
    pub(super) reply: ScriptedReply,
    pub(super) usage: Usage,
    /// Whether a stream of Chat Completions ends with the usage.
    pub(super) include_usage: bool,
    /// The seal of the thought.
    pub(super) seal: Option<String>,
}

impl OutgoingReply {
    /// The answer as a stream or as one document.
    pub(super) fn render(&self, stream: bool) -> RenderedEvents {
        match (self.dialect, stream) {
            (Dialect::Chat, false) => RenderedEvents::Whole(chat::whole(self)),
            (Dialect::Chat, true) => RenderedEvents::Events(chat::events(self)),
            (Dialect::Responses, false) => RenderedEvents::Whole(responses::whole(self)),
            (Dialect::Responses, true) => RenderedEvents::Events(responses::events(self)),
            (Dialect::Messages, false) => RenderedEvents::Whole(messages::whole(self)),
            (Dialect::Messages, true) => RenderedEvents::Events(messages::events(self)),
        }
    }

    /// The calls with their ids and arguments.
    pub(super) fn calls(&self) -> impl Iterator<Item = (String, &ScriptedCall)> {
        let calls = self.reply.calls.iter().enumerate();
        calls.map(|(at, call)| (self.call_id(at, call), call))
    }

    fn call_id(&self, at: usize, call: &ScriptedCall) -> String {
        let prefix = match self.dialect {
            Dialect::Messages => "toolu_01",
            Dialect::Chat | Dialect::Responses => "call_",
        };
        let made = || format!("{prefix}{}{at:02}", self.id);
        call.id.clone().unwrap_or_else(made)
    }

    /// The id of item number `at` of a Responses answer.
    pub(super) fn item_id(&self, prefix: &str, at: usize) -> String {
        format!("{prefix}_{}{at:02}", self.id)
    }

    /// The ids of the items of a Responses answer that follow its thought.
    pub(super) fn item_ids(&self) -> Vec<String> {
        responses::ids(self)
    }

    /// The id of the thought of a Responses answer.
    pub(super) fn thought_id(&self) -> String {
        self.item_id("rs", 0)
    }
}

/// A text in the pieces it is streamed in.
fn pieces(text: &str) -> Vec<&str> {
    let size = PIECE.max(text.len() / MOST_PIECES);
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().map(|(at, _)| at).find(|at| *at >= size);
        let (piece, more) = rest
            .split_at_checked(end.unwrap_or(rest.len()))
            .unwrap_or((rest, ""));
        pieces.push(piece);
        rest = more;
    }
    pieces
}

/// The arguments as JSON, where they must be: damaged ones become an empty object.
fn arguments_value(call: &ScriptedCall) -> Value {
    let parsed: Option<Value> = serde_json::from_str(&call.arguments.to_text()).ok();
    parsed
        .filter(Value::is_object)
        .unwrap_or_else(|| serde_json::json!({}))
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_join_to_the_text() {
        for text in ["", "short", &"é".repeat(100), &"long ".repeat(10_000)] {
            let cut = pieces(text);
            assert_eq!(cut.concat(), text);
            assert!(cut.len() <= 260, "{}", cut.len());
            assert!(cut.iter().all(|piece| !piece.is_empty()));
        }
    }
}
