//! Responses conversations whose earlier messages the provider keeps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, Proxy, ProxyConfig, RunningProxy};
use trimtab_store::{MemoryStore, Store};

use crate::fake::{Asked, Reply, Upstream, post};
use crate::retrieval::shown_ref;
use crate::talk::{lines, streamed, without_our_tools};
use crate::{config, proxy, proxy_with};

const PATH: &str = "/v1/responses";
const DIALECT: Dialect = Dialect::Responses;

type Stored = Arc<Mutex<HashMap<String, Vec<Value>>>>;

/// The items of a request, with what the provider keeps before them; none if it keeps nothing
/// under that id.
fn conversation(stored: &Stored, body: &Value) -> Option<Vec<Value>> {
    let stored = stored.lock().unwrap();
    let mut items = match body["previous_response_id"].as_str() {
        Some(id) => stored.get(id)?.clone(),
        None => Vec::new(),
    };
    match &body["input"] {
        Value::String(text) => items.push(json!({"role": "user", "content": text})),
        Value::Array(input) => items.extend(input.iter().cloned()),
        other => panic!("{other}"),
    }
    Some(items)
}

/// A provider that keeps responses, and has a window of so many tokens, four bytes each.
async fn keeping(limit: usize) -> Upstream {
    let stored = Stored::default();
    Upstream::start(move |number, asked| {
        let body = asked.json();
        let Some(mut items) = conversation(&stored, &body) else {
            let text = r#"{"error":{"code":"previous_response_not_found","message":"not found"}}"#;
            return Reply::json(400, text);
        };
        let size = serde_json::to_string(&items).unwrap().len() / 4;
        if size > limit {
            let text = r#"{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}"#;
            return Reply::json(400, text);
        }
        let call = json!({"type": "function_call", "id": format!("fc_{number}"),
            "call_id": format!("call_{number}"), "name": "read", "arguments": "{}"});
        items.push(call.clone());
        let id = format!("resp_{number}");
        stored.lock().unwrap().insert(id.clone(), items);
        let whole = json!({"id": id, "object": "response", "status": "completed", "error": null,
            "output": [call], "usage": {"input_tokens": size, "output_tokens": 5}});
        if body["stream"] == true {
            Reply::stream(streamed(DIALECT, &whole.to_string()))
        } else {
            Reply::json(200, whole.to_string())
        }
    })
    .await
}

/// The id of the response and of its call, from an answer in either form.
fn ids(got: &str) -> (String, String) {
    let start = got.rfind("\"resp_").unwrap() + 1;
    let id = got[start..].split('"').next().unwrap().to_owned();
    let start = got.rfind("\"call_id\":\"").unwrap() + "\"call_id\":\"".len();
    let call = got[start..].split('"').next().unwrap().to_owned();
    (id, call)
}

fn with_window(upstream: &Upstream, window: Option<u64>) -> ProxyConfig {
    let mut config = config(&upstream.url());
    config.models.push(ModelRule {
        model: "*".to_owned(),
        window,
        max_output: None,
        preset: None,
        mode: None,
    });
    config
}

/// Plays a conversation of which the client sends only what is new. Gives the bodies that it
/// sent, and those that arrived.
async fn play(window: Option<u64>, limit: usize, stream: bool) -> (Vec<String>, Vec<Asked>) {
    let upstream = keeping(limit).await;
    let (_running, base) = proxy(with_window(&upstream, window)).await;
    let mut sent = Vec::new();
    let mut body = json!({"model": "house-model", "input": "read all files", "stream": stream,
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}]});
    for round in 0..14 {
        sent.push(body.to_string());
        let got = post(&base, PATH, &[], body.to_string()).await;
        assert_eq!(got.status, 200, "round {round}: {}", got.text());
        let (id, call) = ids(&got.text());
        body["previous_response_id"] = json!(id);
        body["input"] = json!([{"type": "function_call_output", "call_id": call,
            "output": lines(60 + 20 * round)}]);
    }
    (sent, upstream.seen())
}

