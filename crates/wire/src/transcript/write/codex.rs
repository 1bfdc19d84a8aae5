//! Writes lines of a Codex rollout.

use serde_json::value::RawValue;
use trimtab_model::{Message, Output, Part, RawJson, Role};

use super::form_writer::{FormWriter, NewMessage, name, output_of};
use super::patch::{JsonPatch, copied};
use crate::json::{self, JsonFields, quoted, type_of};
use crate::responses::{write_input, write_instructions};
use crate::transcript::private_marks;

/// Writes lines of a rollout.
pub(super) struct CodexWriter;

impl FormWriter for CodexWriter {
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String> {
        let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
        let payload = fields.get("payload")?;
        let mut patch = JsonPatch::new(unit);
        show_entry(payload, outputs, &mut patch);
        let kept = json::fields(payload).and_then(|payload| payload.list("replacement_history"));
        // A compaction line repeats the messages that survived it.
        for entry in kept.unwrap_or_default() {
            show_entry(entry, outputs, &mut patch);
        }
        Some(patch.end())
    }

    fn write(&mut self, new: &NewMessage<'_>) -> Vec<String> {
        lines(new)
    }
}

/// Replaces the content of an output, if it is among `outputs`.
fn show_entry(entry: &RawValue, outputs: &[&Output], patch: &mut JsonPatch<'_>) {
    let Some(fields) = json::fields(entry) else {
        return;
    };
    let shown = output_of(outputs, &fields, "call_id");
    let (Some(shown), Some(value)) = (shown, fields.get("output")) else {
        return;
    };
    let mut message = Message::new(Role::Tool, vec![Part::Output(Output::clone(shown))]);
    message.meta.content_list = type_of(value) == json::JsonType::List;
    let written = write_input(&[message]);
    let entry = written.first().map(RawJson::as_str);
    let content = entry.and_then(|entry| json::pick(entry, ["output"]));
    if let Some([Some(content)]) = content {
        patch.replace(value, content);
    }
}

/// The lines of a message. They have no `ordinal`: between two remaining lines there is often no
/// free one, and Codex reads lines without it, as its older versions wrote them.
fn lines(new: &NewMessage<'_>) -> Vec<String> {
    if let Some(text) = write_instructions(std::slice::from_ref(new.message)) {
        return vec![instructions(new, &text)];
    }
    let fields = serde_json::from_str::<JsonFields<'_>>(new.like()).unwrap_or_default();
    let line = |payload: &str| {
        copied(&fields, |name| name == "timestamp")
            .text("type", "response_item")
            .raw("payload", payload)
            .maybe(
                private_marks::FIELD,
                private_marks::mark(new.message, new.behind),
            )
            .end()
    };
    let entries = write_input(&[as_codex_spells_it(new, &fields)]);
    entries.iter().map(|entry| line(entry.as_str())).collect()
}

/// The message with its content as a list of parts, because Codex skips messages with plain text.
/// Our own message gets an id if the others have one.
fn as_codex_spells_it(new: &NewMessage<'_>, line: &JsonFields<'_>) -> Message {
    let mut message = new.message.clone();
    // An entry that is not a message is written verbatim.
    let is_entry = matches!(message.parts.as_slice(), [Part::Opaque(_)]);
    if message.role == Role::Tool || is_entry {
        return message;
    }
    message.meta.content_list = true;
    let near = line.fields("payload").unwrap_or_default();
    if !new.is_old() && message.role != Role::Assistant && near.has("id") {
        let id = format!("msg_{}", name(new.like(), new.number, new.message));
        let id = RawJson::of(&id);
        message.meta.extra.push(("id".to_owned(), id));
    }
    message
}

/// The session line with other instructions.
fn instructions(new: &NewMessage<'_>, text: &str) -> String {
    let unit = new.like();
    let mut patch = JsonPatch::new(unit);
    let fields = serde_json::from_str::<JsonFields<'_>>(unit).unwrap_or_default();
    let payload = fields.fields("payload").unwrap_or_default();
    let given = payload.fields("base_instructions");
    let value = given.and_then(|given| given.get("text"));
    if let Some(value) = value.or_else(|| payload.get("instructions")) {
        patch.replace(value, &quoted(text));
    }
    patch.end()
}
