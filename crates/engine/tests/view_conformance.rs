//! The public conformance cases about views, budgets, trimming, retention, reads and grep.
//!
//! They live beside the workspace and are not part of it; without them this test says so.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skipped"
)]

use std::path::Path;

use serde_json::{Value, json};
use trimtab_engine::view::retention::{Retention, retain};
use trimtab_engine::view::retrieval::{AnswerLimits, GrepAnswer, ReadAnswer};
use trimtab_engine::view::trim::{OutputBudget, trim_outputs};
use trimtab_engine::view::{
    Change, Given, HeadLines, Keep, Limits, Middle, Prefix, Shape, Spill, view,
};
use trimtab_model::{Call, Message, Output, Part, RawJson, Ref, Role};

/// Runs `check` over the cases of `op` in `file`; it gives what we do in the form of
/// `expected`, of which only the fields that `expected` has are compared.
fn run(file: &str, op: &str, check: fn(&Value) -> Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/vectors")
        .join(file);
    let Some(text) = read(&path) else {
        println!("skipped: {} is not there", path.display());
        return;
    };
    let cases: Value = expand(serde_json::from_str(&text).unwrap());
    let cases = cases.get("cases").unwrap_or(&cases).as_array().unwrap();
    let mut seen = 0;
    for case in cases.iter().filter(|case| case["op"] == op) {
        seen += 1;
        let got = check(&case["input"]);
        let inverted = case["inverted"] == true;
        let agrees = agrees(&case["expected"], &got);
        assert!(
            agrees != inverted,
            "{}\nexpected {}\ngot {got}",
            case["name"],
            case["expected"]
        );
    }
    assert!(seen > 0, "no case of {op} in {file}");
    println!("{file} {op}: {seen} cases");
}

#[expect(clippy::disallowed_methods, reason = "the cases are a file")]
fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn expand(value: Value) -> Value {
    match value {
        Value::Object(map) if map.contains_key("$repeat") => {
            let times = usize::try_from(map["times"].as_u64().unwrap()).unwrap();
            Value::from(map["$repeat"].as_str().unwrap().repeat(times))
        }
        Value::Object(map) if map.contains_key("$concat") => {
            let pieces = map["$concat"]
                .as_array()
                .unwrap()
                .iter()
                .cloned()
                .map(expand);
            Value::from(
                pieces
                    .map(|p| p.as_str().unwrap().to_owned())
                    .collect::<String>(),
            )
        }
        Value::Object(map) => Value::Object(map.into_iter().map(|(k, v)| (k, expand(v))).collect()),
        Value::Array(list) => Value::Array(list.into_iter().map(expand).collect()),
        other => other,
    }
}

fn agrees(expected: &Value, got: &Value) -> bool {
    let content = got["content"].as_str().unwrap_or_default();
    expected
        .as_object()
        .unwrap()
        .iter()
        .all(|(key, value)| match key.as_str() {
            "contains" => match value {
                Value::Array(list) => list.iter().all(|v| content.contains(v.as_str().unwrap())),
                one => content.contains(one.as_str().unwrap()),
            },
            "first_line_max_chars" => {
                let first = content.lines().next().unwrap_or_default();
                first.chars().count() as u64 <= value.as_u64().unwrap()
            }
            "text_prefix" => got["text"]
                .as_str()
                .unwrap()
                .starts_with(value.as_str().unwrap()),
            "messages_anthropic" => true,
            key => got[key] == *value,
        })
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0)
}

#[expect(clippy::disallowed_methods, reason = "this test plays the store")]
fn issue(id: &str, text: &str) -> Ref {
    let id: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "_-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    Ref::issue(
        id,
        Some(text.len() as u64),
        Some(text.split('\n').count() as u64),
    )
}

