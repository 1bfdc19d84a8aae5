//! Parses the events of Responses.

use trimtab_model::{Call, Part, Reasoning, Usage};

use super::event::{StreamEvent, TextDelta};
use super::watcher::{StreamState, error, non_null, text};
use crate::json::pick;
use crate::responses;

/// Parses one event; none if it is not an object.
pub(super) fn event(
    state: &mut StreamState,
    data: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let [type_name, delta, item, response] = pick(data, ["type", "delta", "item", "response"])?;
    match type_name.unwrap_or_default() {
        "\"response.output_text.delta\"" | "\"response.refusal.delta\"" => {
            each(StreamEvent::Text(TextDelta::new(delta?)?));
        }
        "\"response.reasoning_text.delta\"" | "\"response.reasoning_summary_text.delta\"" => {
            each(StreamEvent::Reasoning(TextDelta::new(delta?)?));
        }
        "\"response.created\"" => state.start(each),
        // This event repeats the complete item, so the deltas of arguments need not be collected.
        "\"response.output_item.done\"" => {
            if let Some(call) = item.and_then(call) {
                each(StreamEvent::Call(call));
            } else if let Some(thought) = item.and_then(thought) {
                each(StreamEvent::Thought(thought));
            }
        }
        "\"response.completed\"" | "\"response.incomplete\"" => finished(state, response?, each)?,
        "\"response.failed\"" => failed(state, response?, data, each)?,
        "\"error\"" => {
            let [inner] = pick(data, ["error"])?;
            each(StreamEvent::Error(error(
                non_null(inner).unwrap_or(data),
                data,
            )));
        }
        _ => {}
    }
    Some(())
}

fn call(item: &str) -> Option<Call> {
    let names = ["type", "call_id", "name", "arguments", "input"];
    let [type_name, id, name, arguments, input] = pick(item, names)?;
    let arguments = match type_name? {
        "\"function_call\"" => arguments,
        "\"custom_tool_call\"" => input,
        _ => return None,
    };
    Some(Call::new(
        text(id).unwrap_or_default(),
        text(name).unwrap_or_default(),
        text(arguments).unwrap_or_default(),
    ))
}

fn thought(item: &str) -> Option<Reasoning> {
    let [type_name] = pick(item, ["type"])?;
    if type_name? != "\"reasoning\"" {
        return None;
    }
    match responses::read_thought(serde_json::from_str(item).ok()?) {
        Part::Reasoning(thought) => Some(thought),
        _ => None,
    }
}

fn finished(
    state: &mut StreamState,
    response: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let [status, usage, details] = pick(response, ["status", "usage", "incomplete_details"])?;
    report(state, usage, each);
    let why = non_null(details).and_then(|json| pick(json, ["reason"]));
    let stop = why.and_then(|[reason]| text(reason)).or(text(status));
    each(StreamEvent::Stop(
        stop.unwrap_or_else(|| "completed".to_owned()),
    ));
    state.end(each);
    Some(())
}

fn failed(
    state: &mut StreamState,
    response: &str,
    data: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let [failure, usage] = pick(response, ["error", "usage"])?;
    report(state, usage, each);
    each(StreamEvent::Error(error(failure.unwrap_or("{}"), data)));
    Some(())
}

fn report(state: &mut StreamState, usage: Option<&str>, each: &mut impl FnMut(StreamEvent<'_>)) {
    if let Some(usage) = non_null(usage).and_then(|json| serde_json::from_str(json).ok()) {
        state.usage = Usage::from_responses(&usage);
        each(StreamEvent::Usage(state.usage));
    }
}
