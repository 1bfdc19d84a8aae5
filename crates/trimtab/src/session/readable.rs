//! Writes messages as text that a model can page through and search.

use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_model::marks::{is_mark, sent_name};
use trimtab_model::{ExtraFields, Media, MediaKind, Message, Part, RawJson};
use trimtab_wire::json::pick;

/// Fields that say nothing about a message.
const SILENT_FIELDS: [&str; 1] = ["cache_control"];
/// Values that say nothing. Providers send many fields without content.
const SILENT_VALUES: [&str; 4] = ["null", "[]", "{}", "\"\""];

/// The messages as text, each part after its speaker. Parts of unknown types are shown as JSON.
pub(super) fn readable(messages: &[&Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        let role = message.role.as_str();
        for part in &message.parts {
            write_part(&mut text, role, part);
        }
        write_fields(&mut text, role, &message.meta.extra);
    }
    text
}

fn write_part(text: &mut String, role: &str, part: &Part) {
    // Writing into a String cannot fail.
    let _ = match part {
        Part::Text(said) => {
            let written = writeln!(text, "[{role}] {}", said.text);
            write_fields(text, role, &said.extra);
            written
        }
        Part::Reasoning(thought) if thought.text.is_empty() => Ok(()),
        Part::Reasoning(thought) => writeln!(text, "[thought] {}", thought.text),
        Part::Call(call) => writeln!(text, "[call {}] {}", call.name, call.arguments),
        Part::Output(output) => {
            let name = output.tool.as_deref().unwrap_or(&output.call_id);
            let name = format!("output {name}");
            let written = writeln!(text, "[{name}] {}", output.text());
            // The text has only a tag for each of them.
            let others = output.content.iter();
            for other in others.filter(|part| part.as_text().is_none()) {
                write_part(text, &name, other);
            }
            written
        }
        Part::Media(media) if is_text(media) => writeln!(text, "[{role}] {}", media.raw.as_str()),
        Part::Media(media) => {
            let (kind, bytes) = (media.kind.name(), media.raw.as_str().len());
            writeln!(text, "[{role}] ({kind}, {bytes} bytes)")
        }
        Part::Opaque(other) => writeln!(text, "[{role}] {}", other.raw.as_str()),
    };
}

/// True for a document whose JSON a model can read. Encoded bytes would only fill its window.
fn is_text(media: &Media) -> bool {
    let source = pick(media.raw.as_str(), ["source"]).and_then(|[source]| source);
    let kind = source.and_then(|source| pick(source, ["type"]));
    media.kind == MediaKind::Document && matches!(kind, Some([Some(kind)]) if kind != "\"base64\"")
}

/// Writes the client's unknown fields, such as citations, as one line of JSON.
fn write_fields(text: &mut String, role: &str, extra: &ExtraFields) {
    let is_silent = |name: &str| is_mark(name) || SILENT_FIELDS.contains(&name);
    let is_empty = |value: &RawJson| SILENT_VALUES.contains(&value.as_str());
    let said = extra
        .iter()
        .filter(|(name, value)| !is_silent(name) && !is_empty(value));
    let said: Vec<String> = said
        .map(|(name, value)| {
            format!(
                "{}:{}",
                RawJson::of(&sent_name(name)).as_str(),
                value.as_str()
            )
        })
        .collect();
    if !said.is_empty() {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "[{role}] {{{}}}", said.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::{Opaque, Output, Role, Text};

    fn raw(json: &str) -> RawJson {
        RawJson::parse(json).unwrap()
    }

    #[test]
    fn parts_that_are_not_text_are_readable() {
        let result = raw(r#"{"type":"mcp_tool_result","content":"row 42"}"#);
        let document =
            raw(r#"{"type":"document","source":{"type":"text","data":"base64 page 43"}}"#);
        let image = raw(r#"{"type":"image","source":{"type":"base64","data":"AAAA"}}"#);
        let media = |kind, raw| Part::Media(Media { kind, raw });
        let mut said = Text::default();
        said.text.push_str("see there");
        said.extra.push(("citations".into(), raw("[44]")));
        said.extra.push(("annotations".into(), raw("[]")));
        said.extra
            .push(("cache_control".into(), raw(r#"{"type":"ephemeral"}"#)));
        let opaque = Opaque {
            type_name: "mcp_tool_result".into(),
            raw: result.clone(),
        };
        let output = Output::new("c1", "").with_content(vec![
            Part::text("two files"),
            media(MediaKind::Document, document.clone()),
            media(MediaKind::Image, image),
        ]);
        let answer = Message::new(
            Role::Assistant,
            vec![Part::Opaque(opaque), Part::Text(said)],
        );
        let messages = [answer, Message::new(Role::Tool, vec![Part::Output(output)])];
        let messages = messages.map(Arc::new);
        let text = readable(&messages.iter().collect::<Vec<_>>());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                format!("[assistant] {}", result.as_str()).as_str(),
                "[assistant] see there",
                "[assistant] {\"citations\":[44]}",
                "[output c1] two files[document][image]",
                format!("[output c1] {}", document.as_str()).as_str(),
                "[output c1] (image, 57 bytes)",
            ]
        );
    }
}
