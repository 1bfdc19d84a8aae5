//! Memory that requests make the proxy use: it is counted, and clients cannot make it grow.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_proxy::{Proxy, RunningProxy};
use trimtab_store::MemoryStore;

use crate::fake::{Reply, Upstream, get, post};
use crate::talk::{Talk, lines};
use crate::{config, proxy, proxy_with};

const PATH: &str = "/v1/chat/completions";
const MIB: usize = 1 << 20;

/// An upstream that begins its answer at once, and ends it when `pause` milliseconds are over.
async fn slow(pause: u64) -> Upstream {
    Upstream::start(move |_, _| {
        let mut reply = Reply::json(200, r#"{"choices":[{"message":{"role":"assistant","#);
        let end = r#""content":"done"},"finish_reason":"stop"}]}"#;
        reply.pieces.push((pause, Bytes::from(end)));
        reply
    })
    .await
}

/// Waits until `is_reached` holds for the reserved bytes, and returns these; none if it never does.
async fn memory(running: &RunningProxy, is_reached: impl Fn(u64) -> bool) -> Option<u64> {
    for _ in 0..500 {
        let bytes = running.report().memory_bytes;
        if is_reached(bytes) {
            return Some(bytes);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    None
}

#[tokio::test]
async fn edited_body_is_counted_while_the_answer_comes() {
    let upstream = slow(3_000).await;
    let (running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(Dialect::Chat, &"x".repeat(4 * MIB));
    // A provider would refuse this output, because nobody called for it.
    talk.output("nobody", "out").user("go on");
    let asking = tokio::spawn({
        let (base, body) = (base.clone(), talk.body());
        async move { post(&base, PATH, &[], body).await }
    });
    while upstream.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The memory for planning was returned before the request was sent.
    let during = running.report().memory_bytes;
    let got = asking.await.unwrap();
    assert_eq!(got.header("x-trimtab-action"), "edited");
    assert_ne!(upstream.seen()[0].text(), talk.body());
    // Only the caches are left, which the request did not change any more.
    let least = 2 * talk.body().len() as u64;
    let after = memory(&running, |after| after + least <= during).await;
    let now = running.report().memory_bytes;
    assert!(
        after.is_some(),
        "{during} during the answer, {now} after it"
    );
}

#[tokio::test]
async fn record_holds_the_beginning_of_a_long_model_name() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let models = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&models);
    let store = Arc::new(MemoryStore::new());
    let running = Proxy::new(config(&upstream.url()), store)
        .log(move |record| kept.lock().unwrap().push(record.model.clone()))
        .run()
        .await
        .unwrap();
    let base = format!("http://{}", running.address());
    let mut talk = Talk::new(Dialect::Chat, "hello");
    talk.model = format!("house-model-{}", "\u{e9}".repeat(MIB));
    talk.has_tools = false;
    for mode in ["on", "bypass"] {
        post(&base, PATH, &[("x-trimtab-mode", mode)], talk.body()).await;
        assert_eq!(upstream.seen().last().unwrap().text(), talk.body());
    }
    // A request that is not managed has its model in the record too.
    let partial = json!({"model": talk.model, "previous_response_id": "r", "input": "and now?"});
    post(&base, "/v1/responses", &[], partial.to_string()).await;
    running.shutdown().await;
    let models = models.lock().unwrap();
    assert_eq!(models.len(), 3);
    for model in models.iter().filter(|model| !model.is_empty()) {
        assert!(model.starts_with("house-model-") && model.chars().count() <= 256);
    }
    assert!(!models[0].is_empty() && !models[2].is_empty());
}

#[tokio::test]
async fn output_that_is_read_back_needs_memory() {
    let upstream = Upstream::start(|_, _| Reply::json(500, "{}")).await;
    let store = Arc::new(MemoryStore::new());
    let (_running, base) = proxy_with(config(&upstream.url()), store.clone()).await;
    let mut talk = Talk::new(Dialect::Chat, "what is in it?");
    talk.round("c1", &lines(60_000));
    let key = [("authorization", "Bearer k")];
    let body = json!({"model": "house-model", "messages": talk.entries});
    let got = post(&base, "/v1/compress", &key, body.to_string()).await;
    let found: Value = serde_json::from_str(&got.text()).unwrap();
    let path = format!("/v1/retrieve/{}", found["ccr_hashes"][0].as_str().unwrap());
    let whole = get(&base, &path, &key).await;
    assert_eq!(whole.status, 200);
    assert!(whole.body.len() > MIB, "{}", whole.body.len());

    let mut small = config(&upstream.url());
    small.limits.memory_bytes = MIB;
    small.limits.tenant_memory_bytes = MIB;
    let (_small, base) = proxy_with(small, store).await;
    assert_eq!(get(&base, &path, &key).await.status, 503);
    let found = get(&base, &format!("{path}?query=line+4321"), &key).await;
    assert_eq!(found.status, 200, "{}", found.text());
}

#[tokio::test]
async fn long_body_of_a_retrieval_is_refused() {
    let upstream = Upstream::start(|_, _| Reply::json(500, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let body = json!({"query": "x".repeat(MIB)}).to_string();
    assert_eq!(post(&base, "/v1/retrieve/r", &[], body).await.status, 413);
}

#[tokio::test]
async fn slow_request_does_not_keep_other_conversations_of_its_session_in_memory() {
    let upstream = Upstream::start(|number, _| {
        let mut reply = Reply::json(200, "{");
        // The first answer ends after the test.
        let pause = if number == 0 { 600_000 } else { 0 };
        reply.pieces.push((pause, Bytes::from("}")));
        reply
    })
    .await;
    let mut config = config(&upstream.url());
    config.limits.memory_bytes = 48 * MIB;
    config.limits.tenant_memory_bytes = 32 * MIB;
    let (_running, base) = proxy(config).await;
    let named = [("authorization", "Bearer k"), ("x-trimtab-session", "one")];
    let conversation = |at: usize| {
        let mut talk = Talk::new(Dialect::Chat, &format!("{at} {}", "x".repeat(2 * MIB)));
        talk.says("done").user("go on");
        talk.body()
    };
    let slow = tokio::spawn({
        let (base, body) = (base.clone(), Talk::new(Dialect::Chat, "hello").body());
        async move { post(&base, PATH, &named, body).await }
    });
    while upstream.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for at in 0..24 {
        let got = post(&base, PATH, &named, conversation(at)).await;
        assert_eq!(got.header("x-trimtab-reason"), "", "{at}");
    }
    let other = [("authorization", "Bearer other")];
    let got = post(&base, PATH, &other, conversation(0)).await;
    assert_eq!(got.header("x-trimtab-reason"), "");
    // A conversation that left memory is continued.
    let got = post(&base, PATH, &named, conversation(0)).await;
    assert_eq!(got.header("x-trimtab-action"), "unchanged");
    assert_eq!(
        got.header("x-trimtab-session").rsplit('/').next(),
        Some("one.1")
    );
    slow.abort();
}

#[tokio::test]
async fn one_more_call_needs_memory_for_what_is_new() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let mut config = config(&upstream.url());
    // Planning all messages of the last body at once would need more: 2 KiB for each.
    config.limits.tenant_memory_bytes = 8 * MIB;
    let (_running, base) = proxy(config).await;
    let mut talk = Talk::new(Dialect::Chat, "write it");
    while talk.entries.len() < 10_000 {
        for _ in 0..500 {
            talk.says("this is the next sentence of it").user("go on");
        }
        let got = post(&base, PATH, &[], talk.body()).await;
        let messages = talk.entries.len();
        assert_eq!(got.header("x-trimtab-reason"), "", "{messages} messages");
    }
}
