//! Turns, boundaries, normalising, removal.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::engine::compaction::keep::{self, Keep};
use trimtab::engine::normalise::{Options, Touch, normalise};
use trimtab::engine::removal;
use trimtab::model::{Message, Role, turns};

use super::{messages, written};

pub(super) fn run(op: &str, input: &Value) -> Option<Value> {
    let log = messages(&input["messages"]);
    Some(match op {
        "parse_turn_boundaries" => json!({"indices": turns::boundaries(&log)}),
        "is_safe_boundary" => {
            json!({"result": turns::is_safe_boundary(&log, index(&input["index"]))})
        }
        "find_safe_boundary" => {
            json!({"index": turns::nearest_safe_boundary(&log, index(&input["target_index"]))})
        }
        "normalize_synthesize" => {
            json!({"messages": written(normalised(log).iter().map(|m| &**m))})
        }
        "remove_oldest_pair" => remove_oldest(&log),
        "overflow_recovery" => recover(&log, input),
        "separate_preserved" => {
            json!({"preserved": preserved(&log, input)})
        }
        "trim_conversation_history" => trim(&log, index(&input["max_messages"])),
        "convert_visible" => {
            let seen = log.iter().filter(|message| message.agent_visible());
            json!({"contents": seen.map(|message| message.text()).collect::<Vec<_>>()})
        }
        "metadata_json_round_trip" => {
            let message = super::message(&input["message"]);
            let again = written([&message]);
            again[0]["metadata"].clone()
        }
        _ => return None,
    })
}

/// What the second design does not summarise: system messages, the newest, protected rounds
/// and open calls.
fn preserved(log: &[Message], input: &Value) -> BTreeSet<usize> {
    let tools = input["protected_tools"].as_array().into_iter().flatten();
    let rules = [
        Keep::RecentMessages {
            messages: index(&input["recent_min"]),
        },
        Keep::ProtectedTools {
            tools: tools
                .map(|tool| tool.as_str().unwrap().to_owned())
                .collect(),
        },
        Keep::OpenCalls,
    ];
    let system = (0..log.len()).filter(|at| log[*at].role == Role::System);
    let behind = keep::kept(log, &rules, |_| 0).behind;
    system.chain(behind).collect()
}

/// A negative index is the front.
fn index(value: &Value) -> usize {
    usize::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0)
}

/// The designs add outputs and nothing else: a history with nothing in it stays empty.
fn normalised(log: Vec<Message>) -> Vec<Arc<Message>> {
    let log: Vec<Arc<Message>> = log.into_iter().map(Arc::new).collect();
    let mut entries = normalise(&log, Options::default()).entries;
    entries.retain(|entry| entry.touch != Touch::Made || entry.message.role == Role::Tool);
    entries.into_iter().map(|entry| entry.message).collect()
}

fn without<'m>(log: &'m [Message], gone: &BTreeSet<usize>) -> Vec<&'m Message> {
    let all = log.iter().enumerate();
    all.filter(|(at, _)| !gone.contains(at))
        .map(|(_, message)| message)
        .collect()
}

fn remove_oldest(log: &[Message]) -> Value {
    let gone = removal::oldest(log).unwrap_or_default();
    let removed = gone.first().and_then(|at| log.get(*at));
    let removed = removed.map(|message| written([message])[0].clone());
    json!({"removed": removed, "messages": written(without(log, &gone))})
}

/// The first call and its retries, each after one removal.
fn recover(log: &[Message], input: &Value) -> Value {
    let failures = input["overflow_failures"].as_u64().unwrap();
    let retries = input["max_retries"].as_u64().unwrap();
    let mut left: Vec<Message> = log.to_vec();
    let (mut calls, mut removals) = (0, 0);
    let ok = loop {
        calls += 1;
        if calls > failures {
            break true;
        }
        let Some(gone) = removal::oldest(&left) else {
            break false;
        };
        left = without(&left, &gone).into_iter().cloned().collect();
        removals += 1;
        if calls > retries {
            break false;
        }
    };
    json!({"ok": ok, "llm_calls": calls, "removals": removals, "messages": written(&left)})
}

fn trim(log: &[Message], keep: usize) -> Value {
    let cut = removal::safe_trim(log, keep).unwrap_or(0);
    let stderr = match cut {
        0 => String::new(),
        cut => format!(
            "  Note: Conversation history trimmed — removed {cut} oldest message(s) \
             to stay within the {keep} message limit\n"
        ),
    };
    json!({"messages": written(&log[cut..]), "stderr": stderr})
}
