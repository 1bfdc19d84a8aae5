//! Estimates and usage.

use serde_json::{Value, json};
use trimtab::engine::policy::Policy;
use trimtab::model::estimate::{Anchor, Measure};
use trimtab::model::{Message, Usage};

use super::{message, messages};
use crate::front::preset;

/// The tokens of messages by a policy.
pub(super) fn tokens(policy: &Policy, messages: &[Message]) -> u64 {
    let each = messages.iter();
    each.map(|message| policy.estimate.message(message)).sum()
}

pub(super) fn refs_text(input: &Value) -> Value {
    let text = input["text"].as_str().unwrap();
    json!({"tokens": preset("refs").estimate.text(text)})
}

pub(super) fn turns_message(input: &Value) -> Value {
    let message = message(&input["message"]);
    json!({"tokens": preset("turns").estimate.message(&message)})
}

pub(super) fn turns_tools(input: &Value) -> Value {
    json!({"tokens": preset("turns").estimate.tools(&Measure::of_tools(&input["tools"].to_string()))})
}

pub(super) fn archive_message(input: &Value) -> Value {
    let message = message(&input["message"]);
    json!({"tokens": preset("archive").estimate.message(&message)})
}

pub(super) fn archive_messages(input: &Value) -> Value {
    json!({"tokens": tokens(&preset("archive"), &messages(&input["messages"]))})
}

pub(super) fn context(input: &Value) -> Value {
    json!({"tokens": anchored(&messages(&input["messages"]))})
}

/// What is reported for the newest answer that counts, and an estimate of what follows it. A
/// session forgets what was reported before a compaction, so nothing counts behind a summary.
pub(super) fn anchored(log: &[Message]) -> u64 {
    let policy = preset("archive");
    let prefixes = &policy.compaction.summary_prefixes;
    let compacted = |message: &Message| {
        let text = message.text();
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    let anchor = Anchor::find(log).filter(|_| !log.iter().any(compacted));
    let reported = anchor.map_or(0, |anchor| anchor.usage.total());
    let behind = anchor.map_or(0, |anchor| anchor.index + 1);
    reported + tokens(&policy, &log[behind..])
}

pub(super) fn usage_total(input: &Value) -> Value {
    let count = |key: &str| input[key].as_u64().unwrap_or(0);
    let usage = Usage {
        input: count("input_tokens"),
        cache_creation: count("cache_creation_tokens"),
        cache_read: count("cache_read_tokens"),
        output: count("output_tokens"),
        ..Usage::default()
    };
    json!({"total_tokens": usage.total()})
}
