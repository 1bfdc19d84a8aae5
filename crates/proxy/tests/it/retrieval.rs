//! The proxy serves the model's retrieval calls.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_proxy::ProxyConfig;
use trimtab_store::{MemoryStore, Store};

use crate::fake::{Asked, Reply, Upstream, post};
use crate::talk::{Talk, answer, calling, lines, may_call, path, said, streamed};
use crate::{config, proxy, proxy_with};

/// The ref that a window shows.
pub(crate) fn shown_ref(body: &str) -> String {
    let at = body.find("ref_id");
    let at =
        at.unwrap_or_else(|| panic!("a ref in {}", body.chars().take(9_000).collect::<String>()));
    let rest = &body[at + "ref_id".len()..];
    let start = rest
        .find(|byte: char| byte.is_ascii_alphanumeric())
        .unwrap();
    rest[start..]
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect()
}

/// Part of a window: its messages.
fn list(dialect: Dialect, asked: &Asked) -> Vec<Value> {
    let name = if dialect == Dialect::Responses {
        "input"
    } else {
        "messages"
    };
    asked.json()[name].as_array().unwrap().clone()
}

fn reply(dialect: Dialect, asked: &Asked, whole: &str) -> Reply {
    if asked.json()["stream"] == true {
        Reply::stream(streamed(dialect, whole))
    } else {
        Reply::json(200, whole)
    }
}

/// A model that looks up line 4,321 in the stored output before it answers.
async fn curious(dialect: Dialect) -> Upstream {
    Upstream::start(move |_, asked| {
        let text = asked.text();
        if text.contains("line 4321: the value is") {
            return reply(dialect, asked, &answer(dialect, "it is in line 4321", 60));
        }
        assert!(
            text.contains("tool_output_cache_grep"),
            "the tools are offered"
        );
        let arguments = json!({"ref_id": shown_ref(&text), "offset": 4321, "limit": 1});
        reply(
            dialect,
            asked,
            &calling(dialect, "h1", "tool_output_cache", &arguments),
        )
    })
    .await
}

#[tokio::test]
async fn a_retrieval_call_is_served_and_hidden() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let upstream = curious(dialect).await;
            let (running, base) = proxy(config(&upstream.url())).await;
            let mut talk = Talk::new(dialect, "what is in line 4321?");
            talk.stream = stream;
            talk.round("c1", &lines(9_000));
            let got = post(&base, path(dialect), &[], talk.body()).await;
            assert_eq!(got.status, 200);
            let text = got.text();
            assert_eq!(
                said(dialect, &text),
                "it is in line 4321",
                "{dialect}: {text}"
            );
            assert!(
                !text.contains("tool_output_cache"),
                "{dialect} {stream}: {text}"
            );
            let seen = upstream.seen();
            assert_eq!(seen.len(), 2);
            assert_eq!(running.report().retrievals, 1);

            // Later requests replay the hidden round, byte for byte.
            talk.says("it is in line 4321").user("thanks");
            post(&base, path(dialect), &[], talk.body()).await;
            let seen = upstream.seen();
            let (before, after) = (list(dialect, &seen[1]), list(dialect, &seen[2]));
            assert_eq!(before[..], after[..before.len()], "{dialect} {stream}");
            for asked in &seen {
                let scan = trimtab_wire::scan::BodyScan::new(&asked.body, dialect).unwrap();
                assert_eq!(
                    trimtab_wire::validate::validate(&scan),
                    [],
                    "{}",
                    asked.text()
                );
            }
        }
    }
}

/// A model that asks for line 4,321 of a stored output and for the client's own tool at once.
async fn asks_both(dialect: Dialect) -> Upstream {
    Upstream::start(move |_, asked| {
        let text = asked.text();
        if text.contains("\"c2\"") {
            return reply(dialect, asked, &answer(dialect, "both known", 60));
        }
        let arguments = json!({"ref_id": shown_ref(&text), "offset": 4321, "limit": 1});
        let ours = calling(dialect, "h1", "tool_output_cache", &arguments);
        let theirs = calling(dialect, "c2", "read", &json!({}));
        reply(dialect, asked, &both(dialect, &ours, &theirs))
    })
    .await
}

