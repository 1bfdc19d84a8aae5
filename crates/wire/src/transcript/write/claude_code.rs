//! Writes lines of a Claude Code session.

use std::collections::HashSet;

use serde_json::value::RawValue;
use trimtab_model::{Message, MessageKind, Output, Part, Role};

use super::form_writer::{FormWriter, NewMessage, name, output_of};
use super::patch::{JsonPatch, copied};
use crate::json::{self, JsonFields, array, quoted};
use crate::messages::write_part;
use crate::transcript::private_marks;

/// The fields that describe the session, on every line.
const SESSION: [&str; 10] = [
    "parentUuid",
    "isSidechain",
    "userType",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "agentId",
    "slug",
    "timestamp",
];
/// The fields that are rewritten, or that contain a copy of a rewritten one.
const WRITTEN: [&str; 7] = [
    "type",
    "message",
    "uuid",
    "toolUseResult",
    "isCompactSummary",
    "isMeta",
    private_marks::FIELD,
];

/// Writes lines of a session.
#[derive(Default)]
pub(super) struct ClaudeCodeWriter {
    /// The ids of lines that were reused.
    used: HashSet<String>,
}

impl FormWriter for ClaudeCodeWriter {
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String> {
        let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
        let message = fields.fields("message")?;
        let mut patch = JsonPatch::new(unit);
        for raw in message.list("content").unwrap_or_default() {
            show_part(raw, outputs, &mut patch);
        }
        if !patch.is_empty()
            // The client keeps a second copy of the output for its own display, which would still
            // have all of it.
            && let (Some(copy), [first, ..]) = (fields.get("toolUseResult"), outputs)
        {
            patch.replace(copy, &quoted(&first.text()));
        }
        Some(patch.end())
    }

    fn write(&mut self, new: &NewMessage<'_>) -> Vec<String> {
        vec![self.line(new)]
    }

    fn has_links(&self) -> bool {
        true
    }
}

/// Replaces the content of an output, if it is among `outputs`.
fn show_part(raw: &RawValue, outputs: &[&Output], patch: &mut JsonPatch<'_>) {
    let Some(part) = json::fields(raw) else {
        return;
    };
    let Some(shown) = output_of(outputs, &part, "tool_use_id") else {
        return;
    };
    let written = write_part(&Part::Output(Output::clone(shown)));
    let content = json::pick(&written, ["content"]).and_then(|[content]| content);
    let content = content.unwrap_or("\"\"");
    match part.get("content") {
        Some(value) => patch.replace(value, content),
        None => patch.replace(raw, &written),
    }
}

impl ClaudeCodeWriter {
    fn line(&mut self, new: &NewMessage<'_>) -> String {
        let like = new.like();
        let fields = serde_json::from_str::<JsonFields<'_>>(like).unwrap_or_default();
        let object = if new.is_old() {
            copied(&fields, |name| !WRITTEN.contains(&name))
        } else {
            copied(&fields, |name| SESSION.contains(&name))
        };
        let object = if fields.has("parentUuid") {
            object
        } else {
            object.raw("parentUuid", "null")
        };
        let own = fields.string("uuid");
        // A message that becomes two lines may use its old id only once.
        let own = own.filter(|uuid| new.is_old() && self.used.insert(uuid.clone()));
        let uuid = own.unwrap_or_else(|| name(like, new.number, new.message));
        let kind = new.message.meta.kind;
        let role = match new.message.role {
            Role::Assistant => "assistant",
            // The form has no lines of other roles that are sent; a mark keeps the real role.
            Role::System | Role::User | Role::Tool => "user",
        };
        let meta = matches!(kind, Some(MessageKind::Note | MessageKind::Repair)) && role == "user";
        object
            .text("type", role)
            .raw("message", &message(new, &fields, role))
            .flag("isCompactSummary", kind == Some(MessageKind::Summary))
            .flag("isMeta", meta)
            .text("uuid", &uuid)
            .maybe(
                private_marks::FIELD,
                private_marks::mark(new.message, new.behind),
            )
            .end()
    }
}

fn message(new: &NewMessage<'_>, line: &JsonFields<'_>, role: &str) -> String {
    let given = line.fields("message").filter(|_| new.is_old());
    let given = given.unwrap_or_default();
    copied(&given, |name| !matches!(name, "role" | "content"))
        .text("role", role)
        .raw("content", &content(new.message))
        .end()
}

fn content(message: &Message) -> String {
    match message.parts.as_slice() {
        [Part::Text(text)] if text.extra.is_empty() && !message.meta.content_list => {
            quoted(&text.text)
        }
        parts => array(parts.iter().map(write_part)),
    }
}
