//! Archived outputs, and the compaction of the third design.

use serde_json::{Value, json};
use trimtab::engine::budget;
use trimtab::engine::compaction::archive;
use trimtab::engine::compaction::keep::{self, Keep};
use trimtab::engine::compaction::rebuild::{Placement, Replacement, rebuild};
use trimtab::engine::compaction::recovery::{Recovery, RecoveryPolicy, Rung};
use trimtab::engine::compaction::request;
use trimtab::engine::plan::Edit;
use trimtab::model::estimate::Heuristic;
use trimtab::model::{Message, Output, Role};

use super::compaction::slots;
use super::{edited, messages, written};

pub(super) fn run(op: &str, input: &Value) -> Option<Value> {
    let log = messages(&input["messages"]);
    Some(match op {
        "compact_tool_results_in_recent" => {
            let edits = digested(&log, number(&input["cutoff"]), log.len());
            json!({"messages": after(&log, edits)})
        }
        "summarize_old_tool_results" => json!({"messages": summarised(&log, input)}),
        "project_for_summary" => project(&log),
        "compact_with_summary" => json!({"messages": compacted(&log, input)}),
        "compact_with_error" if input.get("messages").is_none() => json!({
            "error": format!("failed to generate summary: {}", input["error"].as_str().unwrap()),
            "messages_unchanged": true,
        }),
        "overflow_recovery_compact" => recover(input),
        _ => return None,
    })
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0)
}

fn after(log: &[Message], edits: Vec<Edit>) -> Value {
    written(edited(log, edits).iter().map(|message| &**message))
}

fn outputs_at<'m>(log: &'m [Message], places: &[usize]) -> Vec<&'m Output> {
    places.iter().flat_map(|at| log[*at].outputs()).collect()
}

/// Archives what is over the cutoff, with one digest at the end.
fn digested(log: &[Message], cutoff: usize, end: usize) -> Vec<Edit> {
    let over = archive::excess(log, cutoff);
    let mut edits = archive::archive(&over);
    if !over.is_empty() {
        let digest = archive::digest(outputs_at(log, &over).into_iter());
        edits.push(archive::at_the_end(digest, end));
    }
    edits
}

/// Archives what is over the cutoff, with a summary of each at the end.
fn summarised(log: &[Message], input: &Value) -> Value {
    if input["strategy"] == "off" {
        return after(log, Vec::new());
    }
    let over = archive::excess(log, number(&input["cutoff"]));
    let written = input["llm_returns"]
        .as_str()
        .filter(|_| input["strategy"] != "heuristic");
    let mut edits = archive::archive(&over);
    for output in outputs_at(log, &over) {
        edits.push(archive::at_the_end(
            archive::tool_summary(output, written),
            log.len(),
        ));
    }
    after(log, edits)
}

fn project(log: &[Message]) -> Value {
    let projected = request::project(log);
    let text = projected
        .first()
        .map(|message| message.text().into_owned())
        .unwrap_or_default();
    let run = |chars: &mut dyn Iterator<Item = char>| {
        let mut chars = chars.peekable();
        let first = chars.peek().copied();
        chars.take_while(|c| Some(*c) == first).count()
    };
    json!({
        "len": projected.len(), "rune_len": text.chars().count(), "text": text,
        "head_runes": run(&mut text.chars()), "tail_runes": run(&mut text.chars().rev()),
    })
}

fn compacted(log: &[Message], input: &Value) -> Value {
    let figure = |key: &str| input[key].as_u64().filter(|n| *n > 0);
    let reserve = figure("reserve_tokens").unwrap_or(0);
    let limit = budget::effective_limit(figure("context_window"), reserve, figure("max_tokens"));
    let recent = match figure("keep_recent_tokens") {
        Some(tokens) => {
            let tokens = budget::effective_keep(tokens, limit.map(|(limit, _)| limit));
            Keep::RecentTokens { tokens }
        }
        None => Keep::RecentMessages {
            messages: Some(number(&input["keep_recent"]))
                .filter(|n| *n > 0)
                .unwrap_or(5),
        },
    };
    let kept = keep::kept(log, &[recent], |message| {
        Heuristic::ARCHIVE.message(message)
    });
    let said = log.iter().filter(|message| message.role != Role::System);
    if kept.behind.len() == said.count() {
        return after(log, Vec::new());
    }
    let replacement = Replacement {
        summary: input["summary"].as_str().unwrap().to_owned(),
        ..Replacement::default()
    };
    let placement = Placement::Message {
        prefix: "[Previous conversation summary]\n\n".to_owned(),
    };
    let mut edits = rebuild(&slots(log), &kept, &replacement, &placement);
    let recent: Vec<Message> = kept.behind.iter().map(|at| log[*at].clone()).collect();
    for edit in digested(&recent, number(&input["tool_cutoff"]), log.len()) {
        edits.push(match edit {
            Edit::Archive { message } => Edit::Archive {
                message: kept.behind[message],
            },
            other => other,
        });
    }
    after(log, edits)
}

fn recover(input: &Value) -> Value {
    let policy = RecoveryPolicy {
        ladder: vec![Rung::Compact],
        retries: 1,
    };
    let mut recovery = Recovery::new(&policy);
    let failures = input["overflow_failures"].as_u64().unwrap();
    let mut events = Vec::new();
    let (mut calls, mut compactions) = (0, 0);
    let ok = loop {
        calls += 1;
        if calls > failures {
            break true;
        }
        if input["compactor"].is_null() || recovery.after_overflow().is_none() {
            break false;
        }
        compactions += 1;
        events.extend(["compaction_start", "compaction_end"]);
        if input["compactor"] != "ok" {
            break false;
        }
    };
    json!({"ok": ok, "llm_calls": calls, "compactions": compactions, "events": events})
}
