//! Views, trimming by budget, retention.

use serde_json::{Value, json};
use trimtab::engine::plan::Edit;
use trimtab::engine::view::policy::{ViewPolicy, Views};
use trimtab::engine::view::retention::{Retention, retain};
use trimtab::engine::view::trim::trim_outputs;
use trimtab::engine::view::{
    Change, Given, HeadLines, Keep, Limits, Middle, Prefix, Shape, Spill, view,
};
use trimtab::model::{Message, Ref};

use super::{edited, message, messages, written};

pub(super) fn run(op: &str, input: &Value) -> Option<Value> {
    Some(match op {
        "tool_output_view" => head_lines(input),
        "tool_output_limits" => limits(input),
        "formatted_truncate_text" => middle(input, codex(input).formatted()),
        "truncate_text" => middle(input, codex(input)),
        "add_message_truncates" => added(input),
        "trim_tool_outputs" => {
            let log = messages(&input["messages"]);
            let changes = trim_outputs(&log, number(&input["budget_tokens"]) as u64, |_| false);
            json!({"trimmed": !changes.is_empty(), "messages": shown(&log, changes)})
        }
        "compact_old_tool_results" => retention(input),
        _ => return None,
    })
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0)
}

/// The messages with the changed outputs in them.
fn shown(log: &[Message], changes: Vec<Change>) -> Value {
    let edit = |Change {
                    message,
                    part,
                    output,
                }| Edit::Show {
        message,
        part,
        output,
    };
    written(
        edited(log, changes.into_iter().map(edit).collect())
            .iter()
            .map(|m| &**m),
    )
}

/// The ref that the first design's own store would give.
fn issue(id: &str, text: &str) -> Ref {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let lines = text.split('\n').count();
    Ref::issue(
        id.chars().map(plain).collect::<String>(),
        Some(text.len() as u64),
        Some(lines as u64),
    )
}

fn head_lines(input: &Value) -> Value {
    let (config, message) = (&input["config"], message(&input["message"]));
    let output = message.outputs().next().unwrap();
    let text = output.text();
    let enabled = config["enabled"] != false;
    let has_store = enabled && input.get("store") != Some(&Value::Null);
    let stored = has_store.then(|| issue(&output.call_id, &text));
    let mut shape = HeadLines::default();
    if let Some(max) = config["maxMessageBytes"].as_u64() {
        shape.max_bytes = usize::try_from(max).unwrap();
    }
    if let Some(max) = config["maxLineLength"].as_u64() {
        shape.max_line_chars = usize::try_from(max).unwrap();
    }
    let policy = ViewPolicy {
        default: Shape::HeadLines(shape),
        ..ViewPolicy::default()
    };
    let views = Views::new(&policy).unwrap();
    let tool = output.tool.as_deref().unwrap_or_default();
    // What is not text has no view: such an output is shown as it is, and only stored.
    let plain = output.content.iter().all(|part| part.as_text().is_some());
    let shape = if enabled && plain {
        views.shape(tool)
    } else {
        &Shape::Whole
    };
    let view = view(
        &text,
        shape,
        &Given {
            stored: stored.as_ref(),
            ..Given::default()
        },
    );
    let content = if plain {
        json!(view.text)
    } else {
        written([&message])[0]["content"].clone()
    };
    json!({
        "content": content, "trimmed": view.trimmed,
        "output_ref_id": stored.as_ref().map(Ref::id), "output_ref": stored,
    })
}

fn limits(input: &Value) -> Value {
    let (text, limits) = (input["text"].as_str().unwrap(), &input["limits"]);
    let shape = Limits {
        max_lines: number(&limits["max_lines"]),
        max_bytes: number(&limits["max_bytes"]),
        max_chars: number(&limits["max_chars"]),
        spill_chars: match limits["large_output_threshold"].as_i64() {
            Some(below) if below < 0 => Limits::default().spill_chars,
            _ => number(&limits["large_output_threshold"]),
        },
        keep: match limits["truncate_mode"].as_str() {
            None | Some("" | "head_tail") => Keep::HeadTail,
            _ => Keep::Head,
        },
    };
    let sha256 = sha256(text);
    let spill = Some(Spill::Saved {
        path: "outputs/1",
        sha256: &sha256,
    });
    let view = view(
        text,
        &Shape::Limits(shape),
        &Given {
            spill,
            ..Given::default()
        },
    );
    let kind = match (shape.spills(text), view.trimmed) {
        (true, _) => "spilled",
        (false, true) => "truncated",
        (false, false) => "unchanged",
    };
    json!({"kind": kind, "text": view.text, "sha256": view.text.rsplit(' ').next()})
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

fn codex(input: &Value) -> Middle {
    let policy = &input["policy"];
    match (policy["tokens"].as_u64(), policy["bytes"].as_u64()) {
        (Some(tokens), _) => Middle::codex_tokens(tokens),
        (_, bytes) => Middle::codex_bytes(bytes.unwrap()),
    }
}

fn middle(input: &Value, shape: Middle) -> Value {
    let text = input["content"].as_str().unwrap();
    let view = view(text, &Shape::Middle(shape), &Given::default());
    json!({"content": view.text, "original_tokens": shape.measure(text)})
}

/// What the second design does when a message comes: only a tool's output is cut.
fn added(input: &Value) -> Value {
    let max = |key: &str, default| input[key].as_u64().unwrap_or(default);
    let mut shape = match input["policy"].as_str() {
        None | Some("tokens") => Middle::tokens(max("max_tokens", 5_000)),
        Some("bytes") => Middle::bytes(max("max_bytes", 20_000)),
        _ => Middle::none(),
    };
    if let Some(buffer) = input["serialization_buffer"].as_f64() {
        shape.buffer_percent = percent(buffer);
    }
    if let Some(chars) = input["approx_chars_per_token"].as_u64() {
        shape.per_token = usize::try_from(chars).unwrap().try_into().unwrap();
    }
    let message = message(&input["message"]);
    let whole = message.text().into_owned();
    let cut = message.outputs().next().map(|output| {
        let text = output.text();
        let view = view(&text, &Shape::Middle(shape), &Given::default());
        (view.trimmed, view.text.into_owned())
    });
    let (truncated, content) = cut.unwrap_or((false, whole));
    json!({"truncated": truncated, "content": content})
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a factor of a case, 1.2 or so"
)]
fn percent(factor: f64) -> u64 {
    (factor * 100.0).round() as u64
}

fn retention(input: &Value) -> Value {
    let log = messages(&input["messages"]);
    let retention = Retention {
        input_budget: input["input_token_budget"]
            .as_i64()
            .and_then(|n| u64::try_from(n).ok()),
        keep: Prefix {
            chars: number(&input["tool_result_retention_chars"]),
        },
    };
    let done = retain(&log, &retention, input["input_tokens"].as_u64().unwrap());
    let stderr = done.note.map_or_else(String::new, |note| note + "\n");
    // The design marks what it cut only in the text.
    let mut messages = shown(&log, done.changes);
    for message in messages.as_array_mut().into_iter().flatten() {
        message
            .as_object_mut()
            .map(|fields| fields.remove("trimmed"));
    }
    json!({"messages": messages, "stderr": stderr})
}
