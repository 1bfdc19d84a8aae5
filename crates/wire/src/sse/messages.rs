//! Parses the events of Messages.

use serde_json::Value;
use serde_json::value::RawValue;
use trimtab_model::{Part, Usage};

use super::event::{StreamEvent, TextDelta};
use super::watcher::{StreamState, error, non_null, number, text};
use crate::json::pick;
use crate::messages;

/// Parses one event; none if it is not an object.
pub(super) fn event(
    state: &mut StreamState,
    data: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let names = [
        "type",
        "delta",
        "index",
        "content_block",
        "message",
        "usage",
        "error",
    ];
    let [type_name, delta, index, part, message, usage, failure] = pick(data, names)?;
    let index = number(index).unwrap_or(0);
    match type_name.unwrap_or_default() {
        "\"content_block_delta\"" => add(state, index, delta?, each)?,
        "\"content_block_start\"" => begin_part(state, index, part?),
        "\"content_block_stop\"" => state.end_part(index, each),
        "\"message_start\"" => {
            state.start(each);
            let [usage] = pick(message?, ["usage"])?;
            report(state, usage, each);
        }
        "\"message_delta\"" => {
            report(state, usage, each);
            let stop = delta.and_then(|json| pick(json, ["stop_reason"]));
            if let Some(stop) = stop.and_then(|[stop]| text(stop)) {
                each(StreamEvent::Stop(stop));
            }
        }
        "\"message_stop\"" => state.end(each),
        "\"error\"" => each(StreamEvent::Error(error(failure.unwrap_or(data), data))),
        _ => {}
    }
    Some(())
}

fn add(
    state: &mut StreamState,
    index: u64,
    delta: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let names = ["text", "thinking", "partial_json", "signature"];
    // A delta has one of these fields; its `type` says the same and need not be compared.
    let [said, thought, json, seal] = pick(delta, names)?;
    if let Some(delta) = said.and_then(TextDelta::new) {
        each(StreamEvent::Text(delta));
    } else if let Some(delta) = thought.and_then(TextDelta::new) {
        state.add_thought(index, &delta.text(), "");
        each(StreamEvent::Reasoning(delta));
    } else if let Some(more) = text(json) {
        state.add_arguments(index, &more);
    } else if let Some(more) = text(seal) {
        state.add_thought(index, "", &more);
    }
    Some(())
}

fn begin_part(state: &mut StreamState, index: u64, part: &str) {
    let names = ["type", "id", "name", "input"];
    let Some([type_name, id, name, input]) = pick(part, names) else {
        return;
    };
    if type_name != Some("\"tool_use\"") {
        if let Some(Part::Reasoning(mut thought)) = read_part(part) {
            // The signature is announced empty and follows later.
            thought.seal = thought.seal.filter(|seal| !seal.is_empty());
            state.begin_thought(index, thought);
        }
        return;
    }
    if let Some(call) = state.call(index) {
        call.id = text(id).unwrap_or_default();
        call.name = text(name).unwrap_or_default();
        // Usually empty: the arguments follow.
        let given = input.filter(|input| pick(input, []).is_some_and(|[]| *input != "{}"));
        given.unwrap_or_default().clone_into(&mut call.arguments);
    }
}

/// Figures are sent twice, the second time only those that changed.
fn report(state: &mut StreamState, usage: Option<&str>, each: &mut impl FnMut(StreamEvent<'_>)) {
    let Some(json) = non_null(usage) else { return };
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return;
    };
    let new = Usage::from_messages(&value);
    let old = state.usage;
    let newest = |name: &str, new: u64, old: u64| {
        // A figure that is missing or null was reported before and did not change.
        let given = value.get(name).is_some_and(|figure| !figure.is_null());
        if given { new } else { old }
    };
    state.usage = Usage {
        input: newest("input_tokens", new.input, old.input),
        cache_creation: newest(
            "cache_creation_input_tokens",
            new.cache_creation,
            old.cache_creation,
        ),
        cache_read: newest("cache_read_input_tokens", new.cache_read, old.cache_read),
        output: newest("output_tokens", new.output, old.output),
    };
    each(StreamEvent::Usage(state.usage));
}

fn read_part(json: &str) -> Option<Part> {
    let raw: &RawValue = serde_json::from_str(json).ok()?;
    Some(messages::read_part(raw))
}
