//! The events of Chat Completions.

use trimtab_model::Usage;

use super::event::{Delta, Event};
use super::watcher::{State, error, number, some, text};
use crate::json::{elements, pick};

/// Reads one event; none if it is not an object.
pub(super) fn event(state: &mut State, data: &str, each: &mut impl FnMut(Event<'_>)) -> Option<()> {
    let [choices, usage, failure] = pick(data, ["choices", "usage", "error"])?;
    if let Some(failure) = some(failure) {
        each(Event::Error(error(failure, data)));
        return Some(());
    }
    state.start(each);
    for choice in choices.into_iter().flat_map(elements) {
        choose(state, choice, each);
    }
    if let Some(usage) = some(usage).and_then(|json| serde_json::from_str(json).ok()) {
        state.usage = Usage::from_chat(&usage);
        each(Event::Usage(state.usage));
    }
    Some(())
}

fn choose(state: &mut State, choice: &str, each: &mut impl FnMut(Event<'_>)) -> Option<()> {
    let [index, delta, stop] = pick(choice, ["index", "delta", "finish_reason"])?;
    // Only the first of several answers goes on.
    if number(index).unwrap_or(0) > 0 {
        return None;
    }
    let names = ["content", "reasoning_content", "reasoning", "tool_calls"];
    if let Some([content, thought, other, calls]) = delta.and_then(|json| pick(json, names)) {
        let thought = some(thought).or(some(other)).and_then(Delta::new);
        say(
            thought.filter(|delta| !delta.is_empty()),
            Event::Reasoning,
            each,
        );
        let content = content.and_then(Delta::new);
        say(content.filter(|delta| !delta.is_empty()), Event::Text, each);
        for call in calls.into_iter().flat_map(elements) {
            add_call(state, call);
        }
    }
    if let Some(stop) = text(stop) {
        state.end_calls(each);
        each(Event::Stop(stop));
    }
    Some(())
}

fn say<'a>(
    delta: Option<Delta<'a>>,
    event: impl FnOnce(Delta<'a>) -> Event<'a>,
    each: &mut impl FnMut(Event<'_>),
) {
    if let Some(delta) = delta {
        each(event(delta));
    }
}

fn add_call(state: &mut State, json: &str) -> Option<()> {
    let [index, id, function] = pick(json, ["index", "id", "function"])?;
    let index = number(index).unwrap_or(0);
    let call = state.call(index)?;
    if let Some(id) = text(id).filter(|id| !id.is_empty()) {
        call.id = id;
    }
    let [name, arguments] = pick(function?, ["name", "arguments"])?;
    if let Some(name) = text(name).filter(|name| !name.is_empty()) {
        call.name = name;
    }
    if let Some(more) = text(arguments) {
        state.add_arguments(index, &more);
    }
    Some(())
}
