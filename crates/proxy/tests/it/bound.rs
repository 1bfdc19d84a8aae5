//! Signed reasoning: no action of the proxy makes a provider reject it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, Proxy, ProxyConfig, Record};
use trimtab_store::MemoryStore;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::fake::{Got, post};
use crate::talk::{Talk, lines, path};
use crate::{config, proxy};

/// How many rounds a conversation has.
const ROUNDS: usize = 24;
/// The model's window: a few of the outputs below fill it.
const WINDOW: u64 = 9_000;

fn settings(upstream: &str, preset: &str) -> ProxyConfig {
    ProxyConfig {
        models: vec![ModelRule {
            model: "*".to_owned(),
            window: Some(WINDOW),
            max_output: None,
            preset: Some(preset.to_owned()),
            mode: None,
        }],
        ..config(upstream)
    }
}

/// A provider that signs a thought before every call of a tool; now and then it says something.
async fn thinker() -> Upstream {
    let source = ReplySource::with(|received| {
        let reply = if received.serial % 7 == 6 {
            ScriptedReply::text(format!("part {} is done", received.serial))
        } else {
            ScriptedReply::call("read", json!({"part": received.serial}))
        };
        reply.thinking(format!("thought number {}", received.serial))
    });
    let options = UpstreamOptions {
        sign: true,
        ..UpstreamOptions::new(source)
    };
    Upstream::start(options).await.unwrap()
}

/// The body of a talk with a model that thinks.
fn body(talk: &Talk, thinking: &Value) -> String {
    let mut body: Value = serde_json::from_str(&talk.body()).unwrap();
    match talk.dialect {
        Dialect::Messages => {
            body["thinking"] = thinking.clone();
            body["context_management"] = json!({"edits": [{"type": "clear_thinking_20251015"}]});
        }
        Dialect::Responses => body["include"] = json!(["reasoning.encrypted_content"]),
        Dialect::Chat => {}
    }
    body.to_string()
}

/// Takes an answer into the talk as a client does, with an output for each of its calls.
fn take(talk: &mut Talk, answer: &Value, output: &str) {
    let (items, field) = match talk.dialect {
        Dialect::Responses => (&answer["output"], "call_id"),
        _ => (&answer["content"], "id"),
    };
    let items = items.as_array().unwrap().clone();
    let calls: Vec<String> = items
        .iter()
        .filter(|item| matches!(item["type"].as_str(), Some("tool_use" | "function_call")))
        .map(|item| item[field].as_str().unwrap().to_owned())
        .collect();
    match talk.dialect {
        Dialect::Responses => talk.entries.extend(items),
        _ => talk
            .entries
            .push(json!({"role": "assistant", "content": items})),
    }
    if calls.is_empty() {
        talk.user("go on, please");
    }
    for call in calls {
        talk.output(&call, output);
    }
}

async fn conversation(dialect: Dialect, preset: &str, thinking: &Value) {
    let upstream = thinker().await;
    let (running, base) = proxy(settings(&upstream.url(), preset)).await;
    let mut talk = Talk::new(dialect, "read all the parts");
    // More than a thinking budget can be.
    talk.max_tokens = 1_200;
    for round in 0..ROUNDS {
        let headers = [("anthropic-version", "2023-06-01"), ("x-api-key", "k")];
        let got: Got = post(&base, path(dialect), &headers, body(&talk, thinking)).await;
        assert_eq!(
            got.status,
            200,
            "{preset} {dialect} {round}: {}",
            got.text()
        );
        let answer: Value = serde_json::from_str(&got.text()).unwrap();
        take(&mut talk, &answer, &lines(20 + round * 37 % 190));
    }
    let refused: Vec<String> = upstream.violations();
    assert_eq!(refused, Vec::<String>::new(), "{preset} {dialect}");
    let sent = upstream.requests();
    let largest = sent.iter().map(|received| received.tokens).max();
    assert!(
        largest < Some(WINDOW * 11 / 10),
        "{preset} {dialect} {largest:?}"
    );
    assert!(running.report().edited > 0, "{preset} {dialect}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_reasoning_is_never_rejected() {
    let adaptive = json!({"type": "adaptive"});
    for dialect in [Dialect::Messages, Dialect::Responses] {
        for preset in PRESETS.iter().filter(|preset| preset.name != "none") {
            conversation(dialect, preset.name, &adaptive).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_loop_never_mixes_rounds_with_and_without_thinking() {
    let enabled = json!({"type": "enabled", "budget_tokens": 1024});
    for preset in PRESETS.iter().filter(|preset| preset.name != "none") {
        conversation(Dialect::Messages, preset.name, &enabled).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_reasoning_is_reported_when_our_tools_are_added() {
    let upstream = thinker().await;
    let records = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&records);
    let running = Proxy::new(
        settings(&upstream.url(), "steady"),
        Arc::new(MemoryStore::new()),
    )
    .log(move |record: &Record| sink.lock().unwrap().push(record.clone()))
    .run()
    .await
    .unwrap();
    let base = format!("http://{}", running.address());
    let mut talk = Talk::new(Dialect::Messages, "read all the parts");
    talk.max_tokens = 1_200;
    let headers = [("anthropic-version", "2023-06-01"), ("x-api-key", "k")];
    // Only the last output is long enough to be shortened, which brings in our tools.
    for output in [lines(3), lines(3), lines(2_000)] {
        let body = body(&talk, &json!({"type": "adaptive"}));
        let got = post(&base, path(Dialect::Messages), &headers, body).await;
        let answer: Value = serde_json::from_str(&got.text()).unwrap();
        take(&mut talk, &answer, &output);
    }
    let body = body(&talk, &json!({"type": "adaptive"}));
    let got = post(&base, path(Dialect::Messages), &headers, body).await;
    assert_eq!(got.header("x-trimtab-action"), "edited");
    let received = upstream.requests().last().unwrap().body.clone();
    let received = String::from_utf8_lossy(&received);
    assert!(received.contains("tool_output_cache"), "{received}");
    assert!(!received.contains("thought number 0"), "{received}");
    running.shutdown().await;
    let records = records.lock().unwrap();
    let last = records.last().unwrap();
    let reasons: Vec<&str> = last.plans.iter().map(|plan| plan.reason).collect();
    assert_eq!(reasons, ["front_changed"], "{last:?}");
    assert!(
        last.detail.contains("reasoning was removed"),
        "{}",
        last.detail
    );
}
