//! The savings of records agree with what a provider bills for the same conversation, sent to it
//! directly and through the proxy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use trimtab_model::{Dialect, Usage};
use trimtab_proxy::{ModelRule, Proxy, Record, Savings};
use trimtab_store::MemoryStore;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{PromptCacheRules, ReplySource, Upstream, UpstreamOptions};
use trimtab_wire::catalogue::Catalogue;

use crate::config;
use crate::fake::post;
use crate::talk::{Talk, lines, path};

const MODEL: &str = "claude-opus-5-5";
const CALLS: usize = 12;
/// Estimates are off by so much at most, of a hundred.
const TOLERANCE: f64 = 5.0;
/// How long the client thinks before its next call: the proxy learns meanwhile.
const THINKING: Duration = Duration::from_millis(50);

/// What a client marks for the cache in each of its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    Nothing,
    System,
    End,
    /// The whole request, which stands for its end.
    Request,
    /// The system for an hour, and the end for five minutes.
    Both,
}

fn mark(marks: Marks, ttl: Option<&str>, body: &mut Value) {
    let marker = |ttl: Option<&str>| match ttl {
        Some(ttl) => json!({"type": "ephemeral", "ttl": ttl}),
        None => json!({"type": "ephemeral"}),
    };
    let system = |body: &mut Value, ttl: Option<&str>| {
        body["system"] = json!([{"type": "text", "text": body["system"],
            "cache_control": marker(ttl)}]);
    };
    let end = |body: &mut Value, ttl: Option<&str>| {
        let last = body["messages"].as_array_mut().unwrap().last_mut().unwrap();
        if let Some(text) = last["content"].as_str() {
            last["content"] = json!([{"type": "text", "text": text}]);
        }
        last["content"][0]["cache_control"] = marker(ttl);
    };
    match marks {
        Marks::Nothing => {}
        Marks::System => system(body, ttl),
        Marks::End => end(body, ttl),
        Marks::Request => body["cache_control"] = marker(ttl),
        Marks::Both => {
            system(body, Some("1h"));
            end(body, None);
        }
    }
}

/// A provider that caches what markers end.
async fn provider() -> Upstream {
    let cache = PromptCacheRules {
        by_markers: true,
        ..PromptCacheRules::default()
    };
    let reply = |_: &_| ScriptedReply::text("I see.");
    let options = UpstreamOptions {
        cache,
        ..UpstreamOptions::new(ReplySource::with(reply))
    };
    Upstream::start(options).await.unwrap()
}

/// A client with large outputs.
async fn converse(url: &str, marks: Marks, ttl: Option<&str>, stream: bool) {
    let mut talk = Talk::new(Dialect::Messages, "read all the parts");
    MODEL.clone_into(&mut talk.model);
    talk.stream = stream;
    for call in 0..CALLS {
        let mut body: Value = serde_json::from_str(&talk.body()).unwrap();
        body["system"] = "be helpful and read what is asked for. ".repeat(200).into();
        mark(marks, ttl, &mut body);
        let headers = [("anthropic-version", "2023-06-01"), ("x-api-key", "k")];
        let got = post(url, path(Dialect::Messages), &headers, body.to_string()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let output = lines(900).replace("value", &format!("value of part {call}"));
        talk.round(&format!("c{call}"), &output);
        tokio::time::sleep(THINKING).await;
    }
}

fn bill(upstream: &Upstream) -> f64 {
    let model = Catalogue::embedded().find(MODEL).unwrap().model;
    let requests = upstream.requests();
    let usages = requests.iter().filter_map(|request| request.usage);
    let costs = usages.map(|usage: Usage| model.cost(&usage).unwrap().dollars());
    costs.sum()
}

/// What was saved by the bills of the provider, and what the records say, in dollars.
struct Compared {
    /// The bill without the proxy.
    bill: f64,
    billed: f64,
    claimed: f64,
}

/// The same conversation without and with the proxy.
async fn compared(preset: &str, marks: Marks, ttl: Option<&str>, stream: bool) -> Compared {
    let direct = provider().await;
    converse(&direct.url(), marks, ttl, stream).await;
    let upstream = provider().await;
    let savings = Arc::new(Mutex::new(Savings::new(Catalogue::embedded())));
    let sink = Arc::clone(&savings);
    let mut settings = config(&upstream.url());
    settings.models.push(ModelRule {
        model: "*".to_owned(),
        window: Some(400_000),
        max_output: None,
        preset: Some(preset.to_owned()),
        mode: None,
    });
    let running = Proxy::new(settings, Arc::new(MemoryStore::new()))
        .log(move |record: &Record| {
            sink.lock().unwrap().add(record);
        })
        .run()
        .await
        .unwrap();
    converse(&format!("http://{}", running.address()), marks, ttl, stream).await;
    running.shutdown().await;
    let total = savings.lock().unwrap().total().clone();
    assert!(total.edited > 3, "{total:?}");
    let (without, with) = (bill(&direct), bill(&upstream));
    assert!(
        (total.spent - with).abs() < with / 1_000.0,
        "{total:?}, {with}"
    );
    Compared {
        bill: without,
        billed: without - with,
        claimed: total.saved,
    }
}

async fn agree(preset: &str, marks: Marks, ttl: Option<&str>) {
    let Compared {
        bill,
        billed,
        claimed,
    } = compared(preset, marks, ttl, ttl.is_none()).await;
    // Where next to nothing is saved, the share of the whole bill counts: one percent of it.
    let least = billed.abs().max(bill / 5.0);
    let off = 100.0 * (claimed - billed).abs() / least;
    assert!(
        off <= TOLERANCE,
        "{preset} {marks:?} {ttl:?}: ${billed:.4} of ${bill:.4} billed, ${claimed:.4} claimed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn saved_money_agrees_with_the_bills_whatever_the_client_marks() {
    for preset in ["refs", "retention"] {
        agree(preset, Marks::Nothing, None).await;
        agree(preset, Marks::Both, None).await;
        for marks in [Marks::System, Marks::End, Marks::Request] {
            for ttl in [None, Some("1h")] {
                agree(preset, marks, ttl).await;
            }
        }
    }
}
