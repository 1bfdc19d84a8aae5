//! Views, trimming by budget, retention.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::engine::policy::{Moment, Policy};
use trimtab::engine::view::{
    CapUnit, KeptLines, LineCountHeader, MiddleCut, Shape, ViewContext, view,
};
use trimtab::model::{Call, Message, Output, Usage};
use trimtab::session::Limits;
use trimtab::store::{FolderStore, MemoryStore, SessionId, Store};

use super::{aged, figure, message, messages, number, written};
use crate::front::{admitted, in_words, open_in, preset};

/// The tool that outputs of cases come from where the case has no call for them.
const FRAME_TOOL: &str = "frame_tool";

/// What a session would send of a message that comes in, behind the call of its output.
fn shown(store: &Arc<dyn Store>, policy: Policy, message: Message) -> Arc<Message> {
    let calls = message.outputs().map(|output| {
        let tool = output.tool.as_deref().filter(|tool| !tool.is_empty());
        Call::new(output.call_id.as_str(), tool.unwrap_or("tool"), "{}")
    });
    let calling = calls.fold(Message::assistant(""), Message::with_call);
    let mut log = vec![Message::user("q")];
    log.extend(Some(calling).filter(Message::has_calls));
    log.push(message);
    let session = open_in(Arc::clone(store), policy, Limits::default());
    let mut session = admitted(session, log);
    Arc::clone(session.window().unwrap().messages().last().unwrap())
}

fn in_memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn output_of(message: &Message) -> Output {
    message.outputs().next().unwrap().clone()
}

pub(super) fn head_lines(input: &Value) -> Value {
    let (config, came) = (&input["config"], message(&input["message"]));
    let mut policy = preset("refs");
    if let Shape::HeadLines(shape) = &mut policy.views.default {
        let max = |key: &str, default| {
            config[key]
                .as_u64()
                .map_or(default, |_| number(&config[key]))
        };
        shape.max_bytes = max("maxMessageBytes", shape.max_bytes);
        shape.max_line_chars = max("maxLineLength", shape.max_line_chars);
    }
    if config["enabled"] == false {
        policy.views.default = Shape::Whole;
    }
    if config["enabled"] == false || input.get("store") == Some(&Value::Null) {
        return without_store(&policy, &came);
    }
    let store = in_memory();
    let sent = shown(&store, policy, came);
    let output = output_of(&sent);
    // The id of a ref is the store's to choose: only its spelling is taken from the case.
    let session = SessionId::new("case").unwrap();
    let stored = output.stored.unwrap();
    let record = store.metadata(&session, stored.id()).unwrap().reference;
    let id = spelled(&output.call_id);
    let content = written([&*sent])[0]["content"].to_string();
    let content: Value = serde_json::from_str(&content.replace(stored.id(), &id)).unwrap();
    json!({
        "content": content, "trimmed": output.trimmed, "output_ref_id": id, "output_ref": {
            "id": id, "byte_size": record.byte_size(), "line_count": record.line_count(),
        },
    })
}

/// A session always has a store, and keeps every output: what an output looks like without one
/// is for the view alone to say.
fn without_store(policy: &Policy, came: &Message) -> Value {
    let output = output_of(came);
    let text = output.text();
    let view = view(&text, &policy.views.default, &ViewContext::default());
    json!({"content": view, "trimmed": view != text, "output_ref_id": null})
}