/// Whether the proxy is started again while the client works on its own call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Between {
    Nothing,
    Restart,
}

/// Has `asks_both` answered, and gives what was sent in the end.
async fn mixed(dialect: Dialect, stream: bool, between: Between) -> Asked {
    let upstream = asks_both(dialect).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (running, base) = proxy_with(config(&upstream.url()), Arc::clone(&store)).await;
    let mut talk = Talk::new(dialect, "what is in line 4321, and in the other file?");
    talk.stream = stream;
    talk.round("c1", &lines(9_000));
    let got = post(&base, path(dialect), &[], talk.body()).await;
    let text = got.text();
    assert!(
        text.contains("c2") && !text.contains("tool_output_cache"),
        "{dialect} {stream}: {text}"
    );
    let (_running, base) = if between == Between::Restart {
        drop(running);
        proxy_with(config(&upstream.url()), store).await
    } else {
        (running, base)
    };
    talk.round("c2", "other file");
    let got = post(&base, path(dialect), &[], talk.body()).await;
    assert_eq!(said(dialect, &got.text()), "both known");
    upstream.seen()[1].clone()
}

#[tokio::test]
async fn client_tool_calls_reach_the_client() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let sent = mixed(dialect, stream, Between::Nothing).await;
            assert!(
                sent.text().contains("line 4321: the value is"),
                "{dialect}: {}",
                sent.text()
            );
            let scan = trimtab_wire::scan::BodyScan::new(&sent.body, dialect).unwrap();
            assert_eq!(
                trimtab_wire::validate::validate(&scan),
                [],
                "{}",
                sent.text()
            );
            // The model is sent the same after a restart; only the names of refs differ.
            let again = mixed(dialect, stream, Between::Restart).await;
            let unnamed = |asked: &Asked| asked.text().replace(&shown_ref(&asked.text()), "REF");
            assert_eq!(unnamed(&sent), unnamed(&again), "{dialect} {stream}");
        }
    }
}

#[tokio::test]
async fn calls_of_a_discarded_answer_are_not_restored() {
    let dialect = Dialect::Chat;
    let upstream = asks_both(dialect).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(dialect, "what is in line 4321, and in the other file?");
    talk.round("c1", &lines(9_000));
    post(&base, path(dialect), &[], talk.body()).await;
    // The client asked again elsewhere and goes on from another answer.
    talk.round("c3", "another file").round("c2", "other file");
    post(&base, path(dialect), &[], talk.body()).await;
    let sent = upstream.seen()[1].text();
    assert!(!sent.contains("line 4321: the value is"), "{sent}");
    assert!(sent.contains("another file"));
}

/// One answer with the calls of two.
pub(crate) fn both(dialect: Dialect, one: &str, other: &str) -> String {
    let mut one: Value = serde_json::from_str(one).unwrap();
    let other: Value = serde_json::from_str(other).unwrap();
    let pointer = match dialect {
        Dialect::Chat => "/choices/0/message/tool_calls",
        Dialect::Messages => "/content",
        Dialect::Responses => "/output",
    };
    let more = other.pointer(pointer).unwrap().as_array().unwrap().clone();
    one.pointer_mut(pointer)
        .unwrap()
        .as_array_mut()
        .unwrap()
        .extend(more);
    one.to_string()
}

/// A call of a tool that is no function: a shell in Responses, a tool with free text in Chat
/// Completions.
fn special_call(dialect: Dialect) -> String {
    let mut whole: Value = serde_json::from_str(&calling(dialect, "c2", "x", &json!({}))).unwrap();
    match dialect {
        Dialect::Chat => {
            whole["choices"][0]["message"]["tool_calls"] = json!([{"id": "c2", "type": "custom",
                "custom": {"name": "patch", "input": "*** a"}}]);
        }
        Dialect::Responses => {
            whole["output"] = json!([{"type": "local_shell_call", "id": "l2", "call_id": "c2",
                "status": "completed", "action": {"type": "exec", "command": ["ls"], "env": {}}}]);
        }
        Dialect::Messages => {}
    }
    whole.to_string()
}

