//! Writes Responses input.

use trimtab_model::{
    Call, ExtraFields, Message, MessageKind, Opaque, Output, Part, RawJson, Reasoning, Role, Text,
};

use crate::json::{JsonFields, ObjectWriter, array, quoted};
use crate::{media, spelling_marks};

/// Writes a conversation as the entries of an `input` list.
///
/// A message that was read from `instructions` is omitted: see [`write_instructions`].
pub fn write_input(messages: &[Message]) -> Vec<RawJson> {
    let mut entries = Vec::new();
    for message in messages.iter().filter(|message| !is_instructions(message)) {
        match message.role {
            Role::Assistant => write_answer(message, &mut entries),
            Role::Tool => {
                let list = message.meta.content_list;
                entries.extend(message.outputs().map(|output| write_output(output, list)));
            }
            Role::System | Role::User => write_plain(message, &mut entries),
        }
    }
    entries
}

/// The text of the `instructions` field, if the conversation was read with one.
pub fn write_instructions(messages: &[Message]) -> Option<String> {
    let found = messages.iter().find(|message| is_instructions(message));
    found.map(|message| message.text().into_owned())
}

fn is_instructions(message: &Message) -> bool {
    spelling_marks::text(&message.meta.extra, spelling_marks::FIELD).as_deref()
        == Some("instructions")
}

fn write_plain(message: &Message, entries: &mut Vec<RawJson>) {
    let meta = &message.meta;
    // A provider's own summary is an entry, not a message; so is an unknown system entry.
    let is_entry = |whole: &Opaque| {
        let of_system = message.role == Role::System && !whole.type_name.is_empty();
        meta.kind == Some(MessageKind::Summary) || (of_system && !meta.content_list)
    };
    if let [Part::Opaque(whole)] = message.parts.as_slice()
        && is_entry(whole)
    {
        entries.push(whole.raw.clone());
        return;
    }
    let role = match meta.wire_role.as_deref() {
        Some(own) if own != "user" => own,
        _ => message.role.as_str(),
    };
    let typed = !spelling_marks::has(&meta.extra, spelling_marks::TYPE);
    let content = content(&message.parts, meta.content_list, "input_text");
    let object = ObjectWriter::new().maybe("type", typed.then(|| quoted("message")));
    let object = object
        .text("role", role)
        .maybe("content", content.or_else(|| nothing(&meta.extra)))
        .extra(&meta.extra, &[]);
    entries.push(object.end_raw());
}

fn write_answer(message: &Message, entries: &mut Vec<RawJson>) {
    let mut parts = message.parts.iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            Part::Text(first) => {
                let mut texts = vec![first];
                // Texts of one entry were split by the reader.
                while let Some(Part::Text(next)) = parts.next_if(|part| is_joined(part)) {
                    texts.push(next);
                }
                entries.push(write_texts(&texts));
            }
            Part::Reasoning(reasoning) => entries.push(write_reasoning(reasoning)),
            Part::Call(call) => entries.push(write_call(call)),
            Part::Output(output) => entries.push(write_output(output, false)),
            Part::Opaque(opaque) => entries.push(opaque.raw.clone()),
            Part::Media(media) => entries.push(media.raw.clone()),
        }
    }
}

fn is_joined(part: &Part) -> bool {
    matches!(part, Part::Text(text) if spelling_marks::has(&text.extra, spelling_marks::JOINED))
}

fn write_texts(texts: &[&Text]) -> RawJson {
    let first = texts.first().map(|text| &text.extra);
    let plain = first.is_some_and(|extra| spelling_marks::has(extra, spelling_marks::CONTENT));
    let content = match texts {
        [only] if plain => quoted(&only.text),
        many => array(many.iter().map(|text| write_text(text, "output_text"))),
    };
    let item = first.and_then(|extra| spelling_marks::get(extra, spelling_marks::ITEM));
    let object = match item.and_then(|json| serde_json::from_str::<JsonFields>(json).ok()) {
        Some(fields) => ObjectWriter::new().extra(&fields.into_extra(), &[]),
        None => ObjectWriter::new()
            .text("type", "message")
            .text("role", "assistant"),
    };
    object.raw("content", &content).end_raw()
}

