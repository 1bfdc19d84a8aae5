//! Writes lines of a Copilot CLI session.

use std::collections::HashSet;

use trimtab_model::{Call, Message, Output, Part, RawJson, Role};

use super::form_writer::{CallNames, FormWriter, NewMessage, name, output_of};
use super::patch::{JsonPatch, copied};
use crate::json::{JsonFields, ObjectWriter, array, quoted};
use crate::transcript::private_marks;

/// The rewritten fields of an answer.
const ANSWER: [&str; 4] = [
    "content",
    "reasoningText",
    "reasoningOpaque",
    "toolRequests",
];

/// The rewritten fields of system and user messages.
const SAID: [&str; 4] = ["content", "transformedContent", "role", "parentToolCallId"];
/// The rewritten fields of the end of a call.
const COMPLETE: [&str; 5] = [
    "toolCallId",
    "success",
    "result",
    "error",
    "parentToolCallId",
];

/// Writes lines of a session.
#[derive(Default)]
pub(super) struct CopilotWriter {
    /// The ids of lines that were reused.
    used: HashSet<String>,
}

impl FormWriter for CopilotWriter {
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String> {
        let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
        let data = fields.fields("data")?;
        let shown = output_of(outputs, &data, "toolCallId")?;
        let (result, error) = (data.fields("result"), data.fields("error"));
        let shown_in = |fields: &JsonFields<'_>, name: &str| fields.text(name).is_some();
        // A failed call has its text in `error` instead.
        let result = result.filter(|result| shown_in(result, "content"));
        let text = quoted(&shown.text());
        let mut patch = JsonPatch::new(unit);
        if let Some(result) = result {
            for name in ["content", "detailedContent"] {
                result
                    .get(name)
                    .iter()
                    .for_each(|raw| patch.replace(raw, &text));
            }
        } else {
            patch.replace(error?.get("message")?, &text);
        }
        Some(patch.end())
    }

    fn write(&mut self, run: &[NewMessage<'_>], _: &CallNames<'_>) -> Vec<String> {
        run.iter().flat_map(|new| self.lines(new)).collect()
    }

    fn links(&self) -> Option<(&'static str, &'static str)> {
        Some(("id", "parentId"))
    }
}

impl CopilotWriter {
    fn lines(&mut self, new: &NewMessage<'_>) -> Vec<String> {
        let fields = serde_json::from_str::<JsonFields<'_>>(new.like()).unwrap_or_default();
        let data = fields.fields("data").unwrap_or_default();
        let agent = data.get("parentToolCallId").map(|raw| raw.get().to_owned());
        let datas: Vec<(&str, ObjectWriter)> = match new.message.role {
            Role::Assistant => vec![("assistant.message", answer(new, &data))],
            Role::Tool => {
                let outputs = new.message.outputs();
                outputs
                    .map(|output| ("tool.execution_complete", complete(output, &data)))
                    .collect()
            }
            Role::System => vec![("system.message", said(new, &data).text("role", "system"))],
            Role::User => vec![(
                "user.message",
                said(new, &data).maybe("messageId", new_id(new)),
            )],
        };
        let lines = datas.into_iter().enumerate();
        let lines = lines.map(|(at, (type_name, object))| {
            // An answer that was in the file names its agent itself.
            let object = if type_name == "assistant.message" && new.is_old() {
                object
            } else {
                object.maybe("parentToolCallId", agent.clone())
            };
            self.line(new, &fields, type_name, &object.end(), at)
        });
        lines.collect()
    }

    fn line(
        &mut self,
        new: &NewMessage<'_>,
        like: &JsonFields<'_>,
        type_name: &str,
        data: &str,
        at: usize,
    ) -> String {
        let own = like.string("id");
        let own = own.filter(|id| new.is_old() && self.used.insert(id.clone()));
        let made = || name(&format!("{at}{}", new.like()), new.number, new.message);
        let mark =
            private_marks::mark(new.message, new.behind).filter(|_| new.message.role == Role::User);
        ObjectWriter::new()
            .text("type", type_name)
            .raw("data", data)
            .text("id", &own.unwrap_or_else(made))
            .maybe(
                "timestamp",
                like.get("timestamp").map(|raw| raw.get().to_owned()),
            )
            .raw(
                "parentId",
                like.get("parentId").map_or("null", |raw| raw.get()),
            )
            .maybe(private_marks::FIELD, mark)
            .end()
    }
}

/// A system or user message, with its other fields.
fn said(new: &NewMessage<'_>, data: &JsonFields<'_>) -> ObjectWriter {
    let own = if new.is_old() && data.has("content") {
        data.clone()
    } else {
        JsonFields::default()
    };
    let is_written = |name: &str| SAID.contains(&name);
    let text = new.message.text();
    // Both fields get the new text: one is shown to the user, the other one is sent.
    let sent = own.has("transformedContent").then(|| quoted(&text));
    copied(&own, |name| !is_written(name))
        .text("content", &text)
        .maybe("transformedContent", sent)
}

/// The id of our own message; an original message has one.
fn new_id(new: &NewMessage<'_>) -> Option<String> {
    let made = || quoted(&name(new.like(), new.number, new.message));
    (!new.is_old()).then(made)
}

fn answer(new: &NewMessage<'_>, data: &JsonFields<'_>) -> ObjectWriter {
    let message: &Message = new.message;
    let thought = message.parts.iter().find_map(|part| match part {
        Part::Reasoning(thought) => Some(thought),
        _ => None,
    });
    let text = thought
        .map(|thought| &thought.text)
        .filter(|text| !text.is_empty());
    let seal = thought.and_then(|thought| thought.seal.as_deref());
    let like = if new.is_old() {
        data.clone()
    } else {
        JsonFields::default()
    };
    copied(&like, |name| !ANSWER.contains(&name))
        .text("content", &message.text())
        .maybe("reasoningText", text.map(|text| quoted(text)))
        .maybe("reasoningOpaque", seal.map(quoted))
        .raw("toolRequests", &array(message.calls().map(request)))
}

fn request(call: &Call) -> String {
    let arguments = &call.arguments;
    let is_object = arguments.starts_with('{') && arguments.ends_with('}');
    let arguments = if is_object && RawJson::parse(arguments).is_ok() {
        arguments.clone()
    } else {
        quoted(arguments)
    };
    ObjectWriter::new()
        .text("toolCallId", &call.id)
        .text("name", &call.name)
        .raw("arguments", &arguments)
        .text("type", "function")
        .end()
}

/// The end of a call, with the other fields of the line if it belongs to the same call.
fn complete(output: &Output, data: &JsonFields<'_>) -> ObjectWriter {
    let result = ObjectWriter::new().text("content", &output.text()).end();
    // The line of another call must not lend its fields to this one.
    let same = data
        .text("toolCallId")
        .is_some_and(|id| id == output.call_id.as_str());
    let is_kept = |name: &str| !COMPLETE.contains(&name);
    copied(data, |name| same && data.has("success") && is_kept(name))
        .text("toolCallId", &output.call_id)
        .raw("success", if output.is_error { "false" } else { "true" })
        .raw("result", &result)
}
