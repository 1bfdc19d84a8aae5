//! Entries that the client adds in the system's name stay where it put them.

use serde_json::{Value, json};
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;
use trimtab_proxy::ModelRule;
use trimtab_testkit::script::Reply;
use trimtab_testkit::upstream::{Options, Received, Source, Upstream};

use crate::fake::post;
use crate::fits::HEADERS;
use crate::talk::{Talk, lines, path};
use crate::{config, proxy};

const WINDOW: u64 = 9_000;
const ROUNDS: usize = 16;

/// Sends a conversation that grows past its window; gives the bodies that arrived for it.
async fn bodies(mut talk: Talk, preset: &str) -> Vec<Value> {
    let source = Source::with(|received| {
        if received.last.contains("<summary>") {
            return Reply::text("<summary>\nfiles were read\n</summary>");
        }
        Reply::text("read")
    });
    let upstream = Upstream::start(Options::new(source)).await.unwrap();
    let mut config = config(&upstream.url());
    preset.clone_into(&mut config.preset);
    config.models.push(ModelRule {
        model: "*".to_owned(),
        window: Some(WINDOW),
        max_output: None,
        preset: None,
        mode: None,
    });
    let (running, base) = proxy(config).await;
    for round in 0..ROUNDS {
        let got = post(&base, path(talk.dialect), &HEADERS, talk.body()).await;
        assert_eq!(got.status, 200, "{preset} {round}: {}", got.text());
        talk.round(&format!("call_{round}"), &lines(30 + round * 37 % 150));
    }
    assert_eq!(upstream.violations(), Vec::<String>::new(), "{preset}");
    assert!(running.report().edited > 0, "{preset}");
    let is_summary = |received: &Received| {
        let asks = ["<summary>", "Summarise this tool output"];
        asks.iter().any(|words| received.last.contains(words))
    };
    let requests = upstream.requests();
    let own = requests.iter().filter(|received| !is_summary(received));
    own.map(|received| serde_json::from_slice(&received.body).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_item_of_the_developer_stays_first() {
    let tools = json!({"type": "additional_tools", "role": "developer",
        "tools": [{"type": "custom", "name": "exec", "description": "runs"}]});
    for preset in PRESETS.iter().filter(|preset| preset.name != "none") {
        let mut talk = Talk::new(Dialect::Responses, "go");
        talk.entries.insert(0, tools.clone());
        for body in bodies(talk, preset.name).await {
            assert_eq!(body["input"][0], tools, "{}", preset.name);
        }
    }
}
