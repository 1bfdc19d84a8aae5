//! Every rule that is broken is answered in the provider's words.

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::upstream::{RequestOutcome, UpstreamOptions};

use crate::client::{Talk, start};

/// Sends a talk with other messages; what the provider says.
async fn refused(dialect: Dialect, messages: Value) -> String {
    changed(dialect, |talk| {
        talk.list().clone_from(messages.as_array().unwrap());
    })
    .await
}

/// Sends a talk that was changed; what the provider says.
async fn changed(dialect: Dialect, change: impl FnOnce(&mut Talk)) -> String {
    let (upstream, client) = start(UpstreamOptions::default()).await;
    let mut talk = Talk::new(dialect, "go");
    change(&mut talk);
    let got = client.post(dialect, &talk.body).await;
    let request = &upstream.requests()[0];
    assert_eq!(request.outcome, RequestOutcome::Refused(got.status));
    assert_eq!(request.violations[0].message, got.message());
    assert!(!upstream.violations().is_empty());
    got.message()
}

fn user() -> Value {
    json!({"role": "user", "content": "go"})
}

fn call(id: &str) -> Value {
    let function = json!({"name": "read", "arguments": "{}"});
    let call = json!({"id": id, "type": "function", "function": function});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

fn output(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "x"})
}

#[tokio::test]
async fn chat_pairs_calls_and_outputs() {
    let said = refused(Dialect::Chat, json!([user(), call("c1"), user()])).await;
    assert_eq!(
        said,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: c1"
    );
    let said = refused(Dialect::Chat, json!([user(), output("c1")])).await;
    assert!(
        said.starts_with("Invalid parameter: messages with role 'tool'"),
        "{said}"
    );
    let said = refused(Dialect::Chat, json!([])).await;
    assert!(
        said.starts_with("Invalid 'messages': empty array"),
        "{said}"
    );
    let empty = json!({"role": "assistant", "content": null});
    let said = refused(Dialect::Chat, json!([user(), empty, user()])).await;
    assert!(said.starts_with("Invalid value for 'content'"), "{said}");
}

#[tokio::test]
async fn chat_checks_fields() {
    let said = changed(Dialect::Chat, |talk| talk.body["model"] = json!(null)).await;
    assert_eq!(said, "you must provide a model parameter");
    let odd = json!({"role": "robot", "content": "x"});
    let said = refused(Dialect::Chat, json!([odd, user()])).await;
    assert!(
        said.starts_with("Invalid value: 'robot'. Supported"),
        "{said}"
    );
    let long = "c".repeat(41);
    let said = refused(Dialect::Chat, json!([user(), call(&long), output(&long)])).await;
    assert!(
        said.contains("maximum length 40, but got a string with length 41"),
        "{said}"
    );
    let mut object = call("c1");
    object["tool_calls"][0]["function"]["arguments"] = json!({"a": 1});
    let said = refused(Dialect::Chat, json!([user(), object, output("c1")])).await;
    assert!(
        said.contains("expected a string, but got an object"),
        "{said}"
    );
    let options = json!({"include_usage": true});
    let said = changed(Dialect::Chat, |talk| talk.body["stream_options"] = options).await;
    assert!(
        said.contains("only allowed when 'stream' is enabled"),
        "{said}"
    );
    let name = json!("bad name");
    let said = changed(Dialect::Chat, |talk| {
        talk.body["tools"][0]["function"]["name"] = name;
    });
    assert!(said.await.contains("tools[0].function.name"));
    let tool = json!({"type": "function", "function": {"name": "f"}});
    let said = changed(Dialect::Chat, |talk| {
        talk.body["tools"] = json!(vec![tool; 129]);
    });
    assert!(said.await.contains("array too long"));
}