/// How the first design's own store names a ref.
fn spelled(call: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    call.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

pub(super) fn limits(input: &Value) -> Value {
    let (text, limits) = (input["text"].as_str().unwrap(), &input["limits"]);
    let mut policy = preset("archive");
    policy.ageing.archive.enabled = false;
    let mut spills = false;
    if let Shape::Limits(shape) = &mut policy.views.default {
        shape.max_lines = number(&limits["max_lines"]);
        shape.max_bytes = number(&limits["max_bytes"]);
        shape.max_chars = number(&limits["max_chars"]);
        if limits["large_output_threshold"]
            .as_i64()
            .is_none_or(|chars| chars >= 0)
        {
            shape.spill_chars = number(&limits["large_output_threshold"]);
        }
        shape.keep = match limits["truncate_mode"].as_str() {
            None | Some("" | "head_tail") => KeptLines::HeadTail,
            _ => KeptLines::Head,
        };
        spills = shape.spills(text);
    }
    // Only a store in a folder has a place for files.
    let folder = tempfile::tempdir().unwrap();
    let store = if spills {
        Arc::new(FolderStore::open(folder.path()).unwrap())
    } else {
        in_memory()
    };
    let output = output_of(&shown(&store, policy, Message::output("c", text)));
    let text = output.text();
    let kind = match (
        text.contains(&*folder.path().to_string_lossy()),
        output.trimmed,
    ) {
        (true, _) => "spilled",
        (false, true) => "truncated",
        (false, false) => "unchanged",
    };
    json!({"kind": kind, "text": text, "sha256": text.rsplit(' ').next()})
}

pub(super) fn truncated(input: &Value) -> Value {
    codex(input, LineCountHeader::Never)
}

pub(super) fn formatted(input: &Value) -> Value {
    codex(input, LineCountHeader::Always)
}

/// How Codex cuts an output: no buffer, tokens by bytes.
fn codex(input: &Value, header: LineCountHeader) -> Value {
    let policy = &input["policy"];
    let (unit, max) = match figure_or_zero(policy, "tokens") {
        Some(tokens) => (CapUnit::TokensByBytes, tokens),
        None => (CapUnit::Bytes, figure_or_zero(policy, "bytes").unwrap()),
    };
    let shape = MiddleCut {
        max: Some(max),
        unit,
        buffer_percent: 100,
        header,
        ..MiddleCut::default()
    };
    let text = input["content"].as_str().unwrap();
    let mut policy = preset("checkpoint");
    policy.views.default = Shape::Middle(shape);
    let output = output_of(&shown(&in_memory(), policy, Message::output("c", text)));
    json!({"content": output.text(), "original_tokens": shape.measure(text)})
}

fn figure_or_zero(input: &Value, key: &str) -> Option<u64> {
    input[key].as_u64()
}

/// What the second design does when a message comes: only a tool's output is cut.
pub(super) fn added(input: &Value) -> Value {
    let mut policy = preset("checkpoint");
    if let Shape::Middle(shape) = &mut policy.views.default {
        match input["policy"].as_str() {
            None | Some("tokens") => shape.max = input["max_tokens"].as_u64().or(shape.max),
            Some("bytes") => {
                shape.unit = CapUnit::Bytes;
                shape.max = Some(input["max_bytes"].as_u64().unwrap_or(20_000));
            }
            _ => shape.max = None,
        }
        if let Some(buffer) = input["serialization_buffer"].as_f64() {
            shape.buffer_percent = percent(buffer);
        }
        if let Some(chars) = figure(input, "approx_chars_per_token") {
            shape.per_token = usize::try_from(chars).unwrap().try_into().unwrap();
        }
    }
    let sent = shown(&in_memory(), policy, message(&input["message"]));
    let truncated = sent.outputs().any(|output| output.trimmed);
    json!({"truncated": truncated, "content": sent.text()})
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a factor of a case, 1.2 or so"
)]
fn percent(factor: f64) -> u64 {
    (factor * 100.0).round() as u64
}

pub(super) fn trimmed(input: &Value) -> Value {
    let mut policy = preset("refs");
    policy.ageing.placeholder.budget.tokens = Some(number(&input["budget_tokens"]) as u64);
    // Outputs without a call are not sent, and a budget counts what is.
    let case = messages(&input["messages"]);
    let is_called = |output: &Output| {
        let mut calls = case.iter().flat_map(Message::calls);
        calls.any(|call| call.id == output.call_id)
    };
    let mut log = Vec::new();
    for message in &case {
        let orphans = message.outputs().filter(|output| !is_called(output));
        let calls = orphans.map(|output| Call::new(output.call_id.as_str(), FRAME_TOOL, "{}"));
        let calling = calls.fold(Message::assistant(""), Message::with_call);
        log.extend(Some(calling).filter(Message::has_calls));
        log.push(message.clone());
    }
    let (_, trimmed, mut messages) = aged(&policy, log, None, Moment::BeforeCall, None);
    messages.retain(|message| message.calls().all(|call| call.name != FRAME_TOOL));
    let messages = written(messages.iter().map(|message| &**message));
    json!({"trimmed": trimmed, "messages": messages})
}

pub(super) fn retention(input: &Value) -> Value {
    let mut policy = preset("retention");
    let prefix = &mut policy.ageing.prefix;
    prefix.input_budget = figure(input, "input_token_budget").unwrap_or(0);
    prefix.enabled = prefix.input_budget > 0;
    prefix.chars = number(&input["tool_result_retention_chars"]);
    let usage = Usage {
        input: input["input_tokens"].as_u64().unwrap(),
        ..Usage::default()
    };
    let log = messages(&input["messages"]);
    let (note, _, messages) = aged(&policy, log, Some(usage), Moment::AfterAnswer, None);
    // The design marks what it cut only in the text.
    let mut messages = in_words(&messages);
    for message in messages.as_array_mut().into_iter().flatten() {
        message
            .as_object_mut()
            .map(|fields| fields.remove("trimmed"));
    }
    let stderr = note.map_or_else(String::new, |note| note + "\n");
    json!({"messages": messages, "stderr": stderr})
}
