//! System entries of the client keep their place.

use serde_json::{Value, json};
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;
use trimtab_proxy::ModelRule;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::fake::post;
use crate::fits::HEADERS;
use crate::talk::{Talk, lines, path};
use crate::{config, proxy};

const WINDOW: u64 = 9_000;
const ROUNDS: usize = 16;

/// Who knows the model's window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Knows {
    /// The proxy: it compacts before the window is full.
    Proxy,
    /// Only the provider: the proxy recovers from its refusal.
    Provider,
}

/// Sends a conversation that grows past its window, with what `more` adds after each round;
/// gives the bodies that arrived for it.
async fn bodies(
    mut talk: Talk,
    preset: &str,
    knows: Knows,
    more: impl Fn(&mut Talk, usize),
) -> Vec<Value> {
    let source = ReplySource::with(|received| {
        if received.last.contains("<summary>") {
            return ScriptedReply::text("<summary>\nfiles were read\n</summary>");
        }
        ScriptedReply::text("read")
    });
    let options = UpstreamOptions {
        window: (knows == Knows::Provider).then_some(WINDOW),
        ..UpstreamOptions::new(source)
    };
    let upstream = Upstream::start(options).await.unwrap();
    let mut config = config(&upstream.url());
    preset.clone_into(&mut config.preset);
    config.models.push(ModelRule {
        model: "*".to_owned(),
        window: (knows == Knows::Proxy).then_some(WINDOW),
        max_output: None,
        preset: None,
        mode: None,
    });
    let (running, base) = proxy(config).await;
    for round in 0..ROUNDS {
        let got = post(&base, path(talk.dialect), &HEADERS, talk.body()).await;
        assert_eq!(got.status, 200, "{preset} {round}: {}", got.text());
        talk.round(&format!("call_{round}"), &lines(30 + round * 37 % 150));
        more(&mut talk, round);
    }
    assert_eq!(
        upstream.violations(),
        Vec::<String>::new(),
        "{preset} {knows:?}"
    );
    assert!(running.report().edited > 0, "{preset}");
    let is_summary = |received: &ReceivedRequest| {
        let asks = ["<summary>", "Summarise this tool output"];
        asks.iter().any(|words| received.last.contains(words))
    };
    let requests = upstream.requests();
    let own = requests.iter().filter(|received| !is_summary(received));
    own.map(|received| serde_json::from_slice(&received.body).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_developer_item_stays_first() {
    let tools = json!({"type": "additional_tools", "role": "developer",
        "tools": [{"type": "custom", "name": "exec", "description": "runs"}]});
    for preset in presets() {
        let mut talk = Talk::new(Dialect::Responses, "go");
        talk.entries.insert(0, tools.clone());
        for body in bodies(talk, preset, Knows::Proxy, |_, _| {}).await {
            assert_eq!(body["input"][0], tools, "{preset}");
        }
    }
}

fn presets() -> impl Iterator<Item = &'static str> {
    let names = PRESETS.iter().map(|preset| preset.name);
    names.filter(|name| *name != "none")
}

/// The texts of the system messages in the list of a body, in order.
fn system_texts(body: &Value) -> Vec<String> {
    let list = body["messages"].as_array().unwrap().iter();
    let system = list.filter(|message| message["role"] == "system");
    let texts = system.flat_map(|message| match &message["content"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| part["text"].as_str().unwrap());
            texts.map(str::to_owned).collect()
        }
        other => panic!("{other}"),
    });
    texts.collect()
}

/// The rules for system messages in the list: behind the user's side, before an answer or the
/// end, and not two in a row.
fn assert_accepted(body: &Value, context: &str) {
    let list = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = list
        .iter()
        .filter(|message| message["content"] != json!([]))
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles[0], "user", "{context}: {roles:?}");
    for (at, role) in roles.iter().enumerate() {
        if *role == "system" {
            assert_eq!(roles[at - 1], "user", "{context} {at}: {roles:?}");
            let next = roles.get(at + 1).copied().unwrap_or("assistant");
            assert_eq!(next, "assistant", "{context} {at}: {roles:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn system_messages_stay_in_place_and_never_come_first() {
    for knows in [Knows::Proxy, Knows::Provider] {
        for preset in presets() {
            let context = format!("{preset} {knows:?}");
            let mut talk = Talk::new(Dialect::Messages, "the task");
            talk.entries.push(
                json!({"role": "system", "content": format!("environment {}", "e f ".repeat(300))}),
            );
            let more = |talk: &mut Talk, round: usize| {
                let note = json!([{"type": "text", "text": format!("note {round}")}]);
                match round % 4 {
                    1 => talk
                        .entries
                        .push(json!({"role": "system", "content": note})),
                    2 => talk.entries.push(json!({"role": "system", "content": [],
                        "output_config": {"effort": "high"}})),
                    _ => {}
                }
            };
            let mut last = 0;
            for body in bodies(talk, preset, knows, more).await {
                assert_accepted(&body, &context);
                let texts = system_texts(&body);
                assert!(texts[0].starts_with("environment"), "{context}: {texts:?}");
                let notes = texts.iter().skip(1).map(String::as_str);
                let expected: Vec<String> = (0..texts.len() - 1)
                    .map(|at| format!("note {}", 4 * at + 1))
                    .collect();
                assert_eq!(notes.collect::<Vec<_>>(), expected, "{context}");
                assert!(
                    texts.len() >= last,
                    "{context}: a message is lost: {texts:?}"
                );
                last = texts.len();
            }
            assert_eq!(last, 1 + ROUNDS / 4, "{context}");
        }
    }
}
