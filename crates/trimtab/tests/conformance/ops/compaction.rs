//! Summary requests and answers, what survives, how it is rebuilt.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::engine::compaction::answer::Answer;
use trimtab::engine::compaction::keep::{self, Keep, Kept};
use trimtab::engine::compaction::prompt::Prompt;
use trimtab::engine::compaction::rebuild::{Placement, Replacement, rebuild};
use trimtab::engine::compaction::{recovery, request};
use trimtab::engine::normalise::{Slot, Source};
use trimtab::model::estimate::Heuristic;
use trimtab::model::{Kind, Message, Role};

use super::{edited, messages, written};

/// How the second design and its forerunner begin a summary.
const PREFIXES: [&str; 2] = [
    "Another language model started this task and produced\na summary. Use this to build on \
     existing work and avoid duplication:\n",
    "[Previous conversation summary]\n",
];

pub(super) fn run(op: &str, input: &Value) -> Option<Value> {
    let log = messages(&input["messages"]);
    Some(match op {
        "prepare_for_summary" => {
            let prepared = request::without_open_end(&log);
            json!({"messages": written(prepared.iter().map(AsRef::as_ref))})
        }
        "compaction_prompt" => json!({"text": prompt(&input["config"]).instructions()}),
        "parse_compaction_response" => {
            let asked = input["retain_enabled"] != false;
            let answer = Answer::parse(input["text"].as_str().unwrap(), asked);
            let Answer {
                retain,
                summary,
                effective_summary,
            } = answer;
            json!({"retain": retain, "summary": summary, "effective_summary": effective_summary})
        }
        "compact_with_response" => with_response(&log, input),
        "compact_with_error" => {
            json!({"compacted": false, "messages": written(&log), "usage": null})
        }
        "collect_user_messages" => collect(&log, input),
        "select_user_messages" => {
            let budget = u64::try_from(input["max_tokens"].as_i64().unwrap()).unwrap_or(0);
            let weigh = |message: &Message| Heuristic::CHECKPOINT_USER.message(message);
            let chosen = keep::user_messages(&log, budget, weigh);
            let texts: Vec<_> = chosen.iter().map(|at| log[*at].text()).collect();
            json!({ "selected": texts })
        }
        "compact_codex_style" => checkpoint(&tagged(log), input),
        "build_compacted_history" => built(input),
        "summariser_input" => json!({"text": request::transcript(&tagged(log))}),
        "force_compression" => force(input),
        "summarize_plan" => summarize_plan(input),
        "inject_summary" => inject(input),
        _ => return None,
    })
}

/// The log as slots of a window that nothing was done to.
pub(super) fn slots(log: &[Message]) -> Vec<Slot> {
    let slot = |(at, message): (usize, &Message)| Slot {
        message: Arc::new(message.clone()),
        source: Source::Log(at),
    };
    log.iter().enumerate().map(slot).collect()
}

/// The log with the summaries that the design knows by their first words marked as such.
fn tagged(log: Vec<Message>) -> Vec<Message> {
    let tag = |message: Message| {
        let summary =
            message.role == Role::User && keep::begins_like_a_summary(&message.text(), &PREFIXES);
        if summary {
            message.with_kind(Kind::Summary)
        } else {
            message
        }
    };
    log.into_iter().map(tag).collect()
}

fn prompt(config: &Value) -> Prompt {
    let list = |key: &str| {
        let items = config[key].as_array().into_iter().flatten();
        items
            .map(|item| item.as_str().unwrap().to_owned())
            .collect()
    };
    let default = Prompt::default();
    Prompt {
        summary: config["summaryPrompt"]
            .as_str()
            .map_or(default.summary, str::to_owned),
        summary_directives: list("summaryDirectives"),
        retain: match config.get("retainPrompt") {
            None => default.retain,
            Some(prompt) => prompt.as_str().map(str::to_owned),
        },
        retain_directives: list("retainDirectives"),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of turns, rounded down as the design does"
)]
fn with_response(log: &[Message], input: &Value) -> Value {
    let config = &input["config"];
    let asked = config.get("retainPrompt") != Some(&Value::Null);
    let answer = Answer::parse(input["response_text"].as_str().unwrap(), asked);
    if config["enabled"] == false || answer.is_empty() {
        return json!({"compacted": false, "messages": written(log)});
    }
    let turns = config["retainLastTurns"]
        .as_f64()
        .unwrap_or(1.0)
        .floor()
        .max(0.0) as usize;
    let kept = keep::kept(log, &[Keep::LastTurns { turns }], |_| 0);
    let replacement = Replacement {
        retain: answer.retain,
        summary: answer.effective_summary,
    };
    let placement = Placement::Message {
        prefix: String::new(),
    };
    let edits = rebuild(&slots(log), &kept, &replacement, &placement);
    let messages = edited(log, edits);
    json!({"compacted": true, "messages": written(messages.iter().map(|m| &**m))})
}

