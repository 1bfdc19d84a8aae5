//! The agent of the demo: plays the session against a base URL like a real client.

use std::time::Duration;

use http::Method;
use serde::Serialize;
use serde_json::{Value, json};
use trimtab_model::{Dialect, Message, Usage};
use trimtab_wire::answer::AnswerReader;

use super::MODEL;
use super::provider::CALL_HEADER;
use super::session::{DemoRound, DemoSession, DemoStep, tools};
use crate::exit::Failure;
use crate::proxy::http::{HttpAnswer, HttpClient};

/// The time limit of one answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The output limit of each request.
const MAX_TOKENS: u64 = 2_048;

/// The body of a request.
#[derive(Serialize)]
struct DemoRequestBody<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    system: Value,
    tools: &'a Value,
    messages: &'a [Value],
}

/// Plays `session` against `url`, calls `after` for every call, and returns the usage of each.
pub(super) async fn play(
    session: &DemoSession,
    url: &str,
    mut after: impl FnMut(),
) -> Result<Vec<Usage>, Failure> {
    let http = HttpClient::default();
    let tools = tools();
    let mut messages = Vec::new();
    let mut usages = Vec::new();
    for step in &session.steps {
        let round = match step {
            DemoStep::User(text) => {
                messages.push(json!({"role": "user", "content": [{"type": "text", "text": text}]}));
                continue;
            }
            DemoStep::Model(round) => round,
        };
        let body = body(session, &tools, &mut messages)?;
        let number = usages.len() + 1;
        let failed_at = |why: String| failed(format!("call {number}: {why}"));
        let answer = send(&http, url, usages.len(), body).await;
        let answer = answer.map_err(failed_at)?;
        usages.push(check_answer(&answer, round).map_err(failed_at)?);
        messages.extend(history_messages(round));
        after();
    }
    Ok(usages)
}

/// The request, with a cache marker at the end of the conversation, as clients set it.
fn body(session: &DemoSession, tools: &Value, messages: &mut [Value]) -> Result<Vec<u8>, Failure> {
    let mark = json!({"type": "ephemeral"});
    let system = json!([{"type": "text", "text": session.system, "cache_control": mark}]);
    // Real clients move the marker to the end with every call.
    mark_end(messages, Some(mark));
    let body = serde_json::to_vec(&DemoRequestBody {
        model: MODEL,
        max_tokens: MAX_TOKENS,
        stream: true,
        system,
        tools,
        messages,
    });
    mark_end(messages, None);
    body.map_err(|error| Failure::Failed(error.into()))
}

fn mark_end(messages: &mut [Value], mark: Option<Value>) {
    let last = messages
        .last_mut()
        .and_then(|message| message.pointer_mut("/content"));
    let part = last
        .and_then(Value::as_array_mut)
        .and_then(|parts| parts.last_mut());
    if let Some(part) = part.and_then(Value::as_object_mut) {
        match mark {
            Some(mark) => part.insert("cache_control".to_owned(), mark),
            None => part.remove("cache_control"),
        };
    }
}

async fn send(
    http: &HttpClient,
    url: &str,
    call: usize,
    body: Vec<u8>,
) -> Result<HttpAnswer, String> {
    let call = call.to_string();
    let headers = [
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "demo"),
        (
            "user-agent",
            concat!("trimtab-demo/", env!("CARGO_PKG_VERSION")),
        ),
        (CALL_HEADER, call.as_str()),
    ];
    let url = format!("{url}/v1/messages");
    let sent = http
        .send(Method::POST, &url, &headers, body, PATIENCE)
        .await;
    let answer = sent?;
    if !answer.status.is_success() {
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        return Err(format!("{} {said}", answer.status));
    }
    Ok(answer)
}

/// Checks that the client received exactly the model's answer.
fn check_answer(answer: &HttpAnswer, round: &DemoRound) -> Result<Usage, String> {
    let mut reader = AnswerReader::new(Dialect::Messages);
    reader.push(&answer.body, |_| ());
    let usage = reader.usage();
    let said = reader
        .into_message()
        .unwrap_or_else(|| Message::assistant(""));
    let text = said.text();
    let calls: Vec<&str> = said.calls().map(|call| call.id.as_str()).collect();
    let expected = round.calls.iter().map(|call| call.id.as_str());
    if text != round.text || !calls.iter().copied().eq(expected) {
        return Err(format!(
            "the client got {text:?} with calls {calls:?}, not {:?}",
            round.text
        ));
    }
    Ok(usage)
}

/// The messages of a round in the agent's history.
fn history_messages(round: &DemoRound) -> Vec<Value> {
    let mut said = vec![json!({"type": "text", "text": round.text})];
    let mut given = Vec::new();
    for call in &round.calls {
        said.push(
            json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}),
        );
        given.push(json!({"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": call.output}]}));
    }
    let mut all = vec![json!({"role": "assistant", "content": said})];
    if !given.is_empty() {
        all.push(json!({"role": "user", "content": given}));
    }
    all
}

fn failed(message: String) -> Failure {
    Failure::WithHint {
        message,
        hint: None,
    }
}
