//! An answer, put together from the pieces that it came in.

use trimtab_model::{Call, Dialect, Message, Part, RawJson, Reasoning, Usage};

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Whole,
    /// At the limit of the answer or of the window.
    CutOff,
    /// With calls.
    Calls,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The message for the log, with its usage and the reason why it stopped.
    pub message: Message,
    /// How it ended.
    pub ending: Ending,
}

impl Answer {
    /// An answer that is `message`, which says itself why it stopped.
    pub fn new(message: Message) -> Self {
        let stop = message.meta.stop_reason.as_deref().unwrap_or_default();
        let ending = if is_cut_off(stop) {
            Ending::CutOff
        } else if message.has_calls() {
            Ending::Calls
        } else {
            Ending::Whole
        };
        Self { message, ending }
    }

    /// What the provider reported.
    pub fn usage(&self) -> Option<Usage> {
        self.message.meta.usage
    }
}

/// The field in which an answer in the log says what dialect it came in. The names of fields
/// that are only for us begin like this; no dialect writes them.
const CAME_IN: &str = "trimtab:dialect";

/// Notes the dialect that an answer came in: what only that dialect has is of no use to another.
pub(super) fn note_dialect(message: &mut Message, dialect: Dialect) {
    let noted = (CAME_IN.to_owned(), RawJson::of(&dialect));
    message.meta.extra.push(noted);
}

/// The dialect that an answer came in, where that was noted.
pub(super) fn came_in(message: &Message) -> Option<Dialect> {
    let mut fields = message.meta.extra.iter();
    let (_, noted) = fields.find(|(name, _)| name == CAME_IN)?;
    serde_json::from_str(noted.as_str()).ok()
}

/// The words of all dialects for an answer that was not finished.
fn is_cut_off(stop: &str) -> bool {
    matches!(
        stop,
        "length"
            | "max_tokens"
            | "max_output_tokens"
            | "incomplete"
            | "model_context_window_exceeded"
    )
}

/// Puts a streamed answer together.
#[derive(Debug, Default)]
pub(super) struct Draft {
    dialect: Dialect,
    parts: Vec<Part>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<String>,
}

impl Draft {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            ..Self::default()
        }
    }

    pub(super) fn text(&mut self, more: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(text)) => text.text.push_str(more),
            _ => self.parts.push(Part::text(more)),
        }
    }

    /// More of a thought. The dialects that seal their thoughts give them whole later.
    pub(super) fn thinking(&mut self, more: &str) {
        if self.dialect != Dialect::Chat {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Reasoning(thought)) => thought.text.push_str(more),
            _ => self.parts.push(Part::reasoning(more)),
        }
    }

    pub(super) fn thought(&mut self, thought: Reasoning) {
        self.parts.push(Part::Reasoning(thought));
    }

    pub(super) fn call(&mut self, call: Call) {
        self.parts.push(Part::Call(call));
    }

    /// The answer, now that it has ended.
    pub(super) fn finish(self) -> Answer {
        let mut message = Message::assistant("");
        message.parts = self.parts;
        message.parts.retain(|part| !part.is_blank());
        message.meta.usage = self.usage;
        message.meta.stop_reason = self.stop;
        note_dialect(&mut message, self.dialect);
        name_calls(&mut message);
        Answer::new(message)
    }
}

/// Gives a call that came without an id one: its output could not name it otherwise.
pub(super) fn name_calls(message: &mut Message) {
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

    #[test]
    fn pieces_become_one_message() {
        let mut draft = Draft::new(Dialect::Chat);
        draft.thinking("let me ");
        draft.thinking("see");
        draft.text("he");
        draft.text("re");
        draft.call(Call::new("", "look", "{}"));
        draft.stop = Some("tool_calls".to_owned());
        let answer = draft.finish();
        assert_eq!(answer.ending, Ending::Calls);
        assert_eq!(answer.message.text(), "here");
        assert_eq!(answer.message.parts.len(), 3);
        assert_eq!(answer.message.calls().next().unwrap().id, "call_2");
    }

    #[test]
    fn a_sealed_thought_is_taken_once() {
        let mut draft = Draft::new(Dialect::Messages);
        draft.thinking("hm");
        draft.thought(Reasoning {
            text: "hm".to_owned(),
            seal: Some("x".to_owned()),
            ..Reasoning::default()
        });
        draft.text("ok");
        assert_eq!(draft.finish().message.parts.len(), 2);
    }
}