fn collect(log: &[Message], input: &Value) -> Value {
    let given = input["summary_prefixes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let given: Vec<&str> = given.iter().filter_map(Value::as_str).collect();
    let prefixes = if given.is_empty() {
        &PREFIXES[..]
    } else {
        &given
    };
    let own = log.iter().filter(|message| message.is_real_user());
    let texts: Vec<_> = own
        .map(|message| message.text())
        .filter(|text| !keep::begins_like_a_summary(text, prefixes))
        .collect();
    json!({ "collected": texts })
}

fn checkpoint(log: &[Message], input: &Value) -> Value {
    let given = input["strategy"].as_str();
    let known = given.filter(|name| ["deletion", "selective"].contains(name));
    let strategy = known.unwrap_or("sliding_window");
    let fails = input["llm_fails"] == true;
    if log.is_empty() {
        return json!({
            "messages": [], "llm_calls": 0, "metadata_strategy": strategy, "error": false,
        });
    }
    let (kept, summary) = match strategy {
        "deletion" => (Kept::default(), None),
        _ if fails && strategy == "sliding_window" => (first_and_last(log), None),
        _ => (
            survivors(log, input),
            Some(input["summary_text"].as_str().unwrap()).filter(|_| !fails),
        ),
    };
    let replacement = Replacement {
        summary: summary.unwrap_or_default().to_owned(),
        ..Replacement::default()
    };
    let prefix = input["summary_prefix"]
        .as_str()
        .unwrap_or(PREFIXES[0])
        .to_owned();
    let edits = rebuild(
        &slots(log),
        &kept,
        &replacement,
        &Placement::Message { prefix },
    );
    let messages = edited(log, edits);
    json!({
        "messages": written(messages.iter().map(|m| &**m)),
        "llm_calls": u8::from(strategy != "deletion"),
        "metadata_strategy": strategy,
        "error": fails && strategy != "deletion",
    })
}

/// What the second design keeps: user messages, protected rounds, open calls.
fn survivors(log: &[Message], input: &Value) -> Kept {
    let tools = input["protected_tools"].as_array().into_iter().flatten();
    let tools = tools
        .map(|tool| tool.as_str().unwrap().to_owned())
        .collect();
    let rules = [
        Keep::UserMessages {
            tokens: input["user_budget"]
                .as_i64()
                .map_or(20_000, |n| u64::try_from(n).unwrap_or(0)),
        },
        Keep::ProtectedTools { tools },
        Keep::OpenCalls,
    ];
    keep::kept(log, &rules, |message| {
        Heuristic::CHECKPOINT_USER.message(message)
    })
}

/// What it keeps when the summariser fails: the first and the last message, in whole rounds.
fn first_and_last(log: &[Message]) -> Kept {
    let first = log.iter().position(|message| message.role != Role::System);
    let ends = first.into_iter().chain(log.len().checked_sub(1));
    let together = trimtab::engine::removal::with_counterparts(log, ends);
    Kept {
        before: together,
        ..Kept::default()
    }
}

/// How Codex rebuilds: tokens are a quarter of the bytes, and a long message is cut.
fn built(input: &Value) -> Value {
    let initial = messages(&input["initial"]);
    let texts = input["user_messages"].as_array().into_iter().flatten();
    let users = texts.map(|text| Message::user(text.as_str().unwrap()));
    let log: Vec<Message> = initial.into_iter().chain(users).collect();
    let rule = Keep::UserMessagesCut {
        tokens: input["user_budget"].as_u64().unwrap_or(20_000),
    };
    let kept = keep::kept(&log, &[rule], |message| Heuristic::REFS.message(message));
    let summary = input["summary_text"].as_str().unwrap().to_owned();
    let replacement = Replacement {
        summary,
        ..Replacement::default()
    };
    let placement = Placement::Message {
        prefix: String::new(),
    };
    let messages = edited(&log, rebuild(&slots(&log), &kept, &replacement, &placement));
    json!({"messages": written(messages.iter().map(|m| &**m))})
}

fn force(input: &Value) -> Value {
    let history = messages(&input["history"]);
    let summary = input["summary"].as_str().unwrap_or_default();
    match recovery::half_of_turns(&history) {
        Some(cut) => json!({
            "compressed": true, "dropped": cut, "history": written(&history[cut..]),
            "summary": recovery::with_note(summary, cut),
        }),
        None => json!({
            "compressed": false, "dropped": 0, "history": written(&history), "summary": summary,
        }),
    }
}

fn summarize_plan(input: &Value) -> Value {
    let history = messages(&input["history"]);
    let window = input["context_window"].as_u64().unwrap();
    let Some(plan) = request::turn_summary(&history, window) else {
        return json!({"action": "none", "cut": 0, "keep": history.len()});
    };
    let read = plan.batches.iter().flatten();
    let contents: Vec<_> = read.map(|at| history[*at].text()).collect();
    json!({
        "action": "summarize", "cut": plan.cut, "keep": history.len() - plan.cut,
        "summarised_contents": contents, "omitted_oversized": plan.omitted_oversized,
        "batches": plan.batches.iter().map(Vec::len).collect::<Vec<_>>(),
    })
}

/// The fourth design's summary goes to the end of the system part.
fn inject(input: &Value) -> Value {
    let separator = "\n\n---\n\n";
    let log = [
        Message::system(input["system"].as_str().unwrap()),
        Message::user("q"),
    ];
    let summary = input["summary"].as_str().unwrap().to_owned();
    let replacement = Replacement {
        summary,
        ..Replacement::default()
    };
    let kept = keep::kept(&log, &[Keep::LastTurns { turns: 1 }], |_| 0);
    let placement = Placement::System {
        prefix: "CONTEXT_SUMMARY: ".to_owned(),
    };
    let window = edited(&log, rebuild(&slots(&log), &kept, &replacement, &placement));
    let (system, rest): (Vec<_>, Vec<_>) = window
        .iter()
        .partition(|message| message.role == Role::System);
    let system: Vec<String> = system
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    let ours = rest
        .iter()
        .any(|message| message.meta.kind == Some(Kind::Summary));
    let last = system
        .last()
        .is_some_and(|text| text.starts_with("CONTEXT_SUMMARY:"));
    json!({
        "system": system.join(separator), "separator": separator,
        "order": if last { "system parts then summary last" } else { "summary is not last" },
        "messages_have_no_summary_user_message": !ours,
    })
}