#[tokio::test]
async fn partial_request_passes_through_while_the_conversation_fits() {
    for stream in [false, true] {
        let (sent, seen) = play(None, 1_000_000, stream).await;
        let seen = seen.iter().map(Asked::text);
        let seen: Vec<String> = seen
            .map(|body| without_our_tools(Dialect::Responses, &body))
            .collect();
        assert_eq!(seen, sent);
    }
}

#[tokio::test]
async fn a_conversation_that_the_provider_keeps_stays_within_the_window() {
    for stream in [false, true] {
        let (sent, seen) = play(Some(9_000), 9_000, stream).await;
        assert_eq!(seen.len(), sent.len(), "nothing was refused");
        let last = seen.last().unwrap().json();
        assert_eq!(last["previous_response_id"], Value::Null);
        let first = &last["input"][0];
        assert_eq!(first["content"], "read all files", "{last}");
    }
}

#[tokio::test]
async fn overflow_of_a_provider_side_conversation_is_recovered() {
    let (sent, seen) = play(None, 9_000, false).await;
    assert!(seen.len() > sent.len(), "something was sent again");
    let again = seen.iter().find(|asked| {
        asked.json()["previous_response_id"].is_null() && asked.text().contains("call_0")
    });
    assert!(again.is_some());
}

async fn told(config: ProxyConfig) -> (RunningProxy, String, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let running = Proxy::new(config, Arc::new(MemoryStore::new()))
        .notices(move |_, notice| telling.lock().unwrap().push(notice.to_owned()))
        .run()
        .await
        .unwrap();
    let base = format!("http://{}", running.address());
    (running, base, told)
}

#[tokio::test]
async fn unseen_conversation_passes_and_is_reported_once() {
    let upstream = keeping(1_000_000).await;
    let body = |previous: &str| {
        json!({"model": "m", "previous_response_id": previous, "input": "and now?"}).to_string()
    };
    // The beginning does not pass through the proxy.
    let direct = format!("http://{}", upstream.address);
    let first = json!({"model": "m", "input": "hello"}).to_string();
    let (mut id, _) = ids(&post(&direct, PATH, &[], first).await.text());
    let (running, base, told) = told(config(&upstream.url())).await;
    for _ in 0..3 {
        let sent = body(&id);
        let got = post(&base, PATH, &[], sent.clone()).await;
        assert_eq!(got.header("x-trimtab-reason"), "partial");
        assert_eq!(upstream.seen().last().unwrap().text(), sent);
        id = ids(&got.text()).0;
    }
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
    assert_eq!(running.report().partial, 3);
}

#[tokio::test]
async fn requests_with_provider_side_state_pass_and_are_reported_once() {
    let named = [
        ("conversation", json!("conv_1")),
        ("conversation", json!({"id": "conv_2"})),
        (
            "prompt",
            json!({"id": "pmpt_1", "variables": {"city": "Graz"}}),
        ),
    ];
    for (field, value) in named {
        let upstream = keeping(1_000_000).await;
        let (running, base, told) = told(config(&upstream.url())).await;
        for _ in 0..3 {
            let mut body = json!({"model": "m", "store": false, "input": "and now?"});
            body[field] = value.clone();
            let got = post(&base, PATH, &[], body.to_string()).await;
            assert_eq!(got.header("x-trimtab-reason"), "partial", "{field}");
            assert_eq!(upstream.seen().last().unwrap().text(), body.to_string());
        }
        let told = told.lock().unwrap();
        assert!(
            matches!(&told[..], [notice] if notice.contains(field)),
            "{field}: {told:?}"
        );
        assert_eq!(running.report().partial, 3);
    }
}