#[test]
fn tool_output_view() {
    run("refs.json", "tool_output_view", |input| {
        let (message, config) = (&input["message"], &input["config"]);
        let text = message["content"].as_str().unwrap();
        let enabled = config["enabled"] != false;
        let has_store = input.get("store") != Some(&Value::Null);
        let stored =
            (enabled && has_store).then(|| issue(message["tool_call_id"].as_str().unwrap(), text));
        let mut shape = HeadLines::default();
        if let Some(max) = config["maxMessageBytes"].as_u64() {
            shape.max_bytes = usize::try_from(max).unwrap();
        }
        if let Some(max) = config["maxLineLength"].as_u64() {
            shape.max_line_chars = usize::try_from(max).unwrap();
        }
        let shape = if enabled {
            Shape::HeadLines(shape)
        } else {
            Shape::Whole
        };
        let given = Given {
            stored: stored.as_ref(),
            ..Given::default()
        };
        let shown = view(text, &shape, &given);
        json!({
            "content": shown.text, "trimmed": shown.trimmed,
            "output_ref_id": stored.as_ref().map(Ref::id), "output_ref": stored,
        })
    });
}

#[test]
fn context_budget() {
    run("refs.json", "context_budget", |input| {
        let budget = OutputBudget {
            tokens: input["contextBudgetTokens"].as_u64(),
            ..OutputBudget::default()
        };
        let window = input["context_window"]
            .as_u64()
            .or(input["max_input_tokens"].as_u64());
        json!({ "tokens": budget.resolve(window) })
    });
}

fn message(value: &Value) -> Message {
    let text = value["content"].as_str().unwrap_or_default();
    match value["role"].as_str().unwrap() {
        "user" => Message::user(text),
        "assistant" => {
            let calls = value["tool_calls"].as_array().into_iter().flatten();
            calls.fold(Message::assistant(text), |message, call| {
                let function = &call["function"];
                message.with_call(Call::new(
                    call["id"].as_str().unwrap(),
                    function["name"].as_str().unwrap(),
                    function["arguments"].as_str().unwrap(),
                ))
            })
        }
        "tool" => {
            let mut output = Output::new(value["tool_call_id"].as_str().unwrap(), text);
            output.stored = serde_json::from_value(value["output_ref"].clone()).ok();
            output.is_error = value["is_error"] == true;
            output.trimmed = value["trimmed"] == true;
            let mut message = Message::new(Role::Tool, Vec::new());
            if let Some(parts) = value["content"].as_array() {
                output.content = parts
                    .iter()
                    .map(|p| Part::text(p["text"].as_str().unwrap()))
                    .collect();
                message.meta.content_list = true;
            }
            message.parts.push(Part::Output(output));
            message
        }
        other => panic!("role {other}"),
    }
}

/// The messages of the case with the changed outputs written into them.
fn changed(input: &Value, changes: &[Change], mark: bool) -> Value {
    let mut messages = input["messages"].clone();
    for change in changes {
        let message = &mut messages[change.message];
        message["content"] = Value::from(change.output.text().into_owned());
        if mark {
            message["trimmed"] = Value::Bool(true);
        }
    }
    messages
}

