//! Signed reasoning: no action of the proxy makes a provider reject it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, Proxy, ProxyConfig, Record};
use trimtab_store::{MemoryStore, Store};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{Count, ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::fake::{Got, post};
use crate::talk::{Talk, lines, path};
use crate::{config, proxy, proxy_with};

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

const HEADERS: [(&str, &str); 2] = [("anthropic-version", "2023-06-01"), ("x-api-key", "k")];

/// A provider that signs a thought before every call of a tool; now and then it says something.
async fn thinker() -> Upstream {
    Upstream::start(thinker_options()).await.unwrap()
}

fn thinker_options() -> UpstreamOptions {
    let source = ReplySource::with(|received| {
        let reply = if received.serial % 7 == 6 {
            ScriptedReply::text(format!("part {} is done", received.serial))
        } else {
            ScriptedReply::call("read", json!({"part": received.serial}))
        };
        reply.thinking(format!("thought number {}", received.serial))
    });
    UpstreamOptions {
        sign: true,
        ..UpstreamOptions::new(source)
    }
}

/// The body of a talk with a model that thinks.
fn body(talk: &Talk, thinking: &Value) -> String {
    let mut body: Value = serde_json::from_str(&talk.body()).unwrap();
    match talk.dialect {
        Dialect::Messages => {
            if !thinking.is_null() {
                body["thinking"] = thinking.clone();
            }
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

/// A conversation of many rounds with a provider; all its requests, and what was recorded.
async fn conversation(
    upstream: &Upstream,
    dialect: Dialect,
    preset: &str,
    (model, thinking): (&str, &Value),
) -> Vec<Record> {
    let records = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&records);
    let settings = settings(&upstream.url(), preset);
    let running = Proxy::new(settings, Arc::new(MemoryStore::new()))
        .log(move |record: &Record| sink.lock().unwrap().push(record.clone()))
        .run()
        .await
        .unwrap();
    let base = format!("http://{}", running.address());
    let mut talk = Talk::new(dialect, "read all the parts");
    model.clone_into(&mut talk.model);
    // More than a thinking budget can be.
    talk.max_tokens = 1_200;
    for round in 0..ROUNDS {
        let got: Got = post(&base, path(dialect), &HEADERS, body(&talk, thinking)).await;
        assert_eq!(
            got.status,
            200,
            "{preset} {dialect} {model} {round}: {}",
            got.text()
        );
        let answer: Value = serde_json::from_str(&got.text()).unwrap();
        take(&mut talk, &answer, &lines(20 + round * 37 % 190));
    }
    assert!(running.report().edited > 0, "{preset} {dialect} {model}");
    running.shutdown().await;
    let largest = upstream
        .requests()
        .iter()
        .map(|received| received.tokens)
        .max();
    assert!(
        largest < Some(WINDOW * 11 / 10),
        "{preset} {dialect} {model} {largest:?}"
    );
    records.lock().unwrap().clone()
}

fn presets() -> impl Iterator<Item = &'static str> {
    let names = PRESETS.iter().map(|preset| preset.name);
    names.filter(|name| *name != "none")
}

/// The modes of thinking that a request can have with each model.
fn models() -> Vec<(&'static str, Value)> {
    let mode = |kind: &str| json!({"type": kind});
    vec![
        ("claude-opus-5-5", mode("adaptive")),
        ("claude-opus-5-5", Value::Null),
        ("claude-sonnet-5-5", mode("adaptive")),
        ("claude-sonnet-5-5", mode("between_tools")),
        ("claude-haiku-5-5", Value::Null),
        ("claude-fable-5-2", mode("adaptive")),
        ("claude-opus-5", mode("adaptive")),
        (
            "claude-sonnet-4-5",
            json!({"type": "enabled", "budget_tokens": 1024}),
        ),
        ("house-model", mode("adaptive")),
        (
            "house-model",
            json!({"type": "enabled", "budget_tokens": 1024}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_to_a_model_of_messages_breaks_its_rules() {
    for preset in presets() {
        for (model, thinking) in models() {
            let upstream = thinker().await;
            conversation(&upstream, Dialect::Messages, preset, (model, &thinking)).await;
            let refused = upstream.violations();
            assert_eq!(refused, Vec::<String>::new(), "{preset} {model} {thinking}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_with_encrypted_reasoning_is_refused() {
    for preset in presets() {
        for model in ["house-model", "gpt-5.5"] {
            let upstream = thinker().await;
            let (dialect, thinking) = (Dialect::Responses, Value::Null);
            conversation(&upstream, dialect, preset, (model, &thinking)).await;
            let refused = upstream.violations();
            assert_eq!(refused, Vec::<String>::new(), "{preset} {model}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_does_not_bind_its_reasoning_keeps_all_of_it() {
    let upstream = thinker().await;
    let thinking = json!({"type": "adaptive"});
    let model = ("claude-opus-5", &thinking);
    conversation(&upstream, Dialect::Messages, "steady", model).await;
    for received in upstream.requests() {
        let sent = received.json();
        let rounds = sent["messages"].as_array().unwrap().iter();
        let mut rounds = rounds.filter(|message| message["content"][0]["type"] == "tool_use");
        assert!(rounds.next().is_none(), "{sent}");
        assert!(sent["thinking"].get("block_binding").is_none(), "{sent}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_without_the_setting_teaches_the_proxy_once() {
    let options = UpstreamOptions {
        block_binding: false,
        ..thinker_options()
    };
    let upstream = Upstream::start(options).await.unwrap();
    let thinking = json!({"type": "adaptive"});
    let model = ("claude-opus-5-5", &thinking);
    conversation(&upstream, Dialect::Messages, "steady", model).await;
    let refused = upstream.violations();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("block_binding"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_long_can_lack_the_setting_too() {
    let options = UpstreamOptions {
        block_binding: false,
        window: Some(WINDOW * 2 / 3),
        ..thinker_options()
    };
    let upstream = Upstream::start(options).await.unwrap();
    let thinking = json!({"type": "adaptive"});
    let model = ("claude-opus-5-5", &thinking);
    conversation(&upstream, Dialect::Messages, "steady", model).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_teaches_that_a_model_binds_its_reasoning() {
    let options = UpstreamOptions {
        binds_always: true,
        ..thinker_options()
    };
    let upstream = Upstream::start(options).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut talk = Talk::new(Dialect::Messages, "read all the parts");
    // The catalogue says that this model does not bind its reasoning.
    "claude-opus-5".clone_into(&mut talk.model);
    talk.max_tokens = 1_200;
    for process in 0..2 {
        let settings = settings(&upstream.url(), "steady");
        let (running, base) = proxy_with(settings, Arc::clone(&store)).await;
        for round in 0..ROUNDS {
            let asked = body(&talk, &json!({"type": "adaptive"}));
            let got = post(&base, path(Dialect::Messages), &HEADERS, asked).await;
            assert_eq!(got.status, 200, "{process} {round}: {}", got.text());
            let answer: Value = serde_json::from_str(&got.text()).unwrap();
            take(&mut talk, &answer, &lines(20 + round * 37 % 190));
        }
        running.shutdown().await;
        let refused = upstream.violations();
        let requests: BTreeSet<&str> = refused
            .iter()
            .filter_map(|rule| rule.split(':').next())
            .collect();
        assert_eq!(requests.len(), 1, "{process}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_beta_is_not_asked_for_again() {
    let source = ReplySource::with(|received| {
        ScriptedReply::call("read", json!({"part": received.serial})).thinking("a thought")
    });
    let upstream = Upstream::start(UpstreamOptions {
        sign: true,
        unknown_betas: true,
        ..UpstreamOptions::new(source)
    })
    .await
    .unwrap();
    let thinking = json!({"type": "adaptive"});
    let model = ("claude-opus-5-5", &thinking);
    conversation(&upstream, Dialect::Messages, "steady", model).await;
    let refused = upstream.violations();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("beta flag"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shortened_output_costs_no_reasoning() {
    let upstream = thinker().await;
    let (running, base) = proxy(settings(&upstream.url(), "steady")).await;
    let mut talk = Talk::new(Dialect::Messages, "read all the parts");
    "claude-opus-5-5".clone_into(&mut talk.model);
    talk.max_tokens = 1_200;
    let thinking = json!({"type": "adaptive"});
    let mut headers = HEADERS.to_vec();
    headers.push(("anthropic-beta", "context-1m-2025-08-07"));
    headers.push(("anthropic-beta", "oauth-2025-04-20"));
    // Only the last output is long enough to be shortened.
    for output in [lines(3), lines(3), lines(2_000)] {
        let got = post(
            &base,
            path(Dialect::Messages),
            &headers,
            body(&talk, &thinking),
        )
        .await;
        let answer: Value = serde_json::from_str(&got.text()).unwrap();
        take(&mut talk, &answer, &output);
    }
    let got = post(
        &base,
        path(Dialect::Messages),
        &headers,
        body(&talk, &thinking),
    )
    .await;
    assert_eq!(got.header("x-trimtab-action"), "edited");
    let requests = upstream.requests();
    let tools: Vec<_> = requests.iter().map(|received| &received.tools).collect();
    assert!(
        tools[0].contains(&"tool_output_cache".to_owned()),
        "{tools:?}"
    );
    assert!(tools.iter().all(|list| *list == tools[0]), "{tools:?}");
    let last = requests.last().unwrap();
    let sent = last.json().to_string();
    for number in 0..3 {
        assert!(sent.contains(&format!("thought number {number}")), "{sent}");
    }
    let setting = &last.json()["thinking"]["block_binding"];
    assert_eq!(setting["prefix_mismatch_behavior"], "drop_block");
    let betas = last
        .headers
        .iter()
        .filter(|(name, _)| name == "anthropic-beta");
    let betas: Vec<&str> = betas.map(|(_, value)| value.as_str()).collect();
    assert_eq!(
        betas,
        ["context-1m-2025-08-07,oauth-2025-04-20,thinking-binding-controls-2026-08-01"]
    );
    assert_eq!(upstream.violations(), Vec::<String>::new());
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_says_how_much_reasoning_was_sent() {
    let upstream = thinker().await;
    let thinking = json!({"type": "adaptive"});
    let model = ("claude-opus-5-5", &thinking);
    let records = conversation(&upstream, Dialect::Messages, "steady", model).await;
    let last = records.last().unwrap().reasoning;
    assert_eq!(last.received, ROUNDS - 1);
    assert!(last.kept > 0 && last.kept < last.received, "{last:?}");
    assert_eq!(records[2].reasoning.kept, 2);
}

/// A talk with a model that binds its reasoning, in which something was left out already.
async fn edited_talk(upstream: &Upstream, base: &str) -> Talk {
    let mut talk = Talk::new(Dialect::Messages, "read all the parts");
    "claude-opus-5-5".clone_into(&mut talk.model);
    talk.max_tokens = 1_200;
    for round in 0..14 {
        let asked = body(&talk, &json!({"type": "adaptive"}));
        let got = post(base, path(Dialect::Messages), &HEADERS, asked).await;
        assert_eq!(got.status, 200, "{round}: {}", got.text());
        let answer: Value = serde_json::from_str(&got.text()).unwrap();
        take(&mut talk, &answer, &lines(60 + round));
    }
    assert_eq!(upstream.violations(), Vec::<String>::new());
    talk
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_pass_unmanaged_lose_their_reasoning_and_not_the_session() {
    let upstream = thinker().await;
    let (running, base) = proxy(settings(&upstream.url(), "steady")).await;
    let talk = edited_talk(&upstream, &base).await;
    let asked = body(&talk, &json!({"type": "adaptive"}));
    // A count is no turn, and a client may switch the proxy off.
    let count = format!("{}/count_tokens", path(Dialect::Messages));
    let in_mode = |mode| [&HEADERS[..], &[("x-trimtab-mode", mode)]].concat();
    for (place, headers) in [
        (count.as_str(), HEADERS.to_vec()),
        (path(Dialect::Messages), in_mode("bypass")),
        (path(Dialect::Messages), in_mode("observe")),
    ] {
        let got = post(&base, place, &headers, asked.clone()).await;
        assert_eq!(got.status, 200, "{place}: {}", got.text());
        let sent = upstream.requests().last().unwrap().json().to_string();
        assert!(!sent.contains("\"signature\""), "{place}: {sent}");
        assert!(sent.contains("tool_result"), "{place}");
    }
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_gets_the_error_about_its_own_fault() {
    let upstream = thinker().await;
    let (running, base) = proxy(settings(&upstream.url(), "steady")).await;
    let talk = edited_talk(&upstream, &base).await;
    let mut asked: Value =
        serde_json::from_str(&body(&talk, &json!({"type": "adaptive"}))).unwrap();
    asked["tool_choice"] = json!({"type": "any"});
    let got = post(&base, path(Dialect::Messages), &HEADERS, asked.to_string()).await;
    assert_eq!(got.status, 400);
    assert!(got.text().contains("tool_choice"), "{}", got.text());
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_compaction_of_an_edited_conversation_is_valid_without_our_tools() {
    let upstream = thinker().await;
    let mut settings = settings(&upstream.url(), "steady");
    settings.retrieval = false;
    let (running, base) = proxy(settings).await;
    let mut talk = edited_talk(&upstream, &base).await;
    talk.user("Your task is to create a detailed summary of the conversation so far.");
    // Older requests had more room, so this one is too long to pass as it came.
    let asked = body(&talk, &json!({"type": "adaptive"}));
    let got = post(&base, path(Dialect::Messages), &HEADERS, asked).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(upstream.violations(), Vec::<String>::new());
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_signature_teaches_nothing_about_the_model() {
    let upstream = thinker().await;
    let (running, base) = proxy(settings(&upstream.url(), "steady")).await;
    let mut talk = Talk::new(Dialect::Messages, "read all the parts");
    "claude-opus-5".clone_into(&mut talk.model);
    talk.max_tokens = 1_200;
    for damaged in [false, true, false, false] {
        let thinking = json!({"type": "adaptive"});
        let mut asked: Value = serde_json::from_str(&body(&talk, &thinking)).unwrap();
        if damaged {
            asked["messages"][1]["content"][0]["signature"] = json!("bm90IG91cnM=");
        }
        let got = post(&base, path(Dialect::Messages), &HEADERS, asked.to_string()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let answer: Value = serde_json::from_str(&got.text()).unwrap();
        take(&mut talk, &answer, &lines(60));
    }
    // This model does not bind its reasoning, so nothing of it is removed later.
    let last = upstream.requests().last().unwrap().json();
    assert_eq!(
        last["messages"][3]["content"][0]["type"], "thinking",
        "{last}"
    );
    running.shutdown().await;
}

#[tokio::test]
async fn as_many_tools_as_a_provider_takes_leave_no_room_for_ours() {
    for dialect in [Dialect::Chat, Dialect::Responses] {
        let upstream = Upstream::start(UpstreamOptions::default()).await.unwrap();
        let (running, base) = proxy(settings(&upstream.url(), "steady")).await;
        let talk = Talk::new(dialect, "hello");
        let mut asked: Value = serde_json::from_str(&talk.body()).unwrap();
        let tool = asked["tools"][0].clone();
        let named = |at: usize| {
            let mut tool = tool.clone();
            let name = match dialect {
                Dialect::Chat => &mut tool["function"]["name"],
                _ => &mut tool["name"],
            };
            *name = json!(format!("tool_{at}"));
            tool
        };
        asked["tools"] = (0..127).map(named).collect();
        let got = post(&base, path(dialect), &[], asked.to_string()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(upstream.violations(), Vec::<String>::new());
        running.shutdown().await;
    }
}

/// How many of the requests after the first do not begin with what was sent before.
fn rewrites(upstream: &Upstream, skipped: usize) -> usize {
    let requests = upstream.requests();
    let pairs = requests.windows(2).skip(skipped);
    let is_rewrite = |pair: &&[Arc<ReceivedRequest>]| match pair {
        [before, after] => after.stable * 100 < before.tokens * 90,
        _ => false,
    };
    pairs.filter(is_rewrite).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_does_not_cause_a_rewrite_with_every_request() {
    for dialect in [Dialect::Messages, Dialect::Responses] {
        for preset in ["steady", "refs", "retention"] {
            let upstream = Upstream::start(UpstreamOptions {
                // A vocabulary with long tokens.
                count: Count::FewBytes,
                ..thinker_options()
            })
            .await
            .unwrap();
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let mut talk = Talk::new(dialect, "read all the parts");
            "house-model".clone_into(&mut talk.model);
            talk.max_tokens = 1_200;
            let mut rewritten = Vec::new();
            for process in 0..3 {
                let settings = settings(&upstream.url(), preset);
                let (running, base) = proxy_with(settings, Arc::clone(&store)).await;
                let before = upstream.requests().len();
                for round in 0..16 {
                    let asked = body(&talk, &json!({"type": "adaptive"}));
                    let got = post(&base, path(dialect), &HEADERS, asked).await;
                    assert_eq!(got.status, 200, "{process} {round}: {}", got.text());
                    let answer: Value = serde_json::from_str(&got.text()).unwrap();
                    take(&mut talk, &answer, &lines(20 + round * 37 % 190));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                running.shutdown().await;
                rewritten.push(rewrites(&upstream, before));
            }
            assert!(
                rewritten[1] <= rewritten[0] + 2 && rewritten[2] <= rewritten[0] + 3,
                "{dialect} {preset}: {rewritten:?}"
            );
        }
    }
}
