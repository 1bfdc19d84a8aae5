//! The calls of an assistant message.

use serde_json::value::RawValue;
use trimtab_model::{Call, ExtraFields, Part, RawJson};

use crate::json::{self, JsonFields, JsonType, ObjectWriter, array, owned};
use crate::spelling_marks;

/// The name of the legacy field that preceded `tool_calls`.
const LEGACY: &str = "function_call";
/// The id of a call in that field and of its output, which have none. Every call needs one, and
/// this one is never sent.
pub(super) const LEGACY_ID: &str = LEGACY;

/// Moves the calls in `fields` to `parts`.
pub(super) fn take(fields: &mut JsonFields<'_>, parts: &mut Vec<Part>) {
    // An empty list stays an unknown field, so that it is written back.
    let some = |raw| json::list(raw).filter(|list| !list.is_empty());
    if let Some(list) = fields.take_if("tool_calls", some) {
        parts.extend(list.into_iter().map(|raw| Part::Call(read(raw))));
    }
    if let Some(call) = fields.take_if(LEGACY, legacy) {
        parts.push(Part::Call(call));
    }
}

fn read(raw: &RawValue) -> Call {
    regular(raw).unwrap_or_else(|| irregular(raw))
}

/// A call in the standard form.
fn regular(raw: &RawValue) -> Option<Call> {
    let mut entry = json::fields(raw)?;
    if entry.text("type")? != "function" {
        return None;
    }
    let mut function = entry.fields("function")?;
    let call = Call {
        id: entry.take_string("id")?,
        name: function.take_string("name")?,
        arguments: function.take_string("arguments")?,
        extra: ExtraFields::new(),
    };
    // Unknown fields inside `function` have no place in the model's call, so its original JSON is
    // kept.
    if !function.is_empty() {
        return None;
    }
    entry.take("type");
    entry.take("function");
    Some(Call {
        extra: entry.into_extra(),
        ..call
    })
}

/// Any other call: its known fields, and the original JSON.
fn irregular(raw: &RawValue) -> Call {
    let entry = json::fields(raw).unwrap_or_default();
    let type_name = entry.text("type").unwrap_or_default();
    let inner = entry
        .fields("function")
        .or_else(|| entry.fields(&type_name))
        .unwrap_or_default();
    let arguments = inner.get("arguments").or_else(|| inner.get("input"));
    // Null is no text of four characters.
    let arguments = arguments.filter(|arguments| arguments.get() != "null");
    let mut call = Call::new(
        entry.text("id").unwrap_or_default(),
        inner.text("name").unwrap_or_default(),
        arguments.map(json::plain).unwrap_or_default(),
    );
    spelling_marks::set(&mut call.extra, spelling_marks::RAW, owned(raw));
    call
}

fn legacy(raw: &RawValue) -> Option<Call> {
    let mut function = json::fields(raw)?;
    let mut call = Call::new(
        LEGACY_ID,
        function.take_string("name")?,
        function.take_string("arguments")?,
    );
    spelling_marks::set_text(&mut call.extra, spelling_marks::TYPE, LEGACY);
    call.extra.extend(function.into_extra());
    Some(call)
}

/// Adds the calls of `parts` to a message.
pub(super) fn write(object: ObjectWriter, parts: &[Part]) -> ObjectWriter {
    let (old, new): (Vec<&Call>, Vec<&Call>) =
        parts.iter().filter_map(Part::as_call).partition(|call| {
            spelling_marks::text(&call.extra, spelling_marks::TYPE).as_deref() == Some(LEGACY)
        });
    let legacy = old.first().map(|call| write_function(call, &call.extra));
    let list = (!new.is_empty()).then(|| array(new.into_iter().map(write_call)));
    object.maybe("tool_calls", list).maybe(LEGACY, legacy)
}

fn write_call(call: &Call) -> String {
    if let Some(raw) = original(call) {
        return raw;
    }
    ObjectWriter::new()
        .text("id", &call.id)
        .text("type", "function")
        .raw("function", &write_function(call, &ExtraFields::new()))
        // Items of Responses have an id of their own beside that of the call.
        .extra(&call.extra, &["type", "id"])
        .end()
}

fn write_function(call: &Call, extra: &ExtraFields) -> String {
    ObjectWriter::new()
        .text("name", &call.name)
        .text("arguments", &call.arguments)
        .extra(extra, &[])
        .end()
}

/// The original call, if it has an unusual form and nothing but its id was edited.
fn original(call: &Call) -> Option<String> {
    let text = spelling_marks::get(&call.extra, spelling_marks::RAW)?;
    let raw = RawJson::parse(text).ok()?;
    let parsed: Box<RawValue> = serde_json::from_str(raw.as_str()).ok()?;
    // Read again and compared: if the call was edited since, the original is no longer true.
    let again = irregular(&parsed);
    let same = (&again.name, &again.arguments) == (&call.name, &call.arguments);
    // The original form of another dialect is useless here.
    let foreign = spelling_marks::has(&call.extra, spelling_marks::FIELD);
    if !same || foreign {
        return None;
    }
    if again.id == call.id {
        return Some(text.to_owned());
    }
    with_id(&parsed, &call.id)
}

/// A call under another id, with all of its unknown fields; none if it is not a call of a function.
fn with_id(raw: &RawValue, id: &str) -> Option<String> {
    let entry = json::fields(raw)?;
    let is_function = entry.text("type")? == "function";
    let arguments = entry.fields("function")?.type_of("arguments")?;
    // Providers reject arguments that are no text, so such a call is written anew.
    if !is_function || arguments != JsonType::Text {
        return None;
    }
    let mut object = ObjectWriter::new().text("id", id);
    for name in entry.names().filter(|name| *name != "id") {
        object = object.raw(name, entry.get(name)?.get());
    }
    Some(object.end())
}
