//! Parses the events of Responses.

use trimtab_model::Usage;

use super::event::{StreamEvent, TextDelta};
use super::watcher::{StreamState, error};
use crate::json::{non_null, pick, text_of};

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
        "\"response.output_item.done\"" if item.is_some_and(is_call) => each(StreamEvent::Call),
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

/// True if an item of an answer is a call that the client answers. Calls of built-in tools, such as a
/// shell, have types of their own; those that the provider carries out have no `call_id`.
pub(super) fn is_call(item: &str) -> bool {
    let picked = pick(item, ["type", "call_id"]).unwrap_or_default();
    let [type_name, call_id] = picked.map(Option::unwrap_or_default);
    let is_named = call_id.starts_with('"') && !type_name.ends_with("_output\"");
    is_named || matches!(type_name, "\"function_call\"" | "\"custom_tool_call\"")
}

fn finished(
    state: &mut StreamState,
    response: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let [status, usage, details] = pick(response, ["status", "usage", "incomplete_details"])?;
    report(state, usage, each);
    let why = non_null(details).and_then(|json| pick(json, ["reason"]));
    let stop = why.and_then(|[reason]| text_of(reason)).or(text_of(status));
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
