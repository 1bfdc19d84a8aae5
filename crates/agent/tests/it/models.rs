//! Models that differ in accepted fields and dialects.

use std::sync::Arc;

use serde_json::json;
use trimtab_agent::TurnEnd;
use trimtab_agent::model::{Model, ModelClient};
use trimtab_agent::tools::ToolSet;
use trimtab_model::Dialect;
use trimtab_store::{MemoryStore, Store};
use trimtab_testkit::script::{Script, ScriptedReply};
use trimtab_testkit::upstream::{ReplySource, RequestOutcome, Upstream, UpstreamOptions};

use super::common::{Produce, Sizes, http, set};

/// Three turns of a model that thinks and calls.
fn script() -> Script {
    let turn = |n: u64| {
        [
            ScriptedReply::call("produce", json!({"n": n})).thinking("I need it."),
            ScriptedReply::text(format!("answer {n}")),
        ]
    };
    Script::new((0..3).flat_map(turn))
}

async fn upstream(unsupported: &[&str]) -> Upstream {
    let options = UpstreamOptions {
        sign: true,
        unsupported: unsupported.iter().map(ToString::to_string).collect(),
        ..UpstreamOptions::new(ReplySource::script(script()))
    };
    Upstream::start(options).await.unwrap()
}

#[tokio::test]
async fn rejected_optional_field_is_omitted_from_then_on() {
    let cases: [(Dialect, &[&str]); 5] = [
        (Dialect::Responses, &[]),
        (Dialect::Responses, &["include"]),
        (
            Dialect::Responses,
            &["include", "max_output_tokens", "reasoning"],
        ),
        (Dialect::Chat, &["max_tokens"]),
        (
            Dialect::Chat,
            &["stream_options", "max_tokens", "max_completion_tokens"],
        ),
    ];
    for (dialect, unsupported) in cases {
        let upstream = upstream(unsupported).await;
        let mut client = http(dialect, &upstream.url());
        if unsupported.contains(&"reasoning") {
            client = client.field("reasoning", &json!({"effort": "low"}));
        }
        let mut set = set(client, Arc::new(MemoryStore::new()), |settings| {
            settings.model.name = "a-model-of-mine".to_owned();
        });
        for n in 0..3 {
            let turn = set.agent.turn("go").await;
            let turn = turn.unwrap_or_else(|error| panic!("{dialect} {unsupported:?}: {error}"));
            assert_eq!(turn.text, format!("answer {n}"));
        }
        let requests = upstream.requests();
        let refused = requests
            .iter()
            .filter(|received| received.outcome == RequestOutcome::Refused(400));
        assert_eq!(refused.count(), unsupported.len(), "{dialect}");
        assert_eq!(upstream.violations(), Vec::<String>::new(), "{dialect}");
    }
}

#[tokio::test]
async fn session_continues_in_another_dialect() {
    for from in Dialect::ALL {
        for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
            let (one, other) = (upstream(&[]).await, upstream(&[]).await);
            let store = Arc::new(MemoryStore::new());
            let mut set = set(http(from, &one.url()), store, |_| {});
            set.agent.turn("go").await.unwrap();
            for (dialect, upstream) in [(to, &other), (from, &one)] {
                let client = ModelClient::new(http(dialect, &upstream.url()));
                set.agent.set_model(Model::new(client, "gpt-5")).unwrap();
                let turn = set.agent.turn("go on").await;
                let turn = turn.unwrap_or_else(|error| panic!("{from} to {to}: {error}"));
                assert_eq!(turn.end, TurnEnd::Answered);
            }
            for upstream in [one, other] {
                assert_eq!(
                    upstream.violations(),
                    Vec::<String>::new(),
                    "{from} to {to}"
                );
            }
        }
    }
}

#[tokio::test]
async fn reasoning_that_other_tools_made_stale_is_removed_once() {
    let upstream = upstream(&[]).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for (n, tools) in [ToolSet::none(), ToolSet::standard()]
        .into_iter()
        .enumerate()
    {
        let client = http(Dialect::Messages, &upstream.url());
        let mut set = set(client, Arc::clone(&store), |settings| {
            settings.model.name = "claude-opus-5-5".to_owned();
            settings.tools = tools.with(Produce(Sizes::up_to(60_000)));
        });
        let turn = set.agent.turn("go").await.unwrap();
        assert_eq!(turn.text, format!("answer {n}"));
    }
    let refused = upstream.violations();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("seal"), "{refused:?}");
}
