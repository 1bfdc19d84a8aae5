//! Every fault is reported clearly, and the session stays usable.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab_agent::model::{ApiKey, Endpoint, HttpModel, Model, ModelClient, RetryPolicy};
use trimtab_agent::tools::{Tool, ToolDefinition, ToolFuture, ToolOutcome, ToolSet, Workspace};
use trimtab_agent::{AgentError, TurnEnd};
use trimtab_model::Dialect;
use trimtab_store::{MemoryStore, Store};
use trimtab_testkit::script::{Script, ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use super::common::{http, set};

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

async fn upstream(replies: impl IntoIterator<Item = ScriptedReply>) -> Upstream {
    let source = ReplySource::script(Script::new(replies));
    Upstream::start(UpstreamOptions {
        key: Some("right".to_owned()),
        ..UpstreamOptions::new(source)
    })
    .await
    .unwrap()
}

/// A client with a key for `base`.
fn client(dialect: Dialect, base: &str, key: &str) -> HttpModel {
    let endpoint = Endpoint::new(base).unwrap().key(ApiKey::new(key));
    HttpModel::new(dialect, endpoint).retries(RetryPolicy::NONE)
}

/// The error of a first turn with one client; with another, the session goes on.
async fn error_then_well(broken: HttpModel, upstream: &Upstream) -> String {
    let dialect = trimtab_agent::model::ModelBackend::dialect(&broken);
    let mut set = set(broken, store(), |_| {});
    let error = set.agent.turn("hello").await.unwrap_err();
    assert!(matches!(error, AgentError::Model(_)), "{error:?}");
    upstream.clear_requests();
    let good = ModelClient::new(client(dialect, &upstream.url(), "right"));
    set.agent.set_model(Model::new(good, "gpt-5")).unwrap();
    assert_eq!(
        set.agent.turn("again").await.unwrap().end,
        TurnEnd::Answered
    );
    assert_eq!(upstream.violations(), Vec::<String>::new());
    error.to_string()
}

#[tokio::test]
async fn wrong_key_is_reported() {
    for dialect in Dialect::ALL {
        let upstream = upstream([]).await;
        let mut set = set(
            client(dialect, &upstream.url(), "sk-wrong"),
            store(),
            |_| {},
        );
        let error = set.agent.turn("hello").await.unwrap_err().to_string();
        assert!(error.contains("refused the key (HTTP 401)"), "{error}");
        assert!(
            error.contains("_API_KEY") && !error.contains("sk-wrong"),
            "{error}"
        );
        let good = ModelClient::new(client(dialect, &upstream.url(), "right"));
        set.agent.set_model(Model::new(good, "gpt-5")).unwrap();
        assert_eq!(set.agent.go_on().await.unwrap().text, "done");
    }
}

#[tokio::test]
async fn unreachable_host_is_reported() {
    let upstream = upstream([]).await;
    // Nobody listens on a port that was just given back.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let error = error_then_well(client(Dialect::Chat, &base, "k"), &upstream).await;
    assert!(
        error.starts_with(&format!("cannot reach {base}/v1/chat/completions: ")),
        "{error}"
    );
    assert!(error.contains("refused"), "{error}");

    let nowhere = client(Dialect::Chat, "http://no-such-host.invalid/v1", "k");
    let error = error_then_well(nowhere, &upstream).await;
    assert!(
        error.starts_with("cannot reach http://no-such-host.invalid/v1"),
        "{error}"
    );
}

#[tokio::test]
async fn server_without_tls_is_reported() {
    let upstream = upstream([]).await;
    let base = upstream.url().replace("http://", "https://");
    let error = error_then_well(client(Dialect::Messages, &base, "k"), &upstream).await;
    assert!(
        error.starts_with("cannot reach https://127.0.0.1"),
        "{error}"
    );
}

#[tokio::test]
async fn wrong_base_url_is_reported() {
    let good = upstream([]).await;
    let base = format!("{}/somewhere/else", good.url());
    let error = error_then_well(client(Dialect::Chat, &base, "right"), &good).await;
    assert!(
        error.contains("/somewhere/else/chat/completions"),
        "{error}"
    );
    assert!(
        error.contains("HTTP 404") && error.contains("hint: check"),
        "{error}"
    );

    let page = upstream([ScriptedReply::text("x").with_fault(ScriptedFault::Html)]).await;
    let error = error_then_well(client(Dialect::Chat, &page.url(), "right"), &page).await;
    assert!(
        error.contains("answered HTTP 200 with an HTML page"),
        "{error}"
    );
}

#[tokio::test]
async fn unknown_model_is_reported() {
    for dialect in Dialect::ALL {
        let fault = ScriptedFault::Status {
            code: 404,
            retry_after: None,
        };
        let upstream = upstream([ScriptedReply::text("x").with_fault(fault)]).await;
        let error = error_then_well(client(dialect, &upstream.url(), "right"), &upstream).await;
        assert!(error.contains("has no model `gpt-5` (HTTP 404)"), "{error}");
    }
}

/// A tool that does what its argument says.
struct Bad;

impl Tool for Bad {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({"type": "object", "properties": {"how": {"type": "string"}}});
        ToolDefinition::new("bad", "Goes wrong.", schema)
    }

    fn call<'a>(&'a self, arguments: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move {
            match arguments["how"].as_str() {
                Some("hangs") => std::future::pending().await,
                Some("panics") => panic!("on purpose"),
                Some("empty") => ToolOutcome::text(""),
                _ => ToolOutcome::error("error: it failed"),
            }
        })
    }
}

