//! `/v1/compress` by the rules of agentgateway's policy `contextCompression`.
//!
//! The gateway sends the messages of a provider, as they are in its request, and the model if the
//! request names one; Responses items are called `messages` too. It sends no headers but those that
//! are configured. It takes the messages of an answer
//! with status 200 if there are any, all of them are objects, and no call or output lost its
//! counterpart. Otherwise it sends the original ones. It watches how much the provider has cached.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_wire::scan::BodyScan;
use trimtab_wire::validate::validate;

use crate::fake::{Reply, Upstream, post};
use crate::managed::windowed;
use crate::talk::{Talk, lines};
use crate::{config, proxy};

const DIALECTS: [Dialect; 3] = [Dialect::Chat, Dialect::Messages, Dialect::Responses];
/// The gateway sends smaller requests as they are, in bytes.
const LEAST_BODY: usize = 16 << 10;
const WINDOW: u64 = 20_000;
const KEY: &[(&str, &str)] = &[("authorization", "Bearer k")];
const NO_HEADERS: &[(&str, &str)] = &[];

/// The messages that the gateway takes.
async fn taken(base: &str, headers: &[(&str, &str)], mut request: Value) -> Vec<Value> {
    let body = request.to_string();
    assert!(body.len() >= LEAST_BODY, "the gateway would not ask");
    let got = post(base, "/v1/compress", headers, body).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let reply: Value = serde_json::from_str(&got.text()).unwrap();
    assert!(reply["tokens_saved"].is_i64(), "{}", reply["tokens_saved"]);
    let messages = reply["messages"].as_array().unwrap().clone();
    assert!(!messages.is_empty());
    assert!(messages.iter().all(Value::is_object));
    let Value::Array(came) = request["messages"].take() else {
        panic!("there are no messages");
    };
    let lost: Vec<String> = unpaired(&messages)
        .difference(&unpaired(&came))
        .cloned()
        .collect();
    assert!(lost.is_empty(), "calls or outputs are alone now: {lost:?}");
    messages
}

/// The ids that only a call has, or only an output.
fn unpaired(messages: &[Value]) -> BTreeSet<String> {
    let (mut calls, mut outputs) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |is_call: bool, id: &Value| {
        let ids = if is_call { &mut calls } else { &mut outputs };
        ids.extend(id.as_str().map(str::to_owned));
    };
    for message in messages {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            add(true, &call["id"]);
        }
        add(false, &message["tool_call_id"]);
        for part in message["content"].as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("tool_use") => add(true, &part["id"]),
                Some("tool_result") => add(false, &part["tool_use_id"]),
                _ => {}
            }
        }
        match message["type"].as_str() {
            Some("function_call") => add(true, &message["call_id"]),
            Some("function_call_output") => add(false, &message["call_id"]),
            _ => {}
        }
    }
    calls.symmetric_difference(&outputs).cloned().collect()
}

/// What the provider would say to these messages.
fn faults(dialect: Dialect, messages: &[Value]) -> String {
    let list = match dialect {
        Dialect::Responses => "input",
        Dialect::Chat | Dialect::Messages => "messages",
    };
    let body = json!({"model": "m", "max_tokens": 9, list: messages}).to_string();
    let faults = validate(&BodyScan::new(body.as_bytes(), dialect).unwrap());
    let faults: Vec<String> = faults.iter().map(|fault| format!("{fault:?}")).collect();
    faults.join(" ")
}

/// How many messages at the front are the same.
fn same(before: &[Value], now: &[Value]) -> usize {
    before.iter().zip(now).take_while(|(a, b)| a == b).count()
}

#[tokio::test]
async fn growing_conversation_fits_and_keeps_its_pairs_and_its_front() {
    let upstream = Upstream::start(|_, _| Reply::json(500, "{}")).await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), WINDOW)).await;
    for dialect in DIALECTS {
        for (model, headers) in [(Some("house-model"), KEY), (None, NO_HEADERS)] {
            let mut talk = Talk::new(dialect, &format!("what is in it? {model:?}"));
            talk.round("first", &lines(4_000));
            let (mut before, mut rewrites) = (Vec::new(), 0);
            for round in 0..40 {
                talk.call(&format!("a{round}"), "read");
                talk.output(&format!("a{round}"), &lines(60 + round));
                let mut request = json!({"messages": talk.entries});
                if let Some(model) = model {
                    request["model"] = json!(model);
                }
                let sent = taken(&base, headers, request).await;
                assert_eq!(faults(dialect, &sent), "", "{dialect}, round {round}");
                let tokens = serde_json::to_string(&sent).unwrap().len() as u64 / 4;
                assert!(tokens < WINDOW, "{dialect}, round {round}: {tokens} tokens");
                rewrites += usize::from(same(&before, &sent) < before.len());
                before = sent;
            }
            // The conversation outgrows the window, and the provider's cache is lost with each rewrite.
            assert!(
                (1..=5).contains(&rewrites),
                "{dialect}, {model:?}: {rewrites} of 40"
            );
        }
    }
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn rows_stay_one_for_one_and_orphans_stay_orphans() {
    let upstream = Upstream::start(|_, _| Reply::json(500, "{}")).await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), WINDOW)).await;
    for dialect in DIALECTS {
        let mut talk = Talk::new(dialect, "what is in it?");
        talk.output("without a call", &lines(4_000));
        talk.round("whole", &lines(5_000));
        talk.call("without an output", "read");
        for is_model_named in [true, false] {
            let mut request = json!({"messages": talk.entries, "rows": true});
            if is_model_named {
                request["model"] = json!("house-model");
            }
            let sent = taken(&base, KEY, request).await;
            assert_eq!(sent.len(), talk.entries.len(), "{dialect}");
            assert_eq!(unpaired(&sent), unpaired(&talk.entries), "{dialect}");
            let sizes = [&sent, &talk.entries].map(|one| json!(one).to_string().len());
            assert!(sizes[0] < sizes[1] / 4, "{dialect}: {sizes:?}");
        }
    }
}
