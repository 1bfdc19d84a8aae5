//! A model's answer, and how it ended.

use trimtab_model::{Dialect, Message, MessageMetadata, Part, RawJson, Usage};
use trimtab_wire::answer::is_cut_off;
use trimtab_wire::responses;

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerEnding {
    /// The answer is complete.
    Whole,
    /// The answer reached the output limit or the end of the window.
    CutOff,
    /// The answer contains calls.
    Calls,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The message for the log, with its usage and stop reason.
    pub message: Message,
    /// How it ended.
    pub ending: AnswerEnding,
}

impl ModelAnswer {
    /// The answer of a provider, with our metadata added.
    pub(super) fn received(
        mut message: Message,
        dialect: Dialect,
        usage: Option<Usage>,
        stop: Option<String>,
    ) -> Self {
        if dialect == Dialect::Responses {
            // An id ties a call to the reasoning before it, which may leave the window first.
            message = responses::without_ids(&message);
        }
        // Provider metadata stays out of the log, except for the fields set here.
        message.meta = MessageMetadata::default();
        message.meta.usage = usage;
        message.meta.stop_reason = stop;
        // Messages rejects blank texts when the answer is sent back.
        message.parts.retain(|part| !part.is_blank());
        note_dialect(&mut message, dialect);
        name_calls(&mut message);
        Self::new(message)
    }

    /// An answer from `message`, whose metadata contains the stop reason.
    pub fn new(message: Message) -> Self {
        let stop = message.meta.stop_reason.as_deref().unwrap_or_default();
        // Cut off comes first: calls of such an answer may be incomplete.
        let ending = if is_cut_off(stop) {
            AnswerEnding::CutOff
        } else if message.has_calls() {
            AnswerEnding::Calls
        } else {
            AnswerEnding::Whole
        };
        Self { message, ending }
    }

    /// The reported usage.
    pub fn usage(&self) -> Option<Usage> {
        self.message.meta.usage
    }
}

/// The metadata field with the dialect of an answer. Our own fields have this prefix, and no
/// dialect writes them to a request.
const CAME_IN: &str = "trimtab:dialect";

/// Records the dialect of an answer, because another dialect cannot use its specific parts.
pub(super) fn note_dialect(message: &mut Message, dialect: Dialect) {
    let noted = (CAME_IN.to_owned(), RawJson::of(&dialect));
    message.meta.extra.push(noted);
}

/// The recorded dialect of an answer, if any.
pub(super) fn came_in(message: &Message) -> Option<Dialect> {
    let mut fields = message.meta.extra.iter();
    let (_, noted) = fields.find(|(name, _)| name == CAME_IN)?;
    serde_json::from_str(noted.as_str()).ok()
}

/// Adds an id to calls without one, because their outputs must refer to them.
fn name_calls(message: &mut Message) {
    for (at, part) in message.parts.iter_mut().enumerate() {
        if let Part::Call(call) = part
            && call.id.is_empty()
        {
            call.id = format!("call_{at}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Call;

    #[test]
    fn answer_gets_missing_ids_and_loses_blank_parts() {
        let mut message = Message::assistant("");
        message.parts.push(Part::text("here"));
        message.parts.push(Part::Call(Call::new("", "look", "{}")));
        let stop = Some("tool_calls".to_owned());
        let answer = ModelAnswer::received(message, Dialect::Chat, None, stop);
        assert_eq!(answer.ending, AnswerEnding::Calls);
        assert_eq!(answer.message.parts.len(), 2);
        assert_eq!(answer.message.calls().next().unwrap().id, "call_1");
    }
}
