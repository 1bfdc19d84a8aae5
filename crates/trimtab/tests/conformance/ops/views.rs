//! Views, trimming by budget, retention.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::engine::policy::{Moment, Policy};
use trimtab::engine::view::policy::CompiledViews;
use trimtab::engine::view::{
    CapUnit, KeptLines, LineCountHeader, MiddleCut, Shape, Spill, ViewContext, view,
};
use trimtab::model::{Call, Message, Output, Part, Usage};
use trimtab::session::Limits;
use trimtab::store::{FolderStore, MemoryStore, SessionId, Store};

use super::{Must, Ran, aged, figure, message, messages, number, written};
use crate::front::{admitted, in_words, open_in, preset};

/// The tool that outputs of cases come from where the case has no call for them.
const FRAME_TOOL: &str = "frame_tool";
/// Makes an output longer than the note about its end, which otherwise would not be worth it.
const FILLER: &str = "(filler)";

/// What a session would send of a message that comes in, behind the call of its output.
fn shown(store: &Arc<dyn Store>, policy: Policy, message: Message) -> Ran<Arc<Message>> {
    let calls = message.outputs().map(|output| {
        let tool = output.tool.as_deref().filter(|tool| !tool.is_empty());
        Call::new(output.call_id.as_str(), tool.unwrap_or("tool"), "{}")
    });
    let calling = calls.fold(Message::assistant(""), Message::with_call);
    let mut log = vec![Message::user("q")];
    log.extend(Some(calling).filter(Message::has_calls));
    log.push(message);
    let views = CompiledViews::new(&policy.views).must("views")?;
    let session = open_in(Arc::clone(store), policy, Limits::default())?;
    let mut session = admitted(session, log)?;
    let last = session.window().must("window")?.messages().last();
    let mut sent = Message::clone(last.must("message")?);
    let whole = sent.parts.iter_mut().filter_map(|part| match part {
        Part::Output(output) if !output.trimmed => Some(output),
        _ => None,
    });
    for output in whole {
        show_short_one(store.as_ref(), session.id(), &views, output)?;
    }
    Ok(Arc::new(sent))
}

/// No session shows an output longer than it came, and the outputs of most cases are shorter than
/// the notes of a design. What the design makes of these is for the shape to say.
fn show_short_one(
    store: &dyn Store,
    session: &SessionId,
    views: &CompiledViews,
    output: &mut Output,
) -> Ran<()> {
    let [Part::Text(whole)] = output.content.as_slice() else {
        return Ok(());
    };
    let text = whole.text.clone();
    let shape = views.shape(output.tool.as_deref().unwrap_or_default());
    let spills = matches!(shape, Shape::Limits(limits) if limits.spills(&text));
    let stored = output.stored.as_ref().filter(|_| spills);
    let file = stored.map(|stored| store.spill(session, stored.id()));
    let spill = file.transpose().must("file")?.map(|file| Spill::Saved {
        path: file.path.to_string_lossy().into_owned(),
        sha256: file.sha256,
    });
    let given = ViewContext {
        stored: output.stored.as_ref(),
        spill: spill.as_ref(),
        ..ViewContext::default()
    };
    if let Cow::Owned(cut) = view(&text, shape, &given) {
        if cut.len() < text.len() && cut.chars().count() <= text.chars().count() {
            return Err(format!("a session shows {text}, which could be shorter"));
        }
        *output = output.with_content(vec![Part::text(cut)]);
        output.trimmed = true;
    }
    Ok(())
}

fn in_memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn output_of(message: &Message) -> Ran<Output> {
    message.outputs().next().cloned().must("output")
}

pub(super) fn head_lines(input: &Value) -> Ran {
    let (config, came) = (&input["config"], message(&input["message"])?);
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
    let sent = shown(&store, policy, came)?;
    let output = output_of(&sent)?;
    // The id of a ref is the store's to choose: only its spelling is taken from the case.
    let session = SessionId::new("case").must("session")?;
    let stored = output.stored.must("ref")?;
    let record = store
        .metadata(&session, stored.id())
        .must("output")?
        .reference;
    let id = spelled(&output.call_id);
    let content = written([&*sent])[0]["content"].to_string();
    let content: Value =
        serde_json::from_str(&content.replace(stored.id(), &id)).must("content")?;
    Ok(json!({
        "content": content, "trimmed": output.trimmed, "output_ref_id": id, "output_ref": {
            "id": id, "byte_size": record.byte_size(), "line_count": record.line_count(),
        },
    }))
}

/// A session always has a store, and keeps every output: what an output looks like without one
/// is for the view alone to say.
fn without_store(policy: &Policy, came: &Message) -> Ran {
    let output = output_of(came)?;
    let text = output.text();
    let view = view(&text, &policy.views.default, &ViewContext::default());
    Ok(json!({"content": view, "trimmed": view != text, "output_ref_id": null}))
}

