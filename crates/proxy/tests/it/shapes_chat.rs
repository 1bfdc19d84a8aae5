//! Bodies of Chat Completions.

use crate::shapes::{Dice, Entries, Json, common_fields, object, raw, text};

pub(crate) fn chat(dice: &mut Dice, bytes: usize) -> (Json, bool) {
    let mut entries = Entries::default();
    if dice.once_in(2) {
        let role = dice.pick(&["system", "developer"]);
        let long = dice.long_text(bytes);
        entries.push(said(role, text(long)));
    } else {
        let long = dice.long_text(bytes);
        let role = dice.pick(&["user", "assistant"]);
        entries.push(said(role, text(long)));
    }
    for _ in 0..=dice.below(8) {
        entry(dice, &mut entries);
    }
    if dice.once_in(8) {
        // Asked for and not answered: refused by the provider.
        let id = entries.call_id();
        entries.push(calls(dice, &[id]));
        entries.is_refused = true;
    }
    let body = object([
        ("model", text("gpt-x")),
        ("messages", Json::List(entries.list)),
    ]);
    let fields = [
        ("tools", tools()),
        ("stop", raw(r#"["END", "\u0000"]"#)),
        ("max_completion_tokens", raw("100")),
        ("response_format", raw(r#"{"type": "json_object"}"#)),
        ("logit_bias", raw(r#"{"50256": -100}"#)),
        ("parallel_tool_calls", raw("false")),
    ];
    let mut body = common_fields(dice, body);
    for (name, value) in fields {
        if dice.once_in(3) {
            body = body.with(name, value);
        }
    }
    (body, entries.is_refused)
}

fn said(role: &str, content: Json) -> Json {
    object([("role", text(role)), ("content", content)])
}

fn entry(dice: &mut Dice, entries: &mut Entries) {
    let words = text(dice.text());
    let message = match dice.below(20) {
        0 => said("assistant", words),
        1 => said("assistant", text("")),
        2 => said(dice.pick(&["user", "assistant", "system"]), raw("null")),
        3 => said(dice.pick(&["user", "assistant"]), raw("[]")),
        4 => object([("role", text("assistant"))]),
        5 => said("system", words),
        6 => said("developer", text("")),
        7 => said("user", words).with("name", text("ann")),
        8 => said(dice.pick(&["critic", "", "USER"]), words),
        9 => said("assistant", raw("null")).with("refusal", words),
        10 => said(
            "assistant",
            Json::List(vec![object([
                ("type", text("refusal")),
                ("refusal", words),
            ])]),
        ),
        11 => said("assistant", raw("null")).with("reasoning_content", words),
        12 => said("assistant", words)
            .with("reasoning", text("hm"))
            .with("annotations", raw("[]")),
        13 => said("user", Json::List(parts(dice))),
        14 => said("user", text(" \n")),
        15 => return legacy(dice, entries),
        _ => return round(dice, entries),
    };
    let message = match dice.below(12) {
        0 => message.with("x_field", raw("12345678901234567890123")),
        1 => message.with(
            "metadata",
            raw(r#"{"agent_visible": false, "kind": "summary"}"#),
        ),
        _ => message,
    };
    entries.push(message);
}

fn parts(dice: &mut Dice) -> Vec<Json> {
    let all = [
        raw(r#"{"type": "text", "text": ""}"#),
        raw(
            r#"{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}}"#,
        ),
        raw(r#"{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}"#),
        raw(r#"{"type": "file", "file": {"file_id": "file-1"}}"#),
        raw(r#"{"type": "x_unknown", "value": 1.0}"#),
        raw(r#"{"text": "no type"}"#),
        raw(r#""a bare string""#),
        object([("type", text("text")), ("text", text(dice.text()))]),
    ];
    let count = 1 + dice.below(4);
    (0..count).map(|_| dice.pick(&all)).collect()
}

fn calls(dice: &mut Dice, ids: &[String]) -> Json {
    let call = |id: &String| match dice.below(4) {
        0 => object([
            ("id", text(id.as_str())),
            ("type", text("custom")),
            ("custom", raw(r#"{"name": "c", "input": "free text"}"#)),
        ]),
        _ => object([
            ("id", text(id.as_str())),
            ("type", text("function")),
            (
                "function",
                raw(r#"{"name": "read", "arguments": "{\"a\": 1"}"#),
            ),
        ]),
    };
    let calls = ids.iter().map(call).collect();
    let content = dice.pick(&["null", "\"\"", "\"I look.\""]);
    said("assistant", raw(content)).with("tool_calls", Json::List(calls))
}

fn round(dice: &mut Dice, entries: &mut Entries) {
    let mut ids: Vec<String> = (0..=dice.below(3)).map(|_| entries.call_id()).collect();
    entries.push(calls(dice, &ids));
    if dice.once_in(2) {
        ids.reverse();
    }
    for id in ids {
        let content = match dice.below(4) {
            0 => text(""),
            1 => Json::List(vec![object([
                ("type", text("text")),
                ("text", text(dice.text())),
            ])]),
            _ => text(dice.text()),
        };
        let output = object([("role", text("tool")), ("tool_call_id", text(id))]);
        entries.push(output.with("content", content));
    }
}

fn legacy(dice: &mut Dice, entries: &mut Entries) {
    let call = raw(r#"{"name": "read", "arguments": "{}"}"#);
    entries.push(said("assistant", raw("null")).with("function_call", call));
    let output = object([("role", text("function")), ("name", text("read"))]);
    entries.push(output.with("content", text(dice.text())));
}

fn tools() -> Json {
    raw(
        r#"[{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}, "strict": true}},
        {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}}, {"type": "web_search"}]"#,
    )
}
