//! Parses the events of Chat Completions.

use serde_json::value::RawValue;
use trimtab_model::{Call, Usage};

use super::event::{StreamEvent, TextDelta};
use super::watcher::{StreamState, error, non_null, number, text};
use crate::json::{JsonFields, elements, pick};

/// The maximum number of unknown fields per call; providers send one or two.
const MOST_UNKNOWN: usize = 64;

/// Parses one event; none if it is not an object.
pub(super) fn event(
    state: &mut StreamState,
    data: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let [choices, usage, failure] = pick(data, ["choices", "usage", "error"])?;
    // An error that is `null` is none.
    if let Some(failure) = non_null(failure) {
        each(StreamEvent::Error(error(failure, data)));
        return Some(());
    }
    state.start(each);
    for choice in choices.into_iter().flat_map(elements) {
        choose(state, choice, each);
    }
    if let Some(usage) = non_null(usage).and_then(|json| serde_json::from_str(json).ok()) {
        state.usage = Usage::from_chat(&usage);
        each(StreamEvent::Usage(state.usage));
    }
    Some(())
}

fn choose(
    state: &mut StreamState,
    choice: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let [index, delta, stop] = pick(choice, ["index", "delta", "finish_reason"])?;
    // Only the first of several answers is used.
    if number(index).unwrap_or(0) > 0 {
        return None;
    }
    let names = ["content", "reasoning_content", "reasoning", "tool_calls"];
    if let Some([content, thought, other, calls]) = delta.and_then(|json| pick(json, names)) {
        let thought = non_null(thought)
            .or(non_null(other))
            .and_then(TextDelta::new);
        say(
            thought.filter(|delta| !delta.is_empty()),
            StreamEvent::Reasoning,
            each,
        );
        let content = content.and_then(TextDelta::new);
        say(
            content.filter(|delta| !delta.is_empty()),
            StreamEvent::Text,
            each,
        );
        for call in calls.into_iter().flat_map(elements) {
            add_call(state, call);
        }
    }
    if let Some(stop) = text(stop) {
        state.end_calls(each);
        each(StreamEvent::Stop(stop));
    }
    Some(())
}

fn say<'a>(
    delta: Option<TextDelta<'a>>,
    event: impl FnOnce(TextDelta<'a>) -> StreamEvent<'a>,
    each: &mut impl FnMut(StreamEvent<'_>),
) {
    if let Some(delta) = delta {
        each(event(delta));
    }
}

/// Adds a piece of a call. Unknown fields are kept: some providers put signed reasoning in one, and
/// want it back.
fn add_call(state: &mut StreamState, json: &str) -> Option<()> {
    let mut fields: JsonFields<'_> = serde_json::from_str(json).ok()?;
    let index = number(fields.take("index").map(RawValue::get)).unwrap_or(0);
    let id = fields.take_string("id").filter(|id| !id.is_empty());
    let function = fields.take("function").map(RawValue::get);
    let function = function.and_then(|json| pick(json, ["name", "arguments"]));
    let [name, arguments] = function.unwrap_or_default();
    let name = text(name).filter(|name| !name.is_empty());
    if begins_another(state.call(index)?, id.as_deref(), name.as_deref()) {
        state.begin_call(index);
    }
    let call = state.call(index)?;
    call.id = id.unwrap_or_else(|| std::mem::take(&mut call.id));
    call.name = name.unwrap_or_else(|| std::mem::take(&mut call.name));
    fields.take_if("type", |kind| (kind.get() == "\"function\"").then_some(()));
    keep_unknown(call, fields);
    if let Some(more) = text(arguments) {
        state.add_arguments(index, &more);
    }
    Some(())
}

/// True if a piece starts a new call: some servers give all calls the same index.
fn begins_another(open: &Call, id: Option<&str>, name: Option<&str>) -> bool {
    name.is_some() && !open.id.is_empty() && id.is_some_and(|id| id != open.id)
}

fn keep_unknown(call: &mut Call, fields: JsonFields<'_>) {
    for (name, value) in fields.into_extra() {
        if value.as_str() == "null" {
            continue;
        }
        // Pieces may repeat a field; the newest value counts.
        call.extra.retain(|(known, _)| *known != name);
        if call.extra.len() < MOST_UNKNOWN {
            call.extra.push((name, value));
        }
    }
}