#[tokio::test]
async fn failing_tools_are_reported_to_the_model() {
    for dialect in Dialect::ALL {
        let replies = [
            ScriptedReply::call("bad", json!({"how": "fails"}))
                .and_call("bad", json!({"how": "panics"})),
            ScriptedReply::call("bad", json!({"how": "hangs"}))
                .and_call("bad", json!({"how": "empty"})),
            ScriptedReply::call("shell", json!({"command": "head -c 100000 /dev/urandom"})),
            ScriptedReply::call(
                "shell",
                json!({"command": "printf '\\0\\001\\377'; exit 7"}),
            ),
            ScriptedReply::call("bad", json!("{not json")).and_call("no_such_tool", json!({})),
            ScriptedReply::call("read_file", json!({"path": 7})).and_call("read_file", json!("[]")),
            ScriptedReply::text("all of that is answered"),
        ];
        let upstream = upstream(replies).await;
        let client = client(dialect, &upstream.url(), "right");
        let mut set = set(client, store(), |settings| {
            settings.tools = ToolSet::standard().with(Bad);
            settings.tool_time = std::time::Duration::from_millis(300);
        });
        let turn = set.agent.turn("break things").await.unwrap();
        assert_eq!(
            (turn.text.as_str(), turn.rounds),
            ("all of that is answered", 7)
        );
        assert_eq!(upstream.violations(), Vec::<String>::new(), "{dialect}");
        let log = set.agent.session().projection().log().messages();
        let errors = log.iter().flat_map(|message| message.outputs());
        // All but the empty output and the random bytes, which are no failure.
        assert_eq!(
            errors.filter(|output| output.is_error).count(),
            8,
            "{dialect}"
        );
        assert!(set.folder.path().exists());
    }
}

#[tokio::test]
async fn whole_answers_work_like_streams() {
    for dialect in Dialect::ALL {
        let replies = [
            ScriptedReply::call("produce", json!({"n": 1})).thinking("hm"),
            ScriptedReply::text("here it is"),
        ];
        let script = ReplySource::script(Script::new(replies));
        let options = UpstreamOptions {
            sign: true,
            ..UpstreamOptions::new(script)
        };
        let upstream = Upstream::start(options).await.unwrap();
        let client = http(dialect, &upstream.url()).whole_answers();
        let mut set = set(client, store(), |_| {});
        let turn = set.agent.turn("go").await.unwrap();
        assert_eq!((turn.text.as_str(), turn.rounds), ("here it is", 2));
        assert!(turn.usage.input > 0);
        assert_eq!(upstream.violations(), Vec::<String>::new(), "{dialect}");
        assert!(upstream.requests().iter().all(|received| !received.stream));
    }
}
