//! Writes new JSON for our own messages.

use trimtab_model::{Dialect, Message, MessageMetadata, Output, Part, RawJson, Role};

use super::change::CacheMarker;
use crate::json::pick;
use crate::{chat, messages, responses, spelling_marks};

/// `message` without our metadata.
pub(super) fn sendable(message: &Message, dialect: Dialect) -> Message {
    let meta = &message.meta;
    let mut sent = message.clone();
    sent.meta = MessageMetadata {
        // Chat Completions would send the kind.
        kind: meta.kind.filter(|_| dialect != Dialect::Chat),
        wire_role: meta.wire_role.clone(),
        content_list: meta.content_list,
        extra: meta.extra.clone(),
        ..MessageMetadata::default()
    };
    for part in &mut sent.parts {
        if let Part::Output(output) = part {
            output.stored = None;
            output.trimmed = false;
            // The other dialects have no such field.
            output.is_error &= dialect == Dialect::Messages;
        }
    }
    sent
}

/// The entries of consecutive messages.
pub(super) fn entries(messages: &[Message], dialect: Dialect) -> Vec<String> {
    let text = |raw: RawJson| raw.as_str().to_owned();
    match dialect {
        Dialect::Chat => messages
            .iter()
            .flat_map(chat::write_message)
            .map(text)
            .collect(),
        Dialect::Messages => {
            let written = messages::write_list(messages);
            written.into_iter().map(text).collect()
        }
        Dialect::Responses => {
            let written = responses::write_input(messages);
            written.into_iter().map(text).collect()
        }
    }
}

/// The parts of `message` as elements of a Messages content list.
pub(super) fn elements(message: &Message) -> Vec<String> {
    message.parts.iter().map(messages::write_part).collect()
}

/// The content field of `output`: a list if it was one, or if it carries a marker.
pub(super) fn output_content(
    output: &Output,
    dialect: Dialect,
    as_list: bool,
    marker: Option<CacheMarker>,
) -> Option<String> {
    let mut output = Output {
        // Unknown fields are outside the content, and the original ones stay in the body.
        extra: Vec::new(),
        ..output.clone()
    };
    if let Some(marker) = marker {
        set_marker(&mut output, marker);
    }
    if as_list {
        spelling_marks::set(&mut output.extra, spelling_marks::LIST, RawJson::of(&true));
    }
    let mut message = Message::new(Role::Tool, vec![Part::Output(output)]);
    message.meta.content_list = as_list;
    let [written] = entries(&[message], dialect).try_into().ok()?;
    let [content, output] = pick(&written, ["content", "output"])?;
    match dialect {
        Dialect::Chat => content.map(str::to_owned),
        Dialect::Responses => output.map(str::to_owned),
        Dialect::Messages => {
            let list = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(content?).ok()?;
            let [content] = pick(list.first()?.get(), ["content"])?;
            Some(content.unwrap_or("\"\"").to_owned())
        }
    }
}

/// Puts `marker` on the last text, unless the content already has one.
fn set_marker(output: &mut Output, marker: CacheMarker) {
    let is_marked = |part: &Part| match part {
        Part::Text(text) => text
            .extra
            .iter()
            .any(|(name, _)| name == marker.name.as_str()),
        Part::Media(media) => media.raw.as_str().contains(marker.name.as_str()),
        _ => false,
    };
    if output.content.iter().any(is_marked) {
        return;
    }
    // Providers reject markers on blank texts.
    let texts = output.content.iter_mut().rev();
    let last = texts.into_iter().find_map(|part| match part {
        Part::Text(text) if !text.text.trim().is_empty() => Some(text),
        _ => None,
    });
    if let Some(text) = last {
        let name = marker.name.as_str().to_owned();
        text.extra.push((name, marker.value));
    }
}