#[tokio::test]
async fn item_references_are_resolved_in_place() {
    let upstream = keeping(1_000_000).await;
    let (_running, base) = proxy(with_window(&upstream, Some(9_000))).await;
    let question = json!({"role": "user", "content": "read the file"});
    let tools = json!([{"type": "function", "name": "read", "parameters": {"type": "object"}}]);
    let body = json!({"model": "m", "input": [question], "tools": tools});
    let got = post(&base, PATH, &[], body.to_string()).await;
    let (_, call) = ids(&got.text());
    let body = json!({"model": "m", "tools": tools, "input": [question,
        {"type": "item_reference", "id": "fc_0"},
        {"type": "function_call_output", "call_id": call, "output": lines(3_000)}]});
    let got = post(&base, PATH, &[], body.to_string()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let last = upstream.seen().last().unwrap().json();
    assert_eq!(last["input"][1]["type"], "function_call");
    let bytes = upstream.seen().last().unwrap().body.len();
    assert!(bytes < 36_000, "{bytes}");
}

#[tokio::test]
async fn completed_conversation_is_counted_in_the_memory_budget() {
    const LONG: usize = 1 << 20;
    let upstream = Upstream::start(|number, _| {
        let text = "x".repeat(LONG);
        let item = json!({"type": "message", "id": "msg_long", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}]});
        let whole = json!({"id": format!("resp_{number}"), "object": "response",
            "status": "completed", "error": null, "output": [item]});
        Reply::json(200, whole.to_string())
    })
    .await;
    let mut config = config(&upstream.url());
    config.limits.memory_bytes = 32 * LONG;
    config.limits.tenant_memory_bytes = 32 * LONG;
    let (running, base) = proxy(config).await;
    let first = json!({"model": "house-model", "input": "write a long text"});
    post(&base, PATH, &[], first.to_string()).await;
    // Each reference is short, but it stands for a long item.
    let reference = json!({"type": "item_reference", "id": "msg_long"});
    for (references, reason) in [(1, None), (500, Some("partial"))] {
        let body = json!({"model": "house-model", "input": vec![&reference; references]});
        let got = post(&base, PATH, &[], body.to_string()).await;
        assert_eq!(got.status, 200);
        let told = got.headers.get("x-trimtab-reason");
        assert_eq!(told.map(|reason| reason.to_str().unwrap()), reason);
        assert_eq!(upstream.seen().last().unwrap().text(), body.to_string());
    }
    assert!(running.report().memory_bytes <= 32 * LONG as u64);
}

/// A provider that answers later: the client fetches the answer by its id.
async fn answering_later() -> Upstream {
    Upstream::start(|number, _| {
        let whole = json!({"id": format!("resp_{number}"), "object": "response", "error": null,
            "status": "queued", "background": true, "output": [], "usage": null});
        Reply::json(200, whole.to_string())
    })
    .await
}

#[tokio::test]
async fn background_request_is_not_offered_our_tools() {
    let upstream = answering_later().await;
    let (_running, base) = proxy(with_window(&upstream, Some(9_000))).await;
    let mut input = vec![json!({"role": "user", "content": "read all files"})];
    for round in 0..4 {
        let call = format!("call_{round}");
        input.push(
            json!({"type": "function_call", "call_id": call, "name": "read",
            "arguments": "{}"}),
        );
        input.push(json!({"type": "function_call_output", "call_id": call,
            "output": lines(900 + round)}));
    }
    let body = json!({"model": "house-model", "background": true, "input": input,
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}]});
    let got = post(&base, PATH, &[], body.to_string()).await;
    assert_eq!(got.header("x-trimtab-action"), "edited");
    let sent = upstream.seen()[0].clone();
    // The client fetches the answer later, and could not serve a call of our tools in it.
    let tools = sent.json()["tools"].clone();
    assert_eq!(tools, body["tools"]);
    assert!(sent.body.len() < 36_000, "{}", sent.body.len());
}