#[tokio::test]
async fn call_of_a_special_tool_beside_a_hidden_call_ends_the_answer() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let upstream = Upstream::start(move |_, asked| {
                let arguments = json!({"ref_id": shown_ref(&asked.text()), "limit": 1});
                let ours = calling(dialect, "h1", "tool_output_cache", &arguments);
                reply(
                    dialect,
                    asked,
                    &both(dialect, &ours, &special_call(dialect)),
                )
            })
            .await;
            let (_running, base) = proxy(config(&upstream.url())).await;
            let mut talk = Talk::new(dialect, &format!("{stream}"));
            talk.stream = stream;
            talk.round("c1", &lines(9_000));
            let got = post(&base, path(dialect), &[], talk.body()).await.text();
            assert_eq!(upstream.seen().len(), 1, "{dialect} {stream}: {got}");
            assert!(
                got.contains("c2") && !got.contains("tool_output_cache\""),
                "{got}"
            );
        }
    }
}

#[tokio::test]
async fn a_model_that_never_stops_asking_is_stopped() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let upstream = Upstream::start(move |number, asked| {
                if !may_call(&asked.json()) {
                    return reply(dialect, asked, &answer(dialect, "well then", 60));
                }
                let arguments = json!({"ref_id": shown_ref(&asked.text()), "offset": number});
                let id = format!("h{number}");
                let whole = calling(dialect, &id, "tool_output_cache", &arguments);
                reply(dialect, asked, &whole)
            })
            .await;
            let mut settings = config(&upstream.url());
            settings.limits.retrieval_rounds = 3;
            let (_running, base) = proxy(settings).await;
            let mut talk = Talk::new(dialect, &format!("{stream}"));
            talk.stream = stream;
            talk.round("c1", &lines(9_000));
            let got = post(&base, path(dialect), &[], talk.body()).await;
            assert_eq!(got.status, 200);
            assert_eq!(
                said(dialect, &got.text()),
                "well then",
                "{dialect} {stream}"
            );
            let seen = upstream.seen();
            assert_eq!(
                seen.len(),
                5,
                "one call, three rounds, one in which nothing may be called"
            );
            assert!(
                seen[4].text().contains("no more of these calls"),
                "{dialect}"
            );
        }
    }
}

#[tokio::test]
async fn retrieval_tools_are_offered_to_agents_at_once_and_to_others_with_a_ref() {
    let dialect = Dialect::Messages;
    let upstream =
        Upstream::start(move |_, asked| reply(dialect, asked, &answer(dialect, "ok", 9))).await;
    let (running, base) = proxy(config(&upstream.url())).await;
    let tools = |at: usize| {
        let asked = upstream.seen()[at].json();
        asked["tools"].as_array().map_or(0, Vec::len)
    };
    for (at, has_tools, offered) in [(0, true, (3, 3)), (2, false, (0, 2))] {
        let mut talk = Talk::new(dialect, &format!("q {has_tools}"));
        talk.has_tools = has_tools;
        post(&base, path(dialect), &[], talk.body()).await;
        talk.round("c1", "short").round("c2", &lines(5_000));
        post(&base, path(dialect), &[], talk.body()).await;
        assert_eq!((tools(at), tools(at + 1)), offered);
    }
    // A model that only the provider's own tools are for may not know calls of others.
    let mut search = Talk::new(dialect, "search");
    search.has_tools = false;
    let mut value: Value = serde_json::from_str(&search.body()).unwrap();
    value["tools"] = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    post(&base, path(dialect), &[], value.to_string()).await;
    assert_eq!(tools(4), 1);
    // A client that has our MCP server needs no second pair.
    let mut own = Talk::new(dialect, "own");
    own.round("c1", &lines(5_000));
    let mut value: Value = serde_json::from_str(&own.body()).unwrap();
    value["tools"].as_array_mut().unwrap().push(
        json!({"name": "mcp__trimtab__tool_output_cache", "input_schema": {"type": "object"}}),
    );
    post(&base, path(dialect), &[], value.to_string()).await;
    assert_eq!(tools(5), 2);
    running
        .reload(ProxyConfig {
            retrieval: false,
            ..config(&upstream.url())
        })
        .unwrap();
    post(&base, path(dialect), &[], own.body()).await;
    assert_eq!(tools(6), 1);
}
