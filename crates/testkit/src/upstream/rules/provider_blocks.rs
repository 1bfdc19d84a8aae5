//! Blocks of Messages that only the provider writes: its summaries, and references to tools.

use std::collections::HashSet;

use serde_json::Value;
use trimtab_model::Dialect;

use super::{BrokenRule, entries, text};
use crate::upstream::refusal::ProviderRefusal;

pub(super) fn judge(body: &Value, dialect: Dialect) -> Vec<BrokenRule> {
    if dialect != Dialect::Messages {
        return Vec::new();
    }
    let mut broken = compaction(body);
    broken.extend(references(body));
    broken
}

/// A signed summary stands first and alone; one without a signature opens its answer.
fn compaction(body: &Value) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    for (at, message) in entries(body, "messages") {
        for (number, block) in entries(message, "content") {
            if text(block, "type") != "compaction" {
                continue;
            }
            let blocks = entries(message, "content").count();
            let is_signed = block.get("signature").is_some();
            let is_alone = !is_signed || (at == 0 && blocks == 1);
            if text(message, "role") == "assistant" && number == 0 && is_alone {
                continue;
            }
            let place = format!("messages.{at}.content.{number}");
            let message = format!("compaction_block_misplaced: {place}");
            let rule = format!("the summary at {place} is misplaced");
            broken.push(BrokenRule::new(rule, ProviderRefusal::anthropic(message)));
        }
    }
    broken
}

/// A reference names a tool of the request, or one that a message has added.
fn references(body: &Value) -> Vec<BrokenRule> {
    let tools = entries(body, "tools").map(|(_, tool)| text(tool, "name"));
    let mut known: HashSet<&str> = tools.collect();
    let mut named = Vec::new();
    for (_, message) in entries(body, "messages") {
        collect(message, &mut known, &mut named);
    }
    let unknown = named.into_iter().filter(|name| !known.contains(name));
    let broken = unknown.map(|name| {
        let message = format!("Tool reference '{name}' not found in available tools");
        let rule = format!("there is no tool {name:?} to refer to");
        BrokenRule::new(rule, ProviderRefusal::anthropic(message))
    });
    broken.collect()
}

/// Finds the references and the definitions in a message.
fn collect<'a>(value: &'a Value, known: &mut HashSet<&'a str>, named: &mut Vec<&'a str>) {
    match text(value, "type") {
        "tool_reference" => named.push(text(value, "tool_name")),
        "tool_definition" => known.extend(value.get("definition").map(|tool| text(tool, "name"))),
        // The arguments of a call can look like anything.
        "tool_use" | "server_tool_use" => return,
        _ => {}
    }
    match value {
        Value::Array(list) => list.iter().for_each(|value| collect(value, known, named)),
        Value::Object(fields) => fields
            .values()
            .for_each(|value| collect(value, known, named)),
        _ => {}
    }
}
