//! Estimates and usage.

use serde_json::{Value, json};
use trimtab::model::estimate::{Heuristic, anchored};
use trimtab::model::{Kind, Message, Usage};

use super::{message, messages};

pub(super) fn run(op: &str, input: &Value) -> Option<Value> {
    let tokens = match op {
        "estimate_tokens_bytes4" => Heuristic::REFS.text(input["text"].as_str().unwrap()),
        "estimate_message_tokens_25" => turns(&input["message"]),
        "estimate_tool_defs_25" => Heuristic::TURNS.tools(input["tools"].as_array().unwrap()),
        "estimate_message_tokens_4" => Heuristic::ARCHIVE.message(&message(&input["message"])),
        "estimate_tokens_4" => Heuristic::ARCHIVE.messages(&messages(&input["messages"])),
        "estimate_context_tokens" => context(&messages(&input["messages"])),
        "usage_total" => return Some(json!({"total_tokens": usage(input).total()})),
        _ => return None,
    };
    Some(json!({ "tokens": tokens }))
}

/// A system message may come in parts beside its content, which say the same; the design
/// counts the larger, with twenty characters more for each part.
fn turns(value: &Value) -> u64 {
    let whole = Heuristic::TURNS.message(&message(value));
    let Some(parts) = value["system_parts"].as_array() else {
        return whole;
    };
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    let mut apart = value.clone();
    apart["content"] = Value::from(texts.collect::<String>());
    let in_parts = Heuristic {
        per_message: Heuristic::TURNS.per_message + 20 * u32::try_from(parts.len()).unwrap(),
        ..Heuristic::TURNS
    };
    whole.max(in_parts.message(&message(&apart)))
}

/// The design knows its own summaries by their first words; usage from before one is stale,
/// and so is that of the answers kept behind it, which were given before it was written.
fn context(log: &[Message]) -> u64 {
    let summary = |message: &Message| {
        message.meta.kind == Some(Kind::Summary)
            || message
                .text()
                .starts_with("[Previous conversation summary]")
    };
    let fresh_from = if log.iter().any(summary) {
        log.len()
    } else {
        0
    };
    anchored(&Heuristic::ARCHIVE, log, fresh_from)
}

pub(super) fn usage(value: &Value) -> Usage {
    let count = |key: &str| value[key].as_u64().unwrap_or(0);
    Usage {
        input: count("input_tokens"),
        cache_creation: count("cache_creation_tokens"),
        cache_read: count("cache_read_tokens"),
        output: count("output_tokens"),
    }
}
