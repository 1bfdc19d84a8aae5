//! Bodies of Messages.

use crate::shapes::{Dice, Entries, Json, common_fields, object, raw, text};

pub(crate) fn messages(dice: &mut Dice, bytes: usize) -> (Json, bool) {
    let mut entries = Entries::default();
    let long = text(dice.long_text(bytes));
    let in_system = dice.once_in(2);
    let mut body = object([("model", text("claude-x")), ("max_tokens", raw("100"))]);
    if in_system {
        body = body.with("system", system(dice, long));
        if dice.once_in(10) {
            entries.push(said("assistant", text("I begin.")));
            entries.is_refused = true;
        } else {
            entries.push(said("user", text(dice.text())));
        }
    } else {
        entries.push(said("user", long));
    }
    for _ in 0..=dice.below(8) {
        entry(dice, &mut entries);
    }
    end(dice, &mut entries);
    body = common_fields(dice, body.with("messages", Json::List(entries.list)));
    let fields = [
        ("tools", tools()),
        ("stop_sequences", raw(r#"["\n\nHuman:"]"#)),
        (
            "thinking",
            raw(r#"{"type": "enabled", "budget_tokens": 50}"#),
        ),
        ("tool_choice", raw(r#"{"type": "auto"}"#)),
        ("context_management", raw(r#"{"edits": []}"#)),
    ];
    for (name, value) in fields {
        if dice.once_in(3) {
            body = body.with(name, value);
        }
    }
    (body, entries.is_refused)
}

fn system(dice: &mut Dice, long: Json) -> Json {
    if dice.once_in(2) {
        return long;
    }
    let marker = raw(r#"{"type": "ephemeral", "ttl": "1h"}"#);
    let part = object([("type", text("text")), ("text", long)]);
    Json::List(vec![part.with("cache_control", marker)])
}

fn said(role: &str, content: Json) -> Json {
    object([("role", text(role)), ("content", content)])
}

fn block(words: Json) -> Json {
    object([("type", text("text")), ("text", words)])
}

fn entry(dice: &mut Dice, entries: &mut Entries) {
    let words = text(dice.text());
    let message = match dice.below(14) {
        0 => said("assistant", words),
        1 => said("user", words),
        2 => said("assistant", Json::List(vec![thought(dice), block(words)])),
        3 => said(
            "assistant",
            Json::List(vec![
                raw(r#"{"type": "redacted_thinking", "data": "xx=="}"#),
                block(words),
            ]),
        ),
        4 => said("user", Json::List(vec![media(dice), block(words)])),
        5 => said("system", raw("[]")).with("output_config", raw("{}")),
        6 => said(
            "assistant",
            Json::List(vec![
                raw(
                    r#"{"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}}"#,
                ),
                raw(r#"{"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}"#),
                block(words),
            ]),
        ),
        7 => said(
            "user",
            Json::List(vec![
                block(words),
                raw(r#"{"type": "x_unknown", "n": 1.10}"#),
            ]),
        ),
        8 => said("user", words).with("x_field", raw("-0.0")),
        _ => return round(dice, entries),
    };
    entries.push(message);
}

fn thought(dice: &mut Dice) -> Json {
    object([
        ("type", text("thinking")),
        ("thinking", text(dice.text())),
        ("signature", text("c2ln")),
    ])
}

fn media(dice: &mut Dice) -> Json {
    let all = [
        r#"{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}"#,
        r#"{"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}, "citations": {"enabled": true}}"#,
        r#"{"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]}"#,
    ];
    raw(dice.pick(&all))
}

fn round(dice: &mut Dice, entries: &mut Entries) {
    let mut ids: Vec<String> = (0..=dice.below(3)).map(|_| entries.call_id()).collect();
    let call = |id: &String| {
        object([
            ("type", text("tool_use")),
            ("id", text(id.as_str())),
            ("name", text("read")),
            ("input", raw(r#"{"n": 1.0}"#)),
        ])
    };
    let asks: Vec<Json> = ids.iter().map(call).collect();
    if dice.once_in(4) {
        // Messages of one role in a row are one to the provider.
        let each = asks
            .into_iter()
            .map(|call| said("assistant", Json::List(vec![call])));
        each.for_each(|message| entries.push(message));
    } else {
        let mut content = vec![thought(dice)];
        content.truncate(dice.below(2));
        content.extend(asks);
        entries.push(said("assistant", Json::List(content)));
    }
    if dice.once_in(2) {
        ids.reverse();
    }
    let mut outputs: Vec<Json> = ids.iter().map(|id| output(dice, id)).collect();
    if dice.once_in(4) {
        let each = outputs
            .into_iter()
            .map(|output| said("user", Json::List(vec![output])));
        return each.for_each(|message| entries.push(message));
    }
    if dice.once_in(3) {
        outputs.push(block(text(dice.text())));
    }
    entries.push(said("user", Json::List(outputs)));
}

fn output(dice: &mut Dice, id: &str) -> Json {
    let output = object([("type", text("tool_result")), ("tool_use_id", text(id))]);
    match dice.below(5) {
        0 => output,
        1 => output.with("content", Json::List(vec![block(text(dice.text()))])),
        2 => output
            .with("content", text(""))
            .with("is_error", raw("true")),
        _ => output.with("content", text(dice.text())),
    }
}

fn end(dice: &mut Dice, entries: &mut Entries) {
    match dice.below(14) {
        0 => entries.push(said("assistant", text("{\"answer\":"))),
        1 => entries.push(said("assistant", raw("[]"))),
        2 => entries.push(said("assistant", text(""))),
        3 => {
            let id = entries.call_id();
            let call = object([
                ("type", text("tool_use")),
                ("id", text(id)),
                ("name", text("read")),
                ("input", raw("{}")),
            ]);
            entries.push(said("assistant", Json::List(vec![call])));
            entries.is_refused = true;
        }
        4 => {
            entries.push(said("user", text("")));
            entries.push(said("user", text(dice.text())));
            entries.is_refused = true;
        }
        _ => entries.push(said("user", text(dice.text()))),
    }
}

fn tools() -> Json {
    raw(
        r#"[{"name": "read", "input_schema": {"type": "object", "properties": {}}, "cache_control": {"type": "ephemeral"}},
        {"type": "bash_20250124", "name": "bash"}, {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]"#,
    )
}
