//! Parses the events of Chat Completions.

use trimtab_model::Usage;

use super::event::{StreamEvent, TextDelta};
use super::watcher::{StreamState, error};
use crate::json::{elements, non_null, number, pick, text_of};

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
        choose(choice, each);
    }
    if let Some(usage) = non_null(usage).and_then(|json| serde_json::from_str(json).ok()) {
        state.usage = Usage::from_chat(&usage);
        each(StreamEvent::Usage(state.usage));
    }
    Some(())
}

fn choose<'a>(choice: &'a str, each: &mut impl FnMut(StreamEvent<'_>)) -> Option<()> {
    let [index, delta, stop] = pick(choice, ["index", "delta", "finish_reason"])?;
    // Only the first of several answers is used.
    if number(index).unwrap_or(0) > 0 {
        return None;
    }
    let names = ["content", "reasoning_content", "reasoning", "tool_calls"];
    if let Some([content, thought, other, calls]) = delta.and_then(|json| pick(json, names)) {
        let said = |json: Option<&'a str>| {
            let delta = json.and_then(TextDelta::new);
            delta.filter(|delta| !delta.is_empty())
        };
        let thought = said(non_null(thought).or(non_null(other)));
        let events = [
            thought.map(StreamEvent::Reasoning),
            said(content).map(StreamEvent::Text),
        ];
        events.into_iter().flatten().for_each(&mut *each);
        if calls.is_some_and(|calls| elements(calls).next().is_some()) {
            each(StreamEvent::Call);
        }
    }
    if let Some(stop) = text_of(stop) {
        each(StreamEvent::Stop(stop));
    }
    Some(())
}
