//! Parses the events of Messages.

use serde_json::Value;

use super::event::{StreamEvent, TextDelta};
use super::watcher::{StreamState, error};
use crate::json::{non_null, pick, text_of};

/// Parses one event; none if it is not an object.
pub(super) fn event(
    state: &mut StreamState,
    data: &str,
    each: &mut impl FnMut(StreamEvent<'_>),
) -> Option<()> {
    let names = [
        "type",
        "delta",
        "content_block",
        "message",
        "usage",
        "error",
    ];
    let [type_name, delta, part, message, usage, failure] = pick(data, names)?;
    match type_name.unwrap_or_default() {
        "\"content_block_delta\"" => say(delta?, each)?,
        "\"content_block_start\"" => {
            let [kind] = pick(part?, ["type"])?;
            if kind == Some("\"tool_use\"") {
                each(StreamEvent::Call);
            }
        }
        "\"message_start\"" => {
            state.start(each);
            let [usage] = pick(message?, ["usage"])?;
            report(state, usage, each);
        }
        "\"message_delta\"" => {
            report(state, usage, each);
            let stop = delta.and_then(|json| pick(json, ["stop_reason"]));
            if let Some(stop) = stop.and_then(|[stop]| text_of(stop)) {
                each(StreamEvent::Stop(stop));
            }
        }
        "\"message_stop\"" => state.end(each),
        "\"error\"" => each(StreamEvent::Error(error(failure.unwrap_or(data), data))),
        _ => {}
    }
    Some(())
}

/// Reports a delta of text or reasoning. Others belong to calls and signatures.
fn say(delta: &str, each: &mut impl FnMut(StreamEvent<'_>)) -> Option<()> {
    // A delta has one of these fields; its `type` says the same and need not be compared.
    let [said, thought] = pick(delta, ["text", "thinking"])?;
    if let Some(delta) = said.and_then(TextDelta::new) {
        each(StreamEvent::Text(delta));
    } else if let Some(delta) = thought.and_then(TextDelta::new) {
        each(StreamEvent::Reasoning(delta));
    }
    Some(())
}

/// Figures are sent twice, the second time only those that changed.
fn report(state: &mut StreamState, usage: Option<&str>, each: &mut impl FnMut(StreamEvent<'_>)) {
    let Some(json) = non_null(usage) else { return };
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return;
    };
    state.usage = state.usage.updated_from_messages(&value);
    each(StreamEvent::Usage(state.usage));
}
