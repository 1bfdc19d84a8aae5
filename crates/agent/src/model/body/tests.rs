use std::sync::Arc;

use serde_json::{Value, json};
use trimtab_model::{Call, MessageKind, Output, Part, Usage};

use super::*;
use crate::model::answer::note_dialect;

fn body(dialect: Dialect, base: &str, request: &ModelRequest) -> Value {
    let writer = BodyWriter {
        dialect,
        endpoint: &Endpoint::new(base).unwrap(),
        sent: &SentCache::default(),
        quirks: &RefusedFields::default(),
        stream: true,
        fields: &[("temperature".to_owned(), RawJson::of(&0))],
    };
    serde_json::from_str(&writer.body(request)).unwrap()
}

fn request() -> ModelRequest {
    let mut asks = Message::assistant("").with_call(Call::new("c1", "look", "{\"a\":1}"));
    asks.meta.usage = Some(Usage::default());
    asks.meta.stop_reason = Some("tool_calls".to_owned());
    let mut output = Output::new("c1", "no such file");
    output.is_error = true;
    output.trimmed = true;
    output.tool = Some("look".to_owned());
    let messages = vec![
        Message::system("be good"),
        Message::user("look").with_kind(MessageKind::ToolResult),
        asks,
        Message::new(Role::Tool, vec![Part::Output(output)]),
    ];
    ModelRequest {
        tools: Arc::new([ToolDefinition::new(
            "look",
            "Looks.",
            json!({"type": "object"}),
        )]),
        max_output: Some(100),
        ..ModelRequest::new("m", messages.into_iter().map(Arc::new).collect())
    }
}

#[test]
fn chat_has_only_fields_of_the_dialect() {
    let body = body(Dialect::Chat, "http://h/v1", &request());
    assert_eq!(
        body["messages"][2],
        json!({
            "role": "assistant", "content": null,
            "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "look", "arguments": "{\"a\":1}"}}],
        })
    );
    assert_eq!(
        body["messages"][3],
        json!({"role": "tool", "tool_call_id": "c1", "content": "no such file"})
    );
    assert_eq!(body["max_tokens"], 100);
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!(body["temperature"], 0);
}

#[test]
fn newest_chat_models_use_max_completion_tokens() {
    let body = body(Dialect::Chat, "https://api.openai.com/v1", &request());
    assert_eq!(body["max_completion_tokens"], 100);
    assert!(body.get("max_tokens").is_none());
}

#[test]
fn responses_requests_are_not_stored() {
    let body = body(
        Dialect::Responses,
        "https://api.openai.com/v1",
        &ModelRequest {
            conversation: Some("s1".to_owned()),
            ..request()
        },
    );
    assert_eq!(body["instructions"], "be good");
    assert_eq!(body["store"], false);
    assert_eq!(body["prompt_cache_key"], "s1");
    assert_eq!(body["input"][1]["type"], "function_call");
    assert_eq!(
        body["input"][2],
        json!({"type": "function_call_output", "call_id": "c1", "output": "no such file"})
    );
}

#[test]
fn reasoning_model_is_asked_for_encrypted_reasoning() {
    let mut request = request();
    for (model, asked) in [
        ("gpt-5", true),
        ("gpt-4o", false),
        ("a-model-of-mine", true),
    ] {
        request.model = model.to_owned();
        let body = body(Dialect::Responses, "https://api.openai.com/v1", &request);
        assert_eq!(body.get("include").is_some(), asked, "{model}");
    }
}

#[test]
fn answer_of_another_dialect_loses_its_specific_fields() {
    let mut call = Call::new("c1", "look", "{}");
    call.extra
        .push(("extra_content".to_owned(), RawJson::of(&"x")));
    let mut asks = Message::assistant("").with_call(call);
    asks.parts.insert(0, Part::reasoning("hm"));
    note_dialect(&mut asks, Dialect::Chat);
    let messages = vec![Message::user("look"), asks, Message::output("c1", "seen")];
    let request = ModelRequest::new("m", messages.into_iter().map(Arc::new).collect());
    let text = |dialect| body(dialect, "https://h/v1", &request).to_string();
    let own = text(Dialect::Chat);
    assert!(own.contains("extra_content") && own.contains("hm"), "{own}");
    for dialect in [Dialect::Responses, Dialect::Messages] {
        let other = text(dialect);
        assert!(
            !other.contains("extra_content") && !other.contains("hm"),
            "{other}"
        );
    }
    assert!(!own.contains("trimtab"), "{own}");
}

#[test]
fn messages_carry_at_most_four_markers() {
    let body = body(Dialect::Messages, "https://h", &request());
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(body["tools"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(
        body["messages"][0]["content"][0]["cache_control"]["type"],
        "ephemeral"
    );
    let output = &body["messages"][2]["content"][0];
    assert_eq!(output["cache_control"]["type"], "ephemeral");
    assert_eq!(output["is_error"], true);
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
    assert!(body["messages"][1].get("stop_reason").is_none());
}

#[test]
fn only_text_disables_tool_calls() {
    let asked = ModelRequest {
        only_text: true,
        ..request()
    };
    let choice = |dialect| body(dialect, "http://h/v1", &asked)["tool_choice"].clone();
    assert_eq!(choice(Dialect::Chat), "none");
    assert_eq!(choice(Dialect::Responses), "none");
    assert_eq!(choice(Dialect::Messages), json!({"type": "none"}));
}
