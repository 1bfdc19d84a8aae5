//! Renames the retrieval tools in a window to their current names.
//!
//! A client can add tools with the same names in the middle of a session, or remove them. Text
//! that was sent before then names tools of the client, or tools that nobody offers. A provider's
//! cache is lost anyway when the tools change, so renaming all of them costs nothing.

use std::collections::HashSet;
use std::sync::Arc;

use trimtab_engine::log::Log;
use trimtab_engine::normalise::{MessageSource, WindowEntry};
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::{Message, Part};

/// The window with the retrieval tools renamed to `names`; none if nothing needs to be renamed.
/// Messages of the client stay unchanged.
pub(super) fn with_tool_names(
    names: ToolNames,
    log: &Log,
    entries: &[WindowEntry],
) -> Option<Vec<WindowEntry>> {
    let renamed = |entry: &WindowEntry| renamed(names, log, entry);
    let first = entries.iter().position(|entry| renamed(entry).is_some())?;
    let (before, others) = entries.split_at_checked(first)?;
    let others = others.iter().map(|entry| match renamed(entry) {
        Some(message) => WindowEntry {
            message: Arc::new(message),
            ..entry.clone()
        },
        None => entry.clone(),
    });
    Some(before.iter().cloned().chain(others).collect())
}

fn renamed(names: ToolNames, log: &Log, entry: &WindowEntry) -> Option<Message> {
    let came = match entry.source {
        MessageSource::Log(at) => log.get(at),
        MessageSource::Inserted(_) => None,
    };
    // The same allocation means that no plan and no repair touched the message.
    if came.is_some_and(|came| Arc::ptr_eq(came, &entry.message)) {
        return None;
    }
    let of_client: HashSet<&str> = came
        .into_iter()
        .flat_map(|came| came.calls())
        .map(|call| call.id.as_str())
        .collect();
    let mut message = Message::clone(&entry.message);
    let mut changed = false;
    for part in &mut message.parts {
        changed |= rename(names, part, &|id| !of_client.contains(id));
    }
    changed.then_some(message)
}

/// Renames the tools in a part; false if there is nothing to rename. `is_ours` knows our calls.
fn rename(names: ToolNames, part: &mut Part, is_ours: &dyn Fn(&str) -> bool) -> bool {
    match part {
        Part::Text(said) => {
            let renamed = names.in_calls(&said.text);
            renamed.map(|text| said.text = text).is_some()
        }
        Part::Output(output) => {
            let mut changed = false;
            for part in &mut output.content {
                // An output contains no calls; only its placeholder text can name a tool.
                changed |= rename(names, part, &|_| false);
            }
            changed
        }
        Part::Call(call) if is_ours(&call.id) => {
            let name = names.instead_of(&call.name);
            let Some(name) = name.filter(|name| *name != call.name) else {
                return false;
            };
            name.clone_into(&mut call.name);
            true
        }
        _ => false,
    }
}