fn write_text(text: &Text, usual: &str) -> String {
    let type_name = spelling_marks::text(&text.extra, spelling_marks::TYPE);
    ObjectWriter::new()
        .text("type", type_name.as_deref().unwrap_or(usual))
        .text("text", &text.text)
        .extra(&text.extra, &[])
        .end()
}

fn write_reasoning(reasoning: &Reasoning) -> RawJson {
    let given = reasoning.extra.iter().any(|(name, _)| name == "summary")
        || spelling_marks::is_absent(&reasoning.extra);
    // The field is required, so reasoning from elsewhere gets one.
    let summary = (!given).then(|| {
        let thought = ObjectWriter::new()
            .text("type", "summary_text")
            .text("text", &reasoning.text);
        let some = !reasoning.text.is_empty();
        array(some.then(|| thought.end()))
    });
    ObjectWriter::new()
        .text("type", "reasoning")
        .extra(&reasoning.extra, &[])
        .maybe("summary", summary)
        .maybe("encrypted_content", reasoning.seal.as_deref().map(quoted))
        .end_raw()
}

fn write_call(call: &Call) -> RawJson {
    if let Some(raw) = own_entry(&call.extra) {
        return raw;
    }
    let own = spelling_marks::text(&call.extra, spelling_marks::TYPE);
    let (type_name, field) = match own.as_deref() {
        Some("custom_tool_call") => ("custom_tool_call", "input"),
        _ => ("function_call", "arguments"),
    };
    ObjectWriter::new()
        .text("type", type_name)
        .text("call_id", &call.id)
        .text("name", &call.name)
        .text(field, &call.arguments)
        .extra(&call.extra, &["type"])
        .end_raw()
}

/// The original entry, if it has a special shape in this dialect.
fn own_entry(extra: &ExtraFields) -> Option<RawJson> {
    let raw = spelling_marks::get(extra, spelling_marks::RAW)?;
    let fields: JsonFields = serde_json::from_str(raw).ok()?;
    // An original of another dialect has neither field, and would be invalid here.
    let ours = fields.has("call_id") || fields.has("output");
    ours.then(|| RawJson::parse(raw).ok()).flatten()
}

fn write_output(output: &Output, as_list: bool) -> RawJson {
    if let Some(raw) = own_entry(&output.extra) {
        return raw;
    }
    let own = spelling_marks::text(&output.extra, spelling_marks::TYPE);
    let type_name = own.as_deref().filter(|name| name.ends_with("_output"));
    let content = content(&output.content, as_list, "input_text");
    ObjectWriter::new()
        .text("type", type_name.unwrap_or("function_call_output"))
        .text("call_id", &output.call_id)
        .maybe("output", content.or_else(|| nothing(&output.extra)))
        .extra(&output.extra, &[])
        .end_raw()
}

/// The value for a missing text: empty, unless the field was omitted.
fn nothing(extra: &ExtraFields) -> Option<String> {
    (!spelling_marks::is_absent(extra)).then(|| quoted(""))
}

fn content(parts: &[Part], as_list: bool, usual: &str) -> Option<String> {
    match parts {
        [] if !as_list => None,
        [Part::Text(text)] if !as_list && text.extra.is_empty() => Some(quoted(&text.text)),
        [Part::Opaque(whole)] if !as_list && whole.type_name.is_empty() => {
            Some(whole.raw.as_str().to_owned())
        }
        many => Some(array(many.iter().map(|part| match part {
            Part::Text(text) => write_text(text, usual),
            Part::Media(media) => media::to_responses(&media.raw),
            Part::Opaque(opaque) => opaque.raw.as_str().to_owned(),
            Part::Reasoning(_) | Part::Call(_) | Part::Output(_) => quoted(""),
        }))),
    }
}