/// How the first design's own store names a ref.
fn spelled(call: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    call.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

pub(super) fn limits(input: &Value) -> Ran {
    let (text, limits) = (input["text"].as_str().must("text")?, &input["limits"]);
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
    let folder = tempfile::tempdir().must("folder")?;
    let store = if spills {
        Arc::new(FolderStore::open(folder.path()).must("store")?)
    } else {
        in_memory()
    };
    let output = output_of(&*shown(&store, policy, Message::output("c", text))?)?;
    let text = output.text();
    let kind = match (
        text.contains(&*folder.path().to_string_lossy()),
        output.trimmed,
    ) {
        (true, _) => "spilled",
        (false, true) => "truncated",
        (false, false) => "unchanged",
    };
    Ok(json!({"kind": kind, "text": text, "sha256": text.rsplit(' ').next()}))
}

pub(super) fn truncated(input: &Value) -> Ran {
    codex(input, LineCountHeader::Never)
}

pub(super) fn formatted(input: &Value) -> Ran {
    codex(input, LineCountHeader::Always)
}

/// How Codex cuts an output: no buffer, tokens by bytes.
fn codex(input: &Value, header: LineCountHeader) -> Ran {
    let policy = &input["policy"];
    let (unit, max) = match figure_or_zero(policy, "tokens") {
        Some(tokens) => (CapUnit::TokensByBytes, tokens),
        None => (
            CapUnit::Bytes,
            figure_or_zero(policy, "bytes").must("bytes")?,
        ),
    };
    let shape = MiddleCut {
        max: Some(max),
        unit,
        buffer_percent: 100,
        header,
        ..MiddleCut::default()
    };
    let text = input["content"].as_str().must("content")?;
    let mut policy = preset("checkpoint");
    policy.views.default = Shape::Middle(shape);
    let output = output_of(&*shown(&in_memory(), policy, Message::output("c", text))?)?;
    Ok(json!({"content": output.text(), "original_tokens": shape.measure(text)}))
}

fn figure_or_zero(input: &Value, key: &str) -> Option<u64> {
    input[key].as_u64()
}

/// What the second design does when a message comes: only a tool's output is cut.
pub(super) fn added(input: &Value) -> Ran {
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
            shape.per_token = usize::try_from(chars)
                .must("approx_chars_per_token")?
                .try_into()
                .must("approx_chars_per_token")?;
        }
    }
    let sent = shown(&in_memory(), policy, message(&input["message"])?)?;
    let truncated = sent.outputs().any(|output| output.trimmed);
    Ok(json!({"truncated": truncated, "content": sent.text()}))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a factor of a case, 1.2 or so"
)]
fn percent(factor: f64) -> u64 {
    (factor * 100.0).round() as u64
}

pub(super) fn trimmed(input: &Value) -> Ran {
    let mut policy = preset("refs");
    policy.ageing.placeholder.budget.tokens = Some(number(&input["budget_tokens"]) as u64);
    // Outputs without a call are not sent, and a budget counts what is.
    let case = messages(&input["messages"])?;
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
    let (_, trimmed, mut messages) = aged(&policy, log, None, Moment::BeforeCall, None)?;
    messages.retain(|message| message.calls().all(|call| call.name != FRAME_TOOL));
    let messages = written(messages.iter().map(|message| &**message));
    Ok(json!({"trimmed": trimmed, "messages": messages}))
}

pub(super) fn retention(input: &Value) -> Ran {
    let mut policy = preset("retention");
    let prefix = &mut policy.ageing.prefix;
    prefix.input_budget = figure(input, "input_token_budget").unwrap_or(0);
    prefix.enabled = prefix.input_budget > 0;
    prefix.chars = number(&input["tool_result_retention_chars"]);
    let usage = Usage {
        input: input["input_tokens"].as_u64().must("input_tokens")?,
        ..Usage::default()
    };
    let chars = policy.ageing.prefix.chars;
    let mut log = messages(&input["messages"])?;
    let parts = log.iter_mut().flat_map(|message| &mut message.parts);
    for part in parts.filter_map(|part| match part {
        Part::Output(output) => Some(&mut output.content),
        _ => None,
    }) {
        if let [Part::Text(text)] = part.as_mut_slice()
            && text.text.chars().count() > chars
            && !text.text.ends_with("[truncated for context management]")
        {
            text.text.push_str(&FILLER.repeat(20));
        }
    }
    let (note, _, messages) = aged(&policy, log, Some(usage), Moment::AfterAnswer, None)?;
    // The design marks what it cut only in the text.
    let messages = in_words(&messages).to_string().replace(FILLER, "");
    let mut messages: Value = serde_json::from_str(&messages).must("messages")?;
    for message in messages.as_array_mut().into_iter().flatten() {
        message
            .as_object_mut()
            .map(|fields| fields.remove("trimmed"));
    }
    let stderr = note.map_or_else(String::new, |note| note + "\n");
    Ok(json!({"messages": messages, "stderr": stderr}))
}
