//! ATIF: a trajectory in the interchange format of agent benchmarks, one document.
//!
//! A step of the agent has its answer, its calls and their outputs together.

use std::collections::HashMap;

use serde_json::value::RawValue;
use trimtab_model::{Call, MediaKind, Message, Output, Part, Role, Usage};

use super::private_marks;
use super::thread::{ReadConversation, thought};
use super::{Conversation, TranscriptForm};
use crate::json::{self, JsonFields, JsonType, string};
use crate::raw_part;

/// True for the fields of a trajectory.
pub(super) fn is_trajectory(fields: &JsonFields<'_>) -> bool {
    let version = fields.text("schema_version").unwrap_or_default();
    version.starts_with("ATIF") && fields.type_of("steps") == Some(JsonType::List)
}

/// Reads a trajectory, and records which step gave which message.
pub(super) fn read(fields: &JsonFields<'_>) -> Option<ReadConversation> {
    let mut read = Conversation::new(TranscriptForm::Atif);
    read.id = fields.string("session_id");
    let agent = fields.fields("agent").unwrap_or_default();
    read.model = agent.string("model_name");
    ReadConversation::of_units(read, fields.list("steps")?, |step, read| {
        read_step(&json::fields(step)?, &mut read.messages);
        Some(())
    })
}

fn read_step(step: &JsonFields<'_>, messages: &mut Vec<Message>) {
    let said: Vec<Part> = step.get("message").map(content).unwrap_or_default();
    match step.text("source").unwrap_or_default().as_ref() {
        "agent" => {
            let thought = thought(step.string("reasoning_content"));
            let calls: Vec<Call> = step.list("tool_calls").map(calls).unwrap_or_default();
            // The calls are needed again below, to find the call of each result.
            let made = calls.iter().cloned().map(Part::Call);
            let parts = thought.into_iter().chain(said).chain(made).collect();
            let mut answer = Message::new(Role::Assistant, parts);
            answer.meta.usage = step.fields("metrics").map(|metrics| usage(&metrics));
            // A step may only observe something.
            if !answer.parts.is_empty() {
                messages.push(answer);
            }
            messages.extend(observed(step, &calls));
        }
        source => {
            let role = if source == "system" {
                Role::System
            } else {
                Role::User
            };
            let mut message = Message::new(role, said);
            let extra = step.fields("extra").unwrap_or_default();
            private_marks::apply(&extra, [&mut message]);
            messages.push(message);
            messages.extend(observed(step, &[]));
        }
    }
}

/// The parts of a text, or of a list of parts.
fn content(raw: &RawValue) -> Vec<Part> {
    if let Some(text) = string(raw) {
        let text = Some(text).filter(|text| !text.is_empty());
        return text.map(Part::text).into_iter().collect();
    }
    let part = |raw: &RawValue| {
        let fields = json::fields(raw).unwrap_or_default();
        match fields.text("type").unwrap_or_default().as_ref() {
            "text" => Part::text(fields.string("text").unwrap_or_default()),
            "image" => raw_part::media(MediaKind::Image, raw),
            other => raw_part::opaque(other, raw),
        }
    };
    let parts = json::list(raw).unwrap_or_default().into_iter();
    parts.map(part).collect()
}

fn calls(list: Vec<&RawValue>) -> Vec<Call> {
    let call = |raw: &RawValue| {
        let fields = json::fields(raw)?;
        let text = |name: &str| fields.string(name).unwrap_or_default();
        let arguments = fields.get("arguments").map_or("{}", RawValue::get);
        Some(Call::new(
            text("tool_call_id"),
            text("function_name"),
            arguments,
        ))
    };
    list.into_iter().filter_map(call).collect()
}

/// The messages of an observation: the outputs of the calls, and what belongs to no call.
fn observed(step: &JsonFields<'_>, calls: &[Call]) -> Vec<Message> {
    let observation = step.fields("observation").unwrap_or_default();
    let results = observation.list("results").unwrap_or_default();
    // Of calls with the same id the first one counts. It is inserted last, so it stays.
    let by_id: HashMap<&str, &Call> = calls.iter().rev().map(|call| (&*call.id, call)).collect();
    let only_call = calls
        .first()
        .filter(|_| calls.len() == 1 && results.len() == 1);
    let (mut outputs, mut others) = (Vec::new(), Vec::new());
    for result in results.iter().filter_map(|raw| json::fields(raw)) {
        let parts = result.get("content").map(content).unwrap_or_default();
        match call_of(&result, &by_id, only_call) {
            Some(call) => {
                let mut output = Output::new(&call.id, "");
                output.tool = Some(call.name.clone());
                if !parts.is_empty() {
                    output.content = parts;
                }
                outputs.push(Part::Output(output));
            }
            None if parts.is_empty() => {}
            // An observation of no call comes from the environment, so the model saw it like a user
            // message.
            None => others.push(Message::new(Role::User, parts)),
        }
    }
    let outputs = (!outputs.is_empty()).then(|| Message::new(Role::Tool, outputs));
    outputs.into_iter().chain(others).collect()
}

/// The call of a result: the one that it names, or the only one if it names none.
fn call_of<'c>(
    result: &JsonFields<'_>,
    by_id: &HashMap<&str, &'c Call>,
    only_call: Option<&'c Call>,
) -> Option<&'c Call> {
    match result.text("source_call_id") {
        Some(id) => by_id.get(id.as_ref()).copied(),
        None => only_call,
    }
}

/// Cached tokens are part of the prompt.
fn usage(metrics: &JsonFields<'_>) -> Usage {
    let count = |name: &str| metrics.number(name).unwrap_or(0);
    Usage {
        input: count("prompt_tokens").saturating_sub(count("cached_tokens")),
        cache_read: count("cached_tokens"),
        output: count("completion_tokens"),
        ..Usage::default()
    }
}
