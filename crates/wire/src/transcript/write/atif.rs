//! Writes steps of an ATIF trajectory.
//!
//! Validators of this format reject unknown fields and gaps in the numbers of steps.

use trimtab_model::{Call, Message, Output, Part, Role};

use super::form_writer::{CallNames, FormWriter, NewMessage, with_outputs};
use super::patch::{JsonPatch, with_copied};
use crate::json::{self, JsonFields, ObjectWriter, array, quoted};
use crate::transcript::private_marks;

/// The fields that a message determines.
const OWN_FIELDS: [&str; 7] = [
    "step_id",
    "source",
    "message",
    "reasoning_content",
    "tool_calls",
    "observation",
    "extra",
];
/// Fields of a step that the format allows for the agent only.
const AGENT_FIELDS: [&str; 4] = [
    "model_name",
    "reasoning_effort",
    "metrics",
    "llm_call_count",
];

/// Writes steps.
pub(super) struct AtifWriter;

impl FormWriter for AtifWriter {
    fn show(&self, unit: &str, outputs: &[&Output]) -> Option<String> {
        let fields = serde_json::from_str::<JsonFields<'_>>(unit).ok()?;
        let results = fields.fields("observation")?.list("results")?;
        let mut patch = JsonPatch::new(unit);
        for result in &results {
            let result = json::fields(result)?;
            let id = result.string("source_call_id");
            let is_shown = |output: &&&Output| match &id {
                Some(id) => output.call_id == *id,
                // The call id is optional in this format. A single result can only belong to the
                // single output.
                None => results.len() == 1,
            };
            if let Some(shown) = outputs.iter().find(is_shown) {
                patch.replace(result.get("content")?, &quoted(&shown.text()));
            }
        }
        Some(patch.end())
    }

    fn write(&mut self, run: &[NewMessage<'_>], _: &CallNames<'_>) -> Vec<String> {
        let write = |(new, outputs): (&NewMessage<'_>, Vec<&Output>)| match new.message.role {
            Role::Assistant => step(new, "agent", &outputs),
            Role::System => step(new, "system", &[]),
            Role::User | Role::Tool => step(new, "user", &[]),
        };
        with_outputs(run).map(write).collect()
    }

    fn joins_outputs(&self) -> bool {
        true
    }
}

fn step(new: &NewMessage<'_>, source: &str, outputs: &[&Output]) -> String {
    let like = serde_json::from_str::<JsonFields<'_>>(new.like()).unwrap_or_default();
    // A new message is modelled on a neighbour. It takes over the neighbour's time, but not its
    // measurements.
    let same = new.is_old() && like.text("source").is_some_and(|own| own == source);
    let kept = |name: &str| {
        let is_allowed = source == "agent" || !AGENT_FIELDS.contains(&name);
        same && is_allowed && !OWN_FIELDS.contains(&name)
    };
    let message = new.message;
    let mut step = ObjectWriter::new()
        // `renumbered` sets the numbers when all steps are known.
        .raw("step_id", "0")
        .maybe(
            "timestamp",
            like.get("timestamp")
                .map(|raw| raw.get().to_owned())
                .filter(|_| !same),
        )
        .text("source", source)
        .text("message", &spoken(message));
    if source == "agent" {
        let thought = reasoning(message);
        step = step
            .maybe("reasoning_content", thought.map(|thought| quoted(&thought)))
            .maybe("tool_calls", some_list(message.calls().map(call)))
            .maybe("observation", observation(outputs));
    }
    let mark = private_marks::mark(message, new.behind).filter(|_| source == "user");
    let extra = mark.map(|mark| ObjectWriter::new().raw(private_marks::FIELD, &mark).end());
    let old_extra = || Some(like.get("extra").filter(|_| same)?.get().to_owned());
    let extra = extra.or_else(old_extra);
    // Fields that a message determines are written anew; all others are copied from the old step.
    with_copied(step.maybe("extra", extra), &like, kept).end()
}

/// The text of a message without its reasoning.
fn spoken(message: &Message) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(Part::as_text).collect();
    texts.join("\n")
}

fn reasoning(message: &Message) -> Option<String> {
    let thoughts = message.parts.iter().filter_map(|part| match part {
        Part::Reasoning(thought) => Some(thought.text.as_str()),
        _ => None,
    });
    let thoughts: Vec<&str> = thoughts.collect();
    (!thoughts.is_empty()).then(|| thoughts.join("\n"))
}

fn call(call: &Call) -> String {
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&call.arguments).is_ok();
    let arguments = if is_json {
        call.arguments.clone()
    } else {
        quoted(&call.arguments)
    };
    ObjectWriter::new()
        .text("tool_call_id", &call.id)
        .text("function_name", &call.name)
        .raw("arguments", &arguments)
        .end()
}

fn observation(outputs: &[&Output]) -> Option<String> {
    let result = |output: &&Output| {
        ObjectWriter::new()
            .text("source_call_id", &output.call_id)
            .text("content", &output.text())
            .end()
    };
    let results = some_list(outputs.iter().map(result))?;
    Some(ObjectWriter::new().raw("results", &results).end())
}

fn some_list(elements: impl Iterator<Item = String>) -> Option<String> {
    let elements: Vec<String> = elements.collect();
    (!elements.is_empty()).then(|| array(elements))
}

/// The trajectory with its steps numbered from 1, without gaps.
pub(super) fn renumbered(text: &str) -> Option<String> {
    let fields = serde_json::from_str::<JsonFields<'_>>(text).ok()?;
    let mut patch = JsonPatch::new(text);
    for (at, step) in fields.list("steps")?.into_iter().enumerate() {
        if let Some(number) = json::fields(step)?.get("step_id") {
            patch.replace(number, &(at + 1).to_string());
        }
    }
    Some(patch.end())
}
