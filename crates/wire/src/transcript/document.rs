//! Conversations in one JSON value: a list of messages, or an object around it.

use serde_json::value::RawValue;
use trimtab_model::RawJson;

use super::form::{conversation, dialect_of};
use super::{Conversation, TranscriptForm, opencode};
use crate::json::{self, JsonFields, JsonType, owned, string, type_of};
use crate::{chat, messages, responses};

/// Reads a conversation; none if `text` contains none.
pub(super) fn read(text: &str) -> Result<Option<Conversation>, serde_json::Error> {
    let read = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).and_then(|entries| list(entries, text))
    } else {
        serde_json::from_str(text).map(|fields| object(&fields))
    };
    match read {
        // JSON of another shape.
        Err(error) if error.is_data() => Ok(None),
        read => read,
    }
}

fn object(outer: &JsonFields<'_>) -> Option<Conversation> {
    let fields = conversation(outer)?;
    let entries: Option<Vec<JsonFields<'_>>> = fields.get("messages").and_then(json::parse);
    let mut read = match (fields.get("input"), entries) {
        (_, Some(entries)) if fields.type_of("info") == Some(JsonType::Object) => {
            opencode::read(&fields, &entries)?
        }
        (_, Some(entries)) if has_messages(&entries) => request(&fields, entries),
        (Some(input), None) => responses_input(&fields, input)?,
        _ => return None,
    };
    name(&mut read, outer, &fields);
    Some(read)
}

/// True if a list called `messages` can be one of ours: other programs write theirs without roles.
fn has_messages(entries: &[JsonFields<'_>]) -> bool {
    entries.is_empty() || entries.iter().any(|entry| entry.has("role"))
}

/// Records the names of the conversation and of its model.
fn name(read: &mut Conversation, outer: &JsonFields<'_>, fields: &JsonFields<'_>) {
    let names = ["id", "custom_id", "conversation_id", "session_id"];
    let id = |fields: &JsonFields<'_>| names.iter().find_map(|name| fields.string(name));
    read.id = read.id.take().or_else(|| id(outer)).or_else(|| id(fields));
    read.model = read.model.take().or_else(|| model(fields));
}

fn model(fields: &JsonFields<'_>) -> Option<String> {
    let noted = || fields.fields("meta")?.string("model");
    fields.string("model").or_else(noted)
}

/// A bare list: of messages, or of Responses entries.
fn list(
    entries: Vec<JsonFields<'_>>,
    text: &str,
) -> Result<Option<Conversation>, serde_json::Error> {
    let known = |entry: &JsonFields<'_>| entry.has("role") || entry.has("type");
    if entries.is_empty() || !entries.iter().all(known) {
        return Ok(None);
    }
    Ok(Some(match dialect_of(&entries).unwrap_or_default() {
        TranscriptForm::Responses => {
            let mut read = Conversation::new(TranscriptForm::Responses);
            read.messages = responses::gather(serde_json::from_str(text)?);
            read
        }
        form => conversation_of(entries, form),
    }))
}

fn request(fields: &JsonFields<'_>, entries: Vec<JsonFields<'_>>) -> Conversation {
    // The fields of a request are surer than its messages, which may be plain text in any dialect.
    let form = if is_messages_request(fields) {
        TranscriptForm::Messages
    } else {
        match dialect_of(&entries) {
            Some(TranscriptForm::Messages) => TranscriptForm::Messages,
            _ => TranscriptForm::Chat,
        }
    };
    let mut read = conversation_of(entries, form);
    let system = fields.get("system");
    if let Some(system) = system.filter(|raw| type_of(raw) != JsonType::Null) {
        read.messages.insert(0, messages::system(system));
    }
    read.tools = tools(fields);
    read
}

fn is_messages_request(fields: &JsonFields<'_>) -> bool {
    let tool = fields
        .list("tools")
        .and_then(|tools| json::fields(tools.first()?));
    fields.has("system")
        || fields.has("anthropic_version")
        || tool.is_some_and(|tool| tool.has("input_schema"))
}

fn conversation_of(entries: Vec<JsonFields<'_>>, form: TranscriptForm) -> Conversation {
    let mut read = Conversation::new(form);
    read.messages.reserve(entries.len());
    for entry in entries {
        match form {
            TranscriptForm::Messages => read.messages.extend(messages::from_fields(entry)),
            _ => read.messages.push(chat::from_fields(entry)),
        }
    }
    read
}

fn responses_input(fields: &JsonFields<'_>, input: &RawValue) -> Option<Conversation> {
    let mut read = Conversation::new(TranscriptForm::Responses);
    let instructions = fields.string("instructions");
    read.messages
        .extend(instructions.map(responses::instructions));
    match json::list(input) {
        Some(entries) => read.messages.extend(responses::gather(entries)),
        None => read
            .messages
            .push(trimtab_model::Message::user(string(input)?)),
    }
    read.tools = tools(fields);
    Some(read)
}

fn tools(fields: &JsonFields<'_>) -> Vec<RawJson> {
    let list = fields.list("tools").unwrap_or_default();
    list.into_iter().map(owned).collect()
}