#[tokio::test]
async fn conversation_with_a_background_answer_counts_as_incomplete() {
    let upstream = answering_later().await;
    let (_running, base) = proxy(with_window(&upstream, Some(9_000))).await;
    let first = json!({"model": "house-model", "background": true, "input": "read the file"});
    post(&base, PATH, &[], first.to_string()).await;
    // The call was in the answer that the client fetched.
    let next = json!({"model": "house-model", "background": true,
        "previous_response_id": "resp_0", "input": [{"type": "function_call_output",
        "call_id": "call_0", "output": lines(3_000)}]});
    let got = post(&base, PATH, &[], next.to_string()).await;
    assert_eq!(got.header("x-trimtab-reason"), "partial");
    assert_eq!(upstream.seen()[1].text(), next.to_string());
}

/// A provider that keeps responses and rejects calls without outputs. Its model looks once into a
/// stored output; `mixed` if it calls the client's tool in the same answer.
async fn strict_keeper(mixed: bool) -> Upstream {
    let stored = Stored::default();
    Upstream::start(move |number, asked| {
        let body = asked.json();
        let mut items = conversation(&stored, &body).unwrap();
        let ids = |kind: &str| -> Vec<Value> {
            let of_kind = items.iter().filter(|item| item["type"] == kind);
            of_kind.map(|item| item["call_id"].clone()).collect()
        };
        let (calls, outputs) = (ids("function_call"), ids("function_call_output"));
        if let Some(open) = calls.iter().find(|call| !outputs.contains(call)) {
            let text = format!("No tool output found for function call {open}.");
            return Reply::json(400, json!({"error": {"message": text}}).to_string());
        }
        let call = |id: String, name: &str, arguments: Value| {
            json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id,
                "name": name, "arguments": arguments.to_string()})
        };
        let may_look = body["tools"].to_string().contains("tool_output_cache");
        let looks = may_look && !calls.contains(&json!("call_h"));
        let mut output = Vec::new();
        if looks {
            let arguments = json!({"ref_id": shown_ref(&asked.text()), "limit": 1});
            output.push(call("call_h".to_owned(), "tool_output_cache", arguments));
        }
        if mixed || !looks {
            output.push(call(format!("call_{number}"), "read", json!({})));
        }
        items.extend(output.iter().cloned());
        let id = format!("resp_{number}");
        stored.lock().unwrap().insert(id.clone(), items);
        let whole = json!({"id": id, "object": "response", "status": "completed", "error": null,
            "output": output, "usage": {"input_tokens": 50, "output_tokens": 5}});
        if body["stream"] == true {
            Reply::stream(streamed(DIALECT, &whole.to_string()))
        } else {
            Reply::json(200, whole.to_string())
        }
    })
    .await
}

#[tokio::test]
async fn provider_side_conversation_continues_after_a_hidden_call_and_a_restart() {
    for (mixed, stream) in [(false, false), (false, true), (true, false), (true, true)] {
        let upstream = strict_keeper(mixed).await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let settings = || with_window(&upstream, Some(9_000));
        let (mut running, mut base) = proxy_with(settings(), Arc::clone(&store)).await;
        let mut body = json!({"model": "house-model", "input": "read all files",
            "stream": stream,
            "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}]});
        for round in 0..5 {
            let got = post(&base, PATH, &[], body.to_string()).await;
            let text = got.text();
            assert_eq!(got.status, 200, "{mixed} {stream} {round}: {text}");
            assert!(!text.contains("\"call_h\""), "{mixed} {stream}: {text}");
            let (id, call) = ids(&text);
            body["previous_response_id"] = json!(id);
            body["input"] = json!([{"type": "function_call_output", "call_id": call,
                "output": lines(3_000)}]);
            if round == 1 {
                drop(running);
                (running, base) = proxy_with(settings(), Arc::clone(&store)).await;
            }
        }
        let seen = upstream.seen();
        let looked = seen.iter().any(|asked| asked.text().contains("call_h"));
        assert!(looked, "{mixed} {stream}");
        drop(running);
    }
}
