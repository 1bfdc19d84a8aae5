//! Writes entries of a Gemini CLI session.

use serde_json::value::RawValue;
use trimtab_model::{Call, Message, Output, Part, Role};

use super::form_writer::{CallNames, FormWriter, NewMessage, arguments, name};
use super::patch::{JsonPatch, copied};
use crate::json::{self, JsonFields, JsonType, ObjectWriter, array, quoted, type_of};
use crate::transcript::private_marks;

/// The rewritten fields of an entry.
const WRITTEN: [&str; 6] = [
    "id",
    "type",
    "content",
    "thoughts",
    "toolCalls",
    private_marks::FIELD,
];

/// Writes entries of a session.
#[derive(Default)]
pub(super) struct GeminiWriter {
    /// The ids of entries that were reused.
    used: std::collections::HashSet<String>,
}

/// The list of entries, if the session is one document.
pub(super) fn document(text: &str) -> Option<&RawValue> {
    let fields = serde_json::from_str::<JsonFields<'_>>(text).ok()?;
    let list = fields.get("messages")?;
    (fields.has("projectHash") && type_of(list) == JsonType::List).then_some(list)
}

impl FormWriter for GeminiWriter {
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String> {
        let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
        // Such a line holds the whole session, so an output in it cannot be patched alone.
        if fields.has("$set") {
            return None;
        }
        let mut patch = JsonPatch::new(unit);
        for part in fields.list("content").unwrap_or_default() {
            show_part(part, outputs, &mut patch);
        }
        for call in fields.list("toolCalls").unwrap_or_default() {
            let call = json::fields(call)?;
            let before = patch.len();
            for part in call.list("result").unwrap_or_default() {
                show_part(part, outputs, &mut patch);
            }
            // The text shown to the user is a copy.
            if patch.len() > before
                && let Some(copy) = call.get("resultDisplay")
            {
                patch.replace(copy, "null");
            }
        }
        Some(patch.end())
    }

    fn write(&mut self, run: &[NewMessage<'_>], names: &CallNames<'_>) -> Vec<String> {
        run.iter().map(|new| self.entry(new, names)).collect()
    }
}

/// Replaces the content of an output, if it is among `outputs`.
fn show_part(raw: &RawValue, outputs: &[&Output], patch: &mut JsonPatch<'_>) {
    let response = json::fields(raw).and_then(|part| part.fields("functionResponse"));
    let Some(response) = response else { return };
    let id = response.string("id").unwrap_or_default();
    let shown = outputs.iter().find(|output| output.call_id == id);
    let (Some(shown), Some(value)) = (shown, response.get("response")) else {
        return;
    };
    // The reader takes a text from one of two fields. Any other response was read as its JSON, so
    // all of it is replaced.
    let given = json::fields(value).unwrap_or_default();
    let text = ["output", "error"]
        .into_iter()
        .filter_map(|name| given.get(name))
        .find(|raw| type_of(raw) == JsonType::Text);
    match text {
        Some(text) => patch.replace(text, &quoted(&shown.text())),
        None => patch.replace(value, &given_back(shown)),
    }
}

fn given_back(output: &Output) -> String {
    let name = if output.is_error { "error" } else { "output" };
    ObjectWriter::new().text(name, &output.text()).end()
}

impl GeminiWriter {
    fn entry(&mut self, new: &NewMessage<'_>, names: &CallNames<'_>) -> String {
        let like = new.like();
        let fields = serde_json::from_str::<JsonFields<'_>>(like).unwrap_or_default();
        let answer = new.message.role == Role::Assistant;
        // The fields of an answer do not fit a user entry, and the other way round.
        let old = new.is_old()
            && fields
                .text("type")
                .is_some_and(|name| (name == "gemini") == answer);
        let object = copied(&fields, |name| {
            (old && !WRITTEN.contains(&name)) || name == "timestamp"
        });
        let own = fields.string("id");
        let own = own.filter(|id| old && self.used.insert(id.clone()));
        let id = own.unwrap_or_else(|| name(like, new.number, new.message));
        let object = object.text("id", &id);
        if answer {
            return written_answer(object, new.message);
        }
        let mark =
            private_marks::mark(new.message, new.behind).filter(|_| new.message.role != Role::Tool);
        object
            .text("type", "user")
            .raw(
                "content",
                &array(new.message.parts.iter().map(|part| said(part, names))),
            )
            .maybe(private_marks::FIELD, mark)
            .end()
    }
}

fn said(part: &Part, names: &CallNames<'_>) -> String {
    match part {
        Part::Text(text) => ObjectWriter::new().text("text", &text.text).end(),
        Part::Output(output) => {
            let called = names.get(output.call_id.as_str()).copied();
            let tool = output.tool.as_deref().or(called);
            let response = ObjectWriter::new()
                .text("id", &output.call_id)
                .text("name", tool.unwrap_or_default())
                .raw("response", &given_back(output));
            ObjectWriter::new()
                .raw("functionResponse", &response.end())
                .end()
        }
        Part::Media(media) => media.raw.as_str().to_owned(),
        Part::Opaque(opaque) => opaque.raw.as_str().to_owned(),
        Part::Reasoning(_) | Part::Call(_) => ObjectWriter::new().text("text", "").end(),
    }
}

fn written_answer(object: ObjectWriter, message: &Message) -> String {
    let is_said = |part: &&Part| !matches!(part, Part::Reasoning(_) | Part::Call(_));
    let parts: Vec<&Part> = message.parts.iter().filter(is_said).collect();
    let content = match parts.as_slice() {
        [] => quoted(""),
        [Part::Text(text)] => quoted(&text.text),
        many => array(many.iter().map(|part| said(part, &CallNames::new()))),
    };
    let thoughts = message.parts.iter().filter_map(|part| match part {
        Part::Reasoning(thought) => Some(thought.text.as_str()),
        _ => None,
    });
    let thoughts = thoughts.map(|text| {
        // The reader joins both with a line break.
        let (subject, description) = text.split_once('\n').unwrap_or((text, ""));
        let thought = ObjectWriter::new().text("subject", subject);
        thought.text("description", description).end()
    });
    object
        .text("type", "gemini")
        .raw("content", &content)
        .raw("thoughts", &array(thoughts))
        .raw("toolCalls", &array(message.calls().map(call)))
        .end()
}

fn call(call: &Call) -> String {
    ObjectWriter::new()
        .text("id", &call.id)
        .text("name", &call.name)
        .raw("args", &arguments(call))
        .end()
}
