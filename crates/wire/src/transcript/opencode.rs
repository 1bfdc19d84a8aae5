//! opencode: a session as written by `opencode export`, one document.
//!
//! A call and its output are one part there, and a message may contain several answers, each
//! introduced by a `step-start`.

use serde_json::value::RawValue;
use trimtab_model::{Call, MediaKind, Message, MessageKind, Output, Part, Role, Usage};

use super::{Conversation, TranscriptForm};
use crate::json::{self, JsonFields};
use crate::raw_part;

/// Internal notes of opencode in a message, which are never sent.
const OWN: [&str; 7] = [
    "step-finish",
    "snapshot",
    "patch",
    "agent",
    "retry",
    "subtask",
    "compaction",
];

/// Reads a session.
pub(super) fn read(fields: &JsonFields<'_>, messages: &[JsonFields<'_>]) -> Option<Conversation> {
    let mut read = Conversation::new(TranscriptForm::OpenCode);
    read.id = fields.fields("info")?.string("id");
    for entry in messages {
        let info = entry.fields("info")?;
        let model = info.string("modelID");
        read.model = model.or(read.model.take());
        let parts = entry.list("parts").unwrap_or_default();
        if info.text("role").is_some_and(|role| role == "assistant") {
            // A summary replaces everything before it.
            if info.is_true("summary") {
                read.compactions.push(read.messages.len());
            }
            answer(&info, &parts, &mut read.messages);
        } else {
            let parts = parts.into_iter().filter_map(said).collect();
            read.messages.push(Message::new(Role::User, parts));
        }
    }
    Some(read)
}

fn answer(info: &JsonFields<'_>, parts: &[&RawValue], messages: &mut Vec<Message>) {
    let first = messages.len();
    let mut outputs = Vec::new();
    let mut current = Message::new(Role::Assistant, Vec::new());
    for raw in parts {
        let fields = json::fields(raw).unwrap_or_default();
        match fields.text("type").unwrap_or_default().as_ref() {
            // Outputs of a step belong before the next answer, so the step is closed here.
            "step-start" => {
                let done =
                    std::mem::replace(&mut current, Message::new(Role::Assistant, Vec::new()));
                close(done, &mut outputs, messages);
            }
            "tool" => {
                current.parts.push(Part::Call(call(&fields)));
                outputs.extend(output(&fields));
            }
            _ => current.parts.extend(said(raw)),
        }
    }
    close(current, &mut outputs, messages);
    let added = messages.iter_mut().skip(first);
    if let Some(last) = added.rev().find(|message| message.role == Role::Assistant) {
        // The figures of a message are those of its last answer.
        last.meta.usage = info.fields("tokens").map(|tokens| usage(&tokens));
        last.meta.stop_reason = info.string("finish");
        last.meta.kind = info.is_true("summary").then_some(MessageKind::Summary);
    }
}

/// Ends one answer: its message, then its outputs.
fn close(message: Message, outputs: &mut Vec<Part>, messages: &mut Vec<Message>) {
    if !message.parts.is_empty() {
        messages.push(message);
    }
    if !outputs.is_empty() {
        messages.push(Message::new(Role::Tool, std::mem::take(outputs)));
    }
}

/// A part that is not a call; none if it was never sent.
fn said(raw: &RawValue) -> Option<Part> {
    let fields = json::fields(raw)?;
    let type_name = fields.text("type")?;
    let mime = || fields.text("mime");
    let is_image = || mime().is_some_and(|mime| mime.starts_with("image/"));
    match type_name.as_ref() {
        "text" => fields.string("text").map(Part::text),
        "reasoning" => fields.string("text").map(Part::reasoning),
        own if OWN.contains(&own) => None,
        "file" if is_image() => Some(raw_part::media(MediaKind::Image, raw)),
        other => Some(raw_part::opaque(other, raw)),
    }
}

fn call(fields: &JsonFields<'_>) -> Call {
    let text = |name: &str| fields.string(name).unwrap_or_default();
    let state = fields.fields("state").unwrap_or_default();
    let arguments = state.get("input").map_or("{}", RawValue::get);
    Call::new(text("callID"), text("tool"), arguments)
}

/// The output of a call; none while it runs.
fn output(fields: &JsonFields<'_>) -> Option<Part> {
    let state = fields.fields("state")?;
    let failed = state.text("status")? == "error";
    let name = if failed { "error" } else { "output" };
    let text = state.string(name)?;
    let mut output = Output::new(fields.string("callID")?, text);
    output.tool = fields.string("tool");
    output.is_error = failed;
    Some(Part::Output(output))
}

/// Cached tokens are separate from input, and reasoning is separate from output.
fn usage(tokens: &JsonFields<'_>) -> Usage {
    let cache = tokens.fields("cache").unwrap_or_default();
    let count = |fields: &JsonFields<'_>, name: &str| fields.number(name).unwrap_or(0);
    Usage {
        input: count(tokens, "input"),
        cache_creation: count(&cache, "write"),
        cache_read: count(&cache, "read"),
        output: count(tokens, "output").saturating_add(count(tokens, "reasoning")),
        ..Usage::default()
    }
}
