//! Requests that need no change, through the real binary.

use http::Method;
use serde_json::json;
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::{PATIENCE, Served};
use crate::talk::path;

async fn upstream() -> Upstream {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("I see.")));
    let prefill = true;
    Upstream::start(UpstreamOptions { prefill, ..options })
        .await
        .unwrap()
}

/// Sends a body as it is written.
async fn send(served: &Served, dialect: Dialect, body: &str) -> HttpAnswer {
    let url = format!("{}{}", served.url, path(dialect));
    let headers = [
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "k"),
    ];
    let body = body.as_bytes().to_vec();
    let sending = HttpClient::default();
    let sent = sending
        .send(Method::POST, &url, &headers, body, PATIENCE)
        .await;
    sent.unwrap()
}

/// Words that make a body long enough to be looked into.
fn words() -> String {
    "some words of the client. ".repeat(600)
}

/// Bodies that their providers accept, whatever they look like.
fn accepted() -> Vec<(Dialect, String)> {
    let long = words();
    let call = r#"{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}"#;
    let item = r#"{"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}"#;
    let result = r#"{"type": "function_call_output", "call_id": "c1", "output": "x"}"#;
    vec![
        (
            Dialect::Chat,
            format!(
                r#"{{"model": "m", "messages": [{{"role": "assistant", "content": "I begin."}}, {{"role": "user", "content": "{long}"}}]}}"#
            ),
        ),
        (
            Dialect::Chat,
            format!(
                r#"{{"messages":[{{"role":"user","content":"{long}"}},{{"role":"assistant","content":""}},{{"role":"user","content":""}}], "model":"m" }}"#
            ),
        ),
        (
            Dialect::Chat,
            format!(
                r#"{{"model": "m", "messages": [{{"role": "user", "content": "{long}"}}, {{"role": "assistant", "content": null, "reasoning_content": "hm"}}]}}"#
            ),
        ),
        (
            Dialect::Chat,
            format!(
                r#"{{"model": "m", "messages": [{{"role": "system", "content": "{long}"}}, {{"role": "assistant", "content": "", "tool_calls": [{call}]}}, {{"role": "tool", "tool_call_id": "c1", "content": ""}}, {{"role": "system", "content": "go on"}}]}}"#
            ),
        ),
        (
            Dialect::Responses,
            format!(
                r#"{{"model": "m", "input": [{item}, {{"role": "user", "content": "{long}"}}, {result}, {{"type": "reasoning", "summary": [], "encrypted_content": "x"}}]}}"#
            ),
        ),
        (
            Dialect::Responses,
            format!(
                r#"{{"model": "m", "instructions": "{long}", "input": [{{"role": "assistant", "content": "I begin."}}, {{"role": "user", "content": ""}}]}}"#
            ),
        ),
        (
            Dialect::Messages,
            format!(
                r#"{{"model": "m", "max_tokens": 9, "system": "", "messages": [{{"role": "user", "content": "{long}"}}, {{"role": "assistant", "content": "so"}}]}}"#
            ),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_requests_pass_byte_for_byte() {
    let upstream = upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    for (dialect, body) in accepted() {
        let answer = send(&served, dialect, &body).await;
        assert!(answer.status.is_success(), "{dialect}: {answer:?}");
        assert_eq!(answer.header("x-trimtab-action"), "unchanged", "{body}");
        assert_eq!(answer.header("x-trimtab-repairs"), "", "{body}");
        let received = upstream.requests().last().unwrap().clone();
        assert_eq!(received.body.as_ref(), body.as_bytes(), "{dialect}");
    }
    let violations = upstream.violations();
    assert!(violations.is_empty(), "{violations:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn known_faults_are_repaired_and_reported() {
    let upstream = upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    let tool = json!({"role": "tool", "tool_call_id": "nobody", "content": "x"});
    let ask = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let faults = [(tool, "orphan-output-told"), (ask, "output-added")];
    for (fault, repair) in faults {
        let user = json!({"role": "user", "content": words()});
        let last = json!({"role": "user", "content": "go on"});
        let body = json!({"model": "m", "messages": [user, fault, last]}).to_string();
        let answer = send(&served, Dialect::Chat, &body).await;
        assert!(answer.status.is_success(), "{answer:?}");
        assert_eq!(answer.header("x-trimtab-action"), "edited");
        assert_eq!(answer.header("x-trimtab-repairs"), repair);
        let line = served.wait_for("POST");
        assert!(line.contains(&format!("\"repairs\":{repair:?}")), "{line}");
    }
}
