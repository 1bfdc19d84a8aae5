//! Messages of any shape round-trip.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use trimtab_model::RawJson;
use trimtab_wire::{chat, messages, responses};

/// Any JSON, not too deep, with names and texts that mean something to the readers.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        name().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "text",
        "id",
        "name",
        "content",
        "input",
        "output",
        "arguments",
        "function",
        "call_id",
        "tool_use_id",
        "tool_call_id",
        "is_error",
        "thinking",
        "signature",
        "data",
        "source",
        "summary",
        "encrypted_content",
        "role",
        "status",
        "x",
        "message",
        "tool_use",
        "tool_result",
        "redacted_thinking",
        "image",
        "image_url",
        "input_text",
        "output_text",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        // The names of our marks, which mean nothing if a client sends them.
        "trimtab:type",
        "trimtab:field",
        "trimtab:joined",
        "trimtab:content",
        "trimtab:nameless",
        "trimtab:list",
        "trimtab:raw",
        "trimtab:item",
        "trimtab:client:type",
        "reasoning",
        "compaction",
        "metadata",
        "kind",
        "usage",
        "trimmed",
        "output_ref",
        "stop_reason",
        "tool_calls",
        "reasoning_content",
        "custom",
        "local_shell_call",
        "web_search_call",
    ])
    .prop_map(str::to_owned)
}

/// An object with the given fields and any others.
fn with(fields: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let others = prop::collection::btree_map(name(), any_json(), 0..7);
    (others, fields).prop_map(|(others, fields)| {
        let mut object: Map<String, Value> = others.into_iter().collect();
        object.extend(fields.as_object().cloned().unwrap_or_default());
        Value::Object(object)
    })
}

fn role(roles: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::sample::select(roles).prop_map(|role| json!({ "role": role }))
}

/// The same JSON in which the fields of objects are there twice, some of them with a value that
/// the second overrules; `seed` says which.
fn twice(value: &Value, seed: &mut u64) -> String {
    match value {
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(|value| twice(value, seed)).collect();
            format!("[{}]", list.join(","))
        }
        Value::Object(fields) => {
            let mut written: Vec<String> = Vec::new();
            for (name, value) in fields {
                let overruled = [
                    "null",
                    "\"overruled\"",
                    "[{\"type\":\"text\"}]",
                    "true",
                    "{}",
                ];
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = usize::try_from(*seed >> 33).unwrap() % (3 * overruled.len());
                if let Some(overruled) = overruled.get(at) {
                    written.insert(0, format!("{}:{overruled}", json!(name)));
                }
                written.push(format!("{}:{}", json!(name), twice(value, seed)));
            }
            format!("{{{}}}", written.join(","))
        }
        other => other.to_string(),
    }
}

fn values(raw: &[RawJson]) -> Vec<Value> {
    raw.iter().map(RawJson::to_value).collect()
}

proptest! {
    #![proptest_config(trimtab_testkit::cases(2_000))]

    #[test]
    fn chat_messages_round_trip(message in with(role(&["system", "developer", "user", "assistant", "tool", "function", "critic"]))) {
        let read = chat::read_message(&message.to_string()).unwrap();
        prop_assert_eq!(values(&chat::write_message(&read)), [message]);
    }

    #[test]
    fn messages_parts_round_trip(
        parts in prop::collection::vec(with(Just(json!({}))), 0..5),
        role in prop::sample::select(vec!["user", "assistant"]),
    ) {
        let message = json!({"role": role, "content": parts});
        let read = messages::read_message(&message.to_string()).unwrap();
        prop_assert_eq!(values(&messages::write_request(&read).messages), [message]);
    }

    #[test]
    fn responses_entries_round_trip(entries in prop::collection::vec(with(Just(json!({}))), 0..6)) {
        let read = responses::read_input(&json!(entries).to_string()).unwrap();
        prop_assert_eq!(values(&responses::write_input(&read)), entries);
    }

    #[test]
    fn last_of_duplicate_fields_wins(
        chat in with(role(&["system", "user", "assistant", "tool", "function", "critic"])),
        parts in prop::collection::vec(with(Just(json!({}))), 0..5),
        role in prop::sample::select(vec!["user", "assistant"]),
        mut seed in any::<u64>(),
    ) {
        let text = twice(&chat, &mut seed);
        prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &chat);
        let read = chat::read_message(&text).unwrap();
        prop_assert_eq!(values(&chat::write_message(&read)), [chat], "{}", text);

        let message = json!({"role": role, "content": parts});
        let text = twice(&message, &mut seed);
        let read = messages::read_message(&text).unwrap();
        prop_assert_eq!(values(&messages::write_request(&read).messages), [message], "{}", text);

        let text = twice(&json!(parts), &mut seed);
        let read = responses::read_input(&text).unwrap();
        prop_assert_eq!(values(&responses::write_input(&read)), parts, "{}", text);
    }

    #[test]
    fn no_reader_panics(text in ".{0,200}", value in any_json()) {
        for text in [text, value.to_string(), format!("[{value}]"), format!("{{\"messages\":{value}}}")] {
            let reader = trimtab_wire::transcript::TranscriptReader::new(text.as_bytes());
            prop_assert!(reader.count() <= 200);
        }
    }
}
