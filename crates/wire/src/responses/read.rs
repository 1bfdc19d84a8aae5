//! Reads Responses input.

use serde_json::value::RawValue;
use trimtab_model::{Message, MessageKind, Part, RawJson, Role, Treatment, treatment};

use super::item;
use crate::json::{self, JsonFields};
use crate::raw_part;
use crate::spelling_marks;

/// Reads the `input` field of a request: a string or a list.
pub fn read_input(json: &str) -> Result<Vec<Message>, serde_json::Error> {
    let raw: &RawValue = serde_json::from_str(json)?;
    if let Some(text) = json::string(raw) {
        return Ok(vec![Message::user(text)]);
    }
    serde_json::from_str(json).map(gather)
}

/// The messages of a list of entries.
pub(crate) fn gather(entries: Vec<&RawValue>) -> Vec<Message> {
    let mut gatherer = MessageGatherer::default();
    for entry in entries {
        gatherer.push(entry);
    }
    gatherer.messages
}

/// Reads the `instructions` field of a request.
pub(crate) fn instructions(text: String) -> Message {
    let mut message = Message::system(text);
    spelling_marks::set_text(
        &mut message.meta.extra,
        spelling_marks::FIELD,
        "instructions",
    );
    message
}

/// Gathers entries into messages.
#[derive(Debug, Default)]
pub(crate) struct MessageGatherer {
    /// The messages so far.
    pub(crate) messages: Vec<Message>,
    /// True while the entries belong to the same answer.
    speaking: bool,
}

impl MessageGatherer {
    /// Adds the next entry.
    pub(crate) fn push(&mut self, raw: &RawValue) {
        let fields = json::fields(raw).unwrap_or_default();
        let type_name = fields.text("type").unwrap_or_default();
        match type_name.as_ref() {
            "message" | "" if fields.has("role") => self.message(raw, fields),
            "reasoning" => self.said(vec![item::reasoning(fields, raw)]),
            other if treatment(other) == Treatment::Boundary => self.compaction(other, raw),
            other if item::is_output(&fields, other) => self.output(fields, raw),
            other if item::is_call(&fields, other) => self.said(vec![item::call(fields, raw)]),
            other if item::is_of_system(&fields) => self.system_item(other, raw),
            // Unknown entries, programs and calls of the provider's own tools. The provider answers
            // them, so they belong to the answer.
            other => self.said(vec![raw_part::opaque(other, raw)]),
        }
    }

    /// Ends the answer: the next entry of the model starts another one.
    pub(crate) fn end_answer(&mut self) {
        self.speaking = false;
    }

    fn said(&mut self, parts: Vec<Part>) {
        match self.messages.last_mut().filter(|_| self.speaking) {
            Some(last) => last.parts.extend(parts),
            None => self.messages.push(Message::new(Role::Assistant, parts)),
        }
        self.speaking = true;
    }

    fn message(&mut self, raw: &RawValue, fields: JsonFields<'_>) {
        if fields.text("role").is_some_and(|role| role == "assistant") {
            let parts =
                item::answer(fields).unwrap_or_else(|| vec![raw_part::opaque("message", raw)]);
            self.said(parts);
        } else {
            self.speaking = false;
            self.messages.push(item::message(fields));
        }
    }

    fn output(&mut self, fields: JsonFields<'_>, raw: &RawValue) {
        self.speaking = false;
        self.messages.push(item::output(fields, raw));
    }

    /// An unknown entry of the client, such as a list of tools: it must keep its place, like a
    /// system message.
    fn system_item(&mut self, type_name: &str, raw: &RawValue) {
        self.speaking = false;
        let parts = vec![raw_part::opaque(type_name, raw)];
        self.messages.push(Message::new(Role::System, parts));
    }

    /// A compaction entry, in a form that only the provider can read.
    fn compaction(&mut self, type_name: &str, raw: &RawValue) {
        self.speaking = false;
        let message = Message::new(Role::User, vec![raw_part::opaque(type_name, raw)]);
        self.messages.push(message.with_kind(MessageKind::Summary));
    }
}

/// Marks `message` as written without a `type`.
pub(super) fn mark_untyped(message: &mut Message) {
    spelling_marks::set(
        &mut message.meta.extra,
        spelling_marks::TYPE,
        RawJson::of(&()),
    );
}