fn log(input: &Value) -> Vec<Message> {
    input["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(message)
        .collect()
}

#[test]
fn trim_tool_outputs() {
    run("refs.json", "trim_tool_outputs", |input| {
        let changes = trim_outputs(
            &log(input),
            input["budget_tokens"].as_u64().unwrap(),
            |_| false,
        );
        json!({ "trimmed": !changes.is_empty(), "messages": changed(input, &changes, true) })
    });
}

#[test]
fn compact_old_tool_results() {
    run("retention.json", "compact_old_tool_results", |input| {
        let retention = Retention {
            input_budget: u64::try_from(input["input_token_budget"].as_i64().unwrap()).ok(),
            keep: Prefix {
                chars: number(&input["tool_result_retention_chars"]),
            },
        };
        let done = retain(
            &log(input),
            &retention,
            input["input_tokens"].as_u64().unwrap(),
        );
        let note = done.note.map_or_else(String::new, |note| note + "\n");
        json!({ "messages": changed(input, &done.changes, false), "stderr": note })
    });
}

fn codex(input: &Value) -> Middle {
    let policy = &input["policy"];
    match (policy["tokens"].as_u64(), policy["bytes"].as_u64()) {
        (Some(tokens), _) => Middle::codex_tokens(tokens),
        (_, Some(bytes)) => Middle::codex_bytes(bytes),
        _ => panic!("policy {policy}"),
    }
}

fn truncated(input: &Value, shape: Middle) -> Value {
    let text = input["content"].as_str().unwrap();
    let shown = view(text, &Shape::Middle(shape), &Given::default());
    json!({ "content": shown.text, "original_tokens": shape.measure(text) })
}

#[test]
fn codex_truncation() {
    run(
        "checkpoint_codex.json",
        "formatted_truncate_text",
        |input| truncated(input, codex(input).formatted()),
    );
    run("checkpoint_codex.json", "truncate_text", |input| {
        truncated(input, codex(input))
    });
}

#[test]
fn add_message_truncates() {
    run("checkpoint.json", "add_message_truncates", |input| {
        let max = input["max_tokens"].as_u64().unwrap();
        let outputs = message(&input["message"]);
        let cut = outputs.outputs().any(|output| {
            view(
                &output.text(),
                &Shape::Middle(Middle::tokens(max)),
                &Given::default(),
            )
            .trimmed
        });
        json!({ "truncated": cut })
    });
}

#[test]
fn tool_output_limits() {
    run("archive.json", "tool_output_limits", |input| {
        let (text, limits) = (input["text"].as_str().unwrap(), &input["limits"]);
        let shape = Limits {
            max_lines: number(&limits["max_lines"]),
            max_bytes: number(&limits["max_bytes"]),
            max_chars: number(&limits["max_chars"]),
            spill_chars: number(&limits["large_output_threshold"]),
            keep: match limits["truncate_mode"].as_str() {
                Some("" | "head_tail") => Keep::HeadTail,
                _ => Keep::Head,
            },
        };
        // The digest is the store's; here it is the case's own.
        let sha256 = "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb";
        let spill = Some(Spill::Saved {
            path: "outputs/1",
            sha256,
        });
        let shown = view(
            text,
            &Shape::Limits(shape),
            &Given {
                spill,
                ..Given::default()
            },
        );
        let kind = match (shape.spills(text), shown.trimmed) {
            (true, _) => "spilled",
            (false, true) => "truncated",
            (false, false) => "unchanged",
        };
        json!({ "kind": kind, "text": shown.text, "sha256": shown.text.rsplit(' ').next() })
    });
}

#[test]
fn cache_read() {
    run("refs.json", "cache_read", |input| {
        let offset = number(&input["offset"]);
        let limit = input["limit"]
            .as_u64()
            .map_or(usize::MAX, |n| usize::try_from(n).unwrap());
        let mut answer = ReadAnswer::new("c1", offset, 0, AnswerLimits::default());
        for line in input["content"]
            .as_str()
            .unwrap()
            .split('\n')
            .skip(offset)
            .take(limit)
        {
            if answer.push(line).is_break() {
                break;
            }
        }
        json!({ "text": answer.finish() })
    });
}

#[test]
fn cache_grep() {
    run("refs.json", "cache_grep", |input| {
        let lines: Vec<&str> = input["content"].as_str().unwrap().split('\n').collect();
        let pattern = input["pattern"].as_str().unwrap();
        let (before, after) = (number(&input["before"]), number(&input["after"]));
        let max = input["max_matches"]
            .as_u64()
            .map_or(50, |n| usize::try_from(n).unwrap());
        let mut answer = GrepAnswer::new(max, AnswerLimits::default());
        for (at, line) in lines.iter().enumerate() {
            if !found(line, pattern, input["regex"] == true) {
                continue;
            }
            let (from, to) = (at.saturating_sub(before), (at + after + 1).min(lines.len()));
            let around = lines[from..to].iter().copied();
            if answer
                .push(input["ref_id"].as_str().unwrap(), from, around)
                .is_break()
            {
                break;
            }
        }
        json!({ "text": answer.finish(pattern) })
    });
}

/// The few patterns of the cases; matching is the store's work, the text around it is ours.
fn found(line: &str, pattern: &str, regex: bool) -> bool {
    match (regex, pattern) {
        (false, literal) => line.contains(literal),
        (true, "^(beta|delta)$") => line == "beta" || line == "delta",
        (true, "a$") => line.ends_with('a'),
        (true, other) => panic!("pattern {other}"),
    }
}

#[test]
fn a_case_that_should_differ_is_noticed() {
    assert!(agrees(&json!({ "text": "a" }), &json!({ "text": "a" })));
    assert!(!agrees(&json!({ "text": "a" }), &json!({ "text": "b" })));
    assert_eq!(
        RawJson::of(&expand(json!({ "$repeat": "ab", "times": 2 }))).as_str(),
        "\"abab\""
    );
}