#[tokio::test]
async fn responses_pairs_calls_and_outputs() {
    let call = json!({"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "x"});
    let said = refused(Dialect::Responses, json!([user(), call])).await;
    assert_eq!(said, "No tool output found for function call c1.");
    let said = refused(Dialect::Responses, json!([user(), output])).await;
    assert_eq!(
        said,
        "No tool call found for function call output with call_id c1."
    );
    let thought = json!({
        "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x",
    });
    let said = refused(Dialect::Responses, json!([user(), thought, user()])).await;
    assert_eq!(
        said,
        "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    );
    let bare = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let said = refused(Dialect::Responses, json!([user(), bare, call, output])).await;
    assert!(said.starts_with("Item with id 'rs_1' not found."), "{said}");
    let said = changed(Dialect::Responses, |talk| {
        talk.body["previous_response_id"] = json!("resp_1");
    });
    assert_eq!(said.await, "Previous response with id 'resp_1' not found.");
    let said = changed(Dialect::Responses, |talk| talk.body["input"] = json!(null));
    assert!(!said.await.is_empty());
}

fn ask(id: &str) -> Value {
    let part = json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
    json!({"role": "assistant", "content": [part]})
}

fn answer(id: &str) -> Value {
    let part = json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    json!({"role": "user", "content": [part]})
}

#[tokio::test]
async fn messages_pairs_calls_and_outputs() {
    let said = refused(Dialect::Messages, json!([user(), ask("c1"), user()])).await;
    assert_eq!(
        said,
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: \
         c1. Each `tool_use` block must have a corresponding `tool_result` block in the next \
         message."
    );
    let said = refused(
        Dialect::Messages,
        json!([user(), ask("c1"), answer("c1"), answer("c2")]),
    );
    assert_eq!(
        said.await,
        "messages.3.content.0: unexpected `tool_use_id` found in `tool_result` blocks: c2. Each \
         `tool_result` block must have a corresponding `tool_use` block in the previous message."
    );
    let mut twice = answer("c1");
    let part = twice["content"][0].clone();
    twice["content"].as_array_mut().unwrap().push(part);
    let said = refused(Dialect::Messages, json!([user(), ask("c1"), twice])).await;
    assert!(
        said.contains("each tool_use must have a single result"),
        "{said}"
    );
    let again = json!([user(), ask("c1"), answer("c1"), ask("c1"), answer("c1")]);
    let said = refused(Dialect::Messages, again).await;
    assert_eq!(said, "messages.3.content.0: `tool_use` ids must be unique");
    let said = refused(
        Dialect::Messages,
        json!([user(), ask("c.1"), answer("c.1")]),
    )
    .await;
    assert!(said.contains("String should match pattern"), "{said}");
}

#[tokio::test]
async fn messages_checks_shape_and_fields() {
    let said = refused(Dialect::Messages, json!([ask("c1"), answer("c1")])).await;
    assert!(
        said.contains("first message must use the \"user\" role"),
        "{said}"
    );
    let blank = json!({"role": "user", "content": [
        {"type": "text", "text": "go"}, {"type": "text", "text": ""},
    ]});
    let said = refused(Dialect::Messages, json!([blank])).await;
    assert_eq!(said, "messages: text content blocks must be non-empty");
    let words = json!({"role": "assistant", "content": "I"});
    let said = refused(Dialect::Messages, json!([user(), words])).await;
    assert!(
        said.contains("does not support assistant message prefill"),
        "{said}"
    );
    let system = json!({"role": "system", "content": "be"});
    let said = refused(Dialect::Messages, json!([system, user()])).await;
    assert!(said.contains("Unexpected role \"system\""), "{said}");
    let part = json!({"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}});
    let marked = json!([{"role": "user", "content": vec![part; 5]}]);
    let said = refused(Dialect::Messages, marked).await;
    assert_eq!(
        said,
        "A maximum of 4 blocks with cache_control may be provided. Found 5."
    );
    let said = changed(Dialect::Messages, |talk| {
        talk.body["max_tokens"] = json!(null);
    })
    .await;
    assert_eq!(said, "max_tokens: Field required");
    let thinking = json!({"type": "enabled", "budget_tokens": 200});
    let said = changed(Dialect::Messages, |talk| talk.body["thinking"] = thinking).await;
    assert!(said.starts_with("`max_tokens` must be greater than `thinking.budget_tokens`"));
    let tool = json!({"name": "read", "input_schema": {"type": "object"}});
    let said = changed(Dialect::Messages, |talk| {
        talk.body["tools"] = json!([tool, tool]);
    });
    assert_eq!(said.await, "tools: Tool names must be unique.");
}

#[tokio::test]
async fn words_may_be_put_into_the_mouth_of_a_model_that_allows_it() {
    let (_upstream, client) = start(UpstreamOptions {
        prefill: true,
        ..UpstreamOptions::default()
    })
    .await;
    let mut talk = Talk::new(Dialect::Messages, "go");
    talk.list()
        .push(json!({"role": "assistant", "content": "I"}));
    assert_eq!(client.post(Dialect::Messages, &talk.body).await.status, 200);
}

#[tokio::test]
async fn headers_are_checked() {
    let (_upstream, mut client) = start(UpstreamOptions {
        key: Some("secret".to_owned()),
        ..UpstreamOptions::default()
    })
    .await;
    let body = Talk::new(Dialect::Messages, "go").body;
    let got = client.post(Dialect::Messages, &body).await;
    assert_eq!(
        (got.status, got.message().as_str()),
        (401, "invalid x-api-key")
    );
    client.headers.push(("x-api-key", "secret".to_owned()));
    assert_eq!(client.post(Dialect::Messages, &body).await.status, 200);
    client.headers.remove(0);
    let got = client.post(Dialect::Messages, &body).await;
    assert_eq!(got.message(), "anthropic-version: header is required");
    client.headers = vec![("authorization", "Bearer secret".to_owned())];
    let body = Talk::new(Dialect::Chat, "go").body;
    assert_eq!(client.post(Dialect::Chat, &body).await.status, 200);
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let (upstream, client) = start(UpstreamOptions::default()).await;
    for dialect in Dialect::ALL {
        let path = crate::client::path(dialect);
        let got = client.send("POST", path, "{\"model\":").await.unwrap();
        assert_eq!(got.status, 400, "{dialect}");
        assert!(got.message().contains("JSON"), "{}", got.message());
        let got = client.send("POST", path, "[1]").await.unwrap();
        assert_eq!(got.status, 400, "{dialect}");
    }
    assert_eq!(upstream.violations().len(), 6);
}
