//! Bodies of Responses.

use crate::shapes::{Dice, Entries, Json, common_fields, object, raw, text};

pub(crate) fn responses(dice: &mut Dice, bytes: usize) -> (Json, bool) {
    let mut entries = Entries::default();
    let long = text(dice.long_text(bytes));
    let mut body = object([("model", text("gpt-x"))]);
    if dice.once_in(12) {
        return (common_fields(dice, body.with("input", long)), false);
    }
    if dice.once_in(2) {
        body = body.with("instructions", long);
    } else {
        let role = dice.pick(&["user", "developer", "system", "assistant"]);
        entries.push(said(role, long));
    }
    for _ in 0..=dice.below(8) {
        entry(dice, &mut entries);
    }
    end(dice, &mut entries);
    body = common_fields(dice, body.with("input", Json::List(entries.list)));
    let fields = [
        ("tools", tools()),
        ("store", raw("false")),
        ("include", raw(r#"["reasoning.encrypted_content"]"#)),
        ("reasoning", raw(r#"{"effort": "low", "summary": "auto"}"#)),
        ("prompt_cache_key", text(format!("{:x}", dice.number()))),
        ("previous_response_id", text("resp_1")),
        ("max_output_tokens", raw("100")),
    ];
    for (at, (name, value)) in fields.into_iter().enumerate() {
        if dice.once_in(if at == 5 { 12 } else { 3 }) {
            body = body.with(name, value);
        }
    }
    (body, entries.is_refused)
}

fn said(role: &str, content: Json) -> Json {
    object([
        ("type", text("message")),
        ("role", text(role)),
        ("content", content),
    ])
}

fn entry(dice: &mut Dice, entries: &mut Entries) {
    let words = text(dice.text());
    let item = match dice.below(18) {
        0 => said("user", words),
        1 => said("assistant", words).with("id", text("msg_1")),
        2 => object([("role", text("user")), ("content", words)]),
        3 => said("user", text("")),
        4 => said("assistant", Json::List(vec![refusal(words)])),
        5 => said("developer", words),
        6 => said("user", Json::List(vec![input(dice), input(dice)])),
        7 => raw(r#"{"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}"#),
        8 => {
            entries.push(raw(r#"{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}"#));
            said("assistant", Json::List(vec![spoken(words)]))
        }
        9 => raw(
            r#"{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}"#,
        ),
        10 => {
            raw(r#"{"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}"#)
        }
        11 => raw(r#"{"type": "x_unknown", "id": "x_1", "value": 10000000000000000000000}"#),
        12 if dice.once_in(4) => raw(r#"{"type": "item_reference", "id": "msg_0"}"#),
        13 => said("assistant", Json::List(vec![spoken(words)])).with("status", text("completed")),
        _ => return round(dice, entries),
    };
    entries.push(item);
}

fn refusal(words: Json) -> Json {
    object([("type", text("refusal")), ("refusal", words)])
}

fn spoken(words: Json) -> Json {
    let part = object([("type", text("output_text")), ("text", words)]);
    part.with("annotations", raw("[]"))
}

fn input(dice: &mut Dice) -> Json {
    let all = [
        object([("type", text("input_text")), ("text", text(dice.text()))]),
        raw(r#"{"type": "input_text", "text": ""}"#),
        raw(
            r#"{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}"#,
        ),
        raw(r#"{"type": "input_file", "file_id": "file-1"}"#),
        raw(r#"{"type": "input_audio", "data": "UklGRg==", "format": "wav"}"#),
        raw(r#"{"type": "x_unknown"}"#),
    ];
    dice.pick(&all)
}

fn round(dice: &mut Dice, entries: &mut Entries) {
    let mut rounds: Vec<(Json, Json)> = (0..=dice.below(3))
        .map(|_| {
            let id = entries.call_id();
            pair(dice, &id)
        })
        .collect();
    for (call, _) in &rounds {
        entries.push(call.clone());
    }
    if dice.once_in(3) {
        // The provider finds an output by its id, wherever it stands behind the call.
        entries.push(said("developer", text(dice.text())));
    }
    if dice.once_in(2) {
        rounds.reverse();
    }
    for (_, output) in rounds {
        entries.push(output);
    }
}

/// A call and its output.
fn pair(dice: &mut Dice, id: &str) -> (Json, Json) {
    let item = |kind: &str| object([("type", text(kind)), ("call_id", text(id))]);
    let (kind, fields) = match dice.below(5) {
        0 => (
            "custom_tool_call",
            [("name", text("c")), ("input", text("free"))],
        ),
        1 => (
            "local_shell_call",
            [
                ("status", text("completed")),
                ("action", raw(r#"{"type": "exec", "command": ["ls"]}"#)),
            ],
        ),
        2 => (
            "computer_call",
            [
                ("action", raw(r#"{"type": "click", "x": 1, "y": 2}"#)),
                ("status", text("completed")),
            ],
        ),
        _ => (
            "function_call",
            [("name", text("read")), ("arguments", text("{}"))],
        ),
    };
    let mut call = item(kind);
    for (name, value) in fields {
        call = call.with(name, value);
    }
    let output = match dice.below(3) {
        0 => Json::List(vec![object([
            ("type", text("input_text")),
            ("text", text(dice.text())),
        ])]),
        _ => text(dice.text()),
    };
    (call, item(&format!("{kind}_output")).with("output", output))
}

fn end(dice: &mut Dice, entries: &mut Entries) {
    match dice.below(12) {
        0 => entries.push(raw(
            r#"{"type": "reasoning", "summary": [], "encrypted_content": "gAAAB"}"#,
        )),
        1 => {
            entries.push(raw(r#"{"type": "reasoning", "id": "rs_9", "summary": []}"#));
            entries.is_refused = true;
        }
        2 => {
            let id = entries.call_id();
            entries.push(pair(dice, &id).0);
            entries.is_refused = true;
        }
        3 => entries.push(said("assistant", text("so"))),
        _ => entries.push(said("user", text(dice.text()))),
    }
}

fn tools() -> Json {
    raw(
        r#"[{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}},
        {"type": "web_search_preview"}, {"type": "mcp", "server_label": "s", "server_url": "https://example.org"},
        {"type": "custom", "name": "c"}, {"type": "local_shell"}]"#,
    )
}
