//! Management of conversations.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, ProxyConfig, ProxyMode};
use trimtab_store::{MemoryStore, Store};

use crate::fake::{Asked, Reply, Upstream, post};
use crate::stores::{Failing, Wrong};
use crate::talk::{Talk, answer, lines, path, said, streamed, without_our_tools};
use crate::{config, proxy, proxy_with};

pub(crate) fn windowed(config: ProxyConfig, window: u64) -> ProxyConfig {
    ProxyConfig {
        models: vec![ModelRule {
            model: "*".to_owned(),
            window: Some(window),
            max_output: None,
            preset: None,
            mode: None,
        }],
        ..config
    }
}

pub(crate) async fn echo(dialect: Dialect) -> Upstream {
    Upstream::start(move |_, asked| {
        let whole = answer(dialect, "a fine answer", asked.body.len() as u64 / 4);
        if asked.json()["stream"] == true {
            Reply::stream(streamed(dialect, &whole))
        } else {
            Reply::json(200, whole)
        }
    })
    .await
}

#[tokio::test]
async fn output_in_several_texts_is_cut_like_one_text() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        let mut talk = Talk::new(dialect, "what is in the files?");
        talk.round("c1", "");
        let (place, kind) = match dialect {
            Dialect::Chat => ("/content", "text"),
            Dialect::Responses => ("/output", "input_text"),
            Dialect::Messages => ("/content/0/content", "text"),
        };
        let text = json!({"type": kind, "text": lines(1_500)});
        let output = talk.entries.last_mut().unwrap().pointer_mut(place);
        *output.unwrap() = json!([text, text]);
        let headers = [("x-api-key", "k"), ("x-trimtab-preset", "refs")];
        let got = post(&base, path(dialect), &headers, talk.body()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let sent = upstream.seen().pop().unwrap();
        assert!(
            sent.text().contains("[tool output truncated; ref="),
            "{dialect}"
        );
        let scan = trimtab_wire::scan::BodyScan::new(&sent.body, dialect).unwrap();
        assert!(
            trimtab_wire::validate::validate(&scan).is_empty(),
            "{dialect}"
        );
    }
}

#[tokio::test]
async fn shortened_outputs_keep_their_view() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let (running, base) = proxy(config(&upstream.url())).await;
        let mut talk = Talk::new(dialect, "what is in the file?");
        talk.round("c1", &lines(20_000));
        let got = post(&base, path(dialect), &[("x-api-key", "k")], talk.body()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(
            got.header("x-trimtab-action"),
            "edited",
            "{:?}",
            got.headers
        );
        talk.says("a fine answer").user("and now?");
        post(&base, path(dialect), &[("x-api-key", "k")], talk.body()).await;
        let seen = upstream.seen();
        let first = seen[0].text();
        assert!(first.len() < talk.body().len() / 2, "{dialect}");
        assert!(first.contains("tool_output_cache"), "{dialect}");
        // What was sent before is sent again, byte for byte.
        let list = if dialect == Dialect::Responses {
            "input"
        } else {
            "messages"
        };
        let (one, other) = (seen[0].json()[list].clone(), seen[1].json()[list].clone());
        let (one, other) = (one.as_array().unwrap(), other.as_array().unwrap());
        assert_eq!(one[..], other[..one.len()]);
        assert_eq!(seen[0].json()["tools"], seen[1].json()["tools"]);
        assert_eq!(running.report().edited, 2);
    }
}

#[tokio::test]
async fn request_without_changes_is_forwarded_byte_for_byte() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        for has_tools in [false, true] {
            let mut talk = Talk::new(dialect, &format!("hello {has_tools}"));
            talk.has_tools = has_tools;
            talk.round("c1", "a.txt").says("one file").user("thanks");
            let body = talk.body().replace(':', " :\t");
            let got = post(&base, path(dialect), &[], body.clone()).await;
            assert_eq!(
                got.header("x-trimtab-action"),
                "unchanged",
                "{:?}",
                got.headers
            );
            let sent = upstream.seen().pop().unwrap().text();
            assert_eq!(sent != body, has_tools);
            // The rest are the client's own bytes.
            assert_eq!(without_our_tools(dialect, &sent), body);
        }
    }
}

#[tokio::test]
async fn observed_requests_are_sent_unchanged() {
    let upstream = echo(Dialect::Messages).await;
    let settings = ProxyConfig {
        mode: ProxyMode::Observe,
        ..config(&upstream.url())
    };
    let (_running, base) = proxy(settings).await;
    let mut talk = Talk::new(Dialect::Messages, "what is in it?");
    talk.round("c1", &lines(20_000));
    let got = post(&base, "/v1/messages", &[], talk.body()).await;
    assert_eq!(got.header("x-trimtab-action"), "observed");
    let figure = |name: &str| got.header(name).parse::<u64>().unwrap();
    assert!(figure("x-trimtab-tokens-after") < figure("x-trimtab-tokens-before") / 2);
    assert_eq!(upstream.seen()[0].text(), talk.body());
}

#[tokio::test]
async fn restart_gives_the_same_bytes() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut talk = Talk::new(dialect, "what is in the file?");
        talk.round("c1", &lines(5_000))
            .round("c2", &lines(4_000))
            .says("much")
            .user("more");
        let (running, base) = proxy_with(config(&upstream.url()), Arc::clone(&store)).await;
        let got = post(&base, path(dialect), &[], talk.body()).await;
        let session = got.header("x-trimtab-session").to_owned();
        running.shutdown().await;
        let (_running, base) = proxy_with(config(&upstream.url()), store).await;
        let got = post(&base, path(dialect), &[], talk.body()).await;
        assert_eq!(got.header("x-trimtab-session"), session);
        let seen = upstream.seen();
        assert_eq!(seen[0].text(), seen[1].text());
    }
}

#[tokio::test]
async fn tenants_do_not_share_sessions() {
    let upstream = echo(Dialect::Chat).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(Dialect::Chat, "what is in the file?");
    talk.round("c1", &lines(5_000));
    let mut sessions = Vec::new();
    for key in ["Bearer one", "Bearer two"] {
        let headers = [("authorization", key), ("x-trimtab-session", "mine")];
        let got = post(&base, "/v1/chat/completions", &headers, talk.body()).await;
        sessions.push(got.header("x-trimtab-session").to_owned());
    }
    assert_ne!(sessions[0], sessions[1]);
    let seen = upstream.seen();
    // Refs differ, so that one tenant's ref is nothing to the other.
    assert_ne!(seen[0].text(), seen[1].text());
    assert!(!seen[0].text().contains("one\""));
}

#[tokio::test]
async fn fork_and_sub_agent_get_separate_branches() {
    let upstream = echo(Dialect::Messages).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let headers = [("x-claude-code-session-id", "cc-1")];
    let mut main = Talk::new(Dialect::Messages, "what is in the file?");
    main.round("c1", &lines(5_000)).says("much").user("go on");
    let session = |talk: &Talk| {
        let (base, body) = (base.clone(), talk.body());
        async move {
            let got = post(&base, "/v1/messages", &headers, body).await;
            got.header("x-trimtab-session").to_owned()
        }
    };
    let first = session(&main).await;
    let mut sub = Talk::new(Dialect::Messages, "you are a sub-agent");
    sub.round("c1", &lines(3_000));
    let second = session(&sub).await;
    let mut fork = main.clone();
    fork.entries.pop();
    fork.user("stop");
    let third = session(&fork).await;
    assert_ne!(first, second);
    assert_ne!(first, third);
    // Each goes on where it was.
    main.says("done").user("thanks");
    sub.says("done").user("thanks");
    assert_eq!(session(&main).await, first);
    assert_eq!(session(&sub).await, second);
    // Every window was valid.
    for asked in upstream.seen() {
        let scan = trimtab_wire::scan::BodyScan::new(&asked.body, Dialect::Messages).unwrap();
        assert!(trimtab_wire::validate::validate(&scan).is_empty());
    }
}

#[tokio::test]
async fn conversation_longer_than_the_window_continues() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let (_running, base) = proxy(windowed(config(&upstream.url()), 8_000)).await;
        let mut talk = Talk::new(dialect, "read all files");
        talk.stream = true;
        for round in 0..30 {
            talk.round(&format!("c{round}"), &lines(150));
            let got = post(&base, path(dialect), &[], talk.body()).await;
            assert_eq!(got.status, 200);
            assert_eq!(said(dialect, &got.text()), "a fine answer");
            let sent = upstream.seen().last().unwrap().body.clone();
            assert!(
                sent.len() < 8_000 * 5,
                "{dialect}: round {round}: {} bytes",
                sent.len()
            );
            let scan = trimtab_wire::scan::BodyScan::new(&sent, dialect).unwrap();
            assert!(trimtab_wire::validate::validate(&scan).is_empty());
        }
    }
}

#[tokio::test]
async fn internal_failure_passes_the_request_through() {
    let upstream = echo(Dialect::Chat).await;
    let mut talk = Talk::new(Dialect::Chat, "what is in the file?");
    talk.round("c1", &lines(5_000));
    for wrong in [
        Wrong::Full(1),
        Wrong::Full(3),
        Wrong::ReadOnly,
        Wrong::Slow(std::time::Duration::from_millis(400)),
    ] {
        let mut settings = config(&upstream.url());
        if let Wrong::Slow(_) = wrong {
            settings.limits.plan_ms = 50;
        }
        let (running, base) = proxy_with(settings, Arc::new(Failing::new(wrong))).await;
        let got = post(&base, "/v1/chat/completions", &[], talk.body()).await;
        assert_eq!(got.status, 200, "{wrong:?}");
        assert_eq!(said(Dialect::Chat, &got.text()), "a fine answer");
        assert_eq!(got.header("x-trimtab-action"), "passed", "{wrong:?}");
        assert_eq!(upstream.seen().last().unwrap().text(), talk.body());
        assert_eq!(running.report().failed_open, 1, "{wrong:?}");
    }
}

#[tokio::test]
async fn fork_reuses_the_bytes_of_its_origin() {
    let dialect = Dialect::Messages;
    let upstream = echo(dialect).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut main = Talk::new(dialect, "what is in the file?");
    main.round("c1", &lines(5_000)).says("much").user("go on");
    post(&base, path(dialect), &[], main.body()).await;
    let mut fork = main.clone();
    fork.entries.pop();
    fork.user("stop");
    post(&base, path(dialect), &[], fork.body()).await;
    let seen = upstream.seen();
    let list = |at: usize| seen[at].json()["messages"].as_array().unwrap().clone();
    let (one, other) = (list(0), list(1));
    assert_eq!(one[..4], other[..4]);
    assert_ne!(one[4], other[4]);
}

#[tokio::test]
async fn holdout_sessions_are_unmanaged() {
    let upstream = echo(Dialect::Chat).await;
    let settings = ProxyConfig {
        holdout: 1.0,
        ..config(&upstream.url())
    };
    let (_running, base) = proxy(settings).await;
    let mut talk = Talk::new(Dialect::Chat, "q");
    talk.round("c1", &lines(5_000));
    let got = post(&base, "/v1/chat/completions", &[], talk.body()).await;
    assert_eq!(got.header("x-trimtab-reason"), "holdout");
    assert_eq!(upstream.seen()[0].text(), talk.body());
}

#[tokio::test]
async fn summary_is_written_in_the_background() {
    for dialect in Dialect::ALL {
        let upstream = Upstream::start(move |_, asked| {
            let text = asked.text();
            let asks = text.contains("tool_choice") || !text.contains("\"stream\"");
            let said = if asks {
                "<summary>SUMMARY BY MODEL: all files were read</summary>"
            } else {
                "a fine answer"
            };
            let whole = answer(dialect, said, asked.body.len() as u64 / 4);
            if asked.json()["stream"] == true {
                Reply::stream(streamed(dialect, &whole))
            } else {
                Reply::json(200, whole)
            }
        })
        .await;
        // Under the default preset no model is asked before everything else was done.
        let mut settings = windowed(config(&upstream.url()), 40_000);
        settings.preset = "checkpoint".to_owned();
        let (_running, base) = proxy(settings).await;
        let mut talk = Talk::new(dialect, "read all files");
        talk.stream = true;
        let mut found = false;
        for round in 0..60 {
            talk.round(&format!("c{round}"), &lines(100));
            let got = post(
                &base,
                path(dialect),
                &[("authorization", "Bearer k")],
                talk.body(),
            )
            .await;
            assert_eq!(got.status, 200);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            found |= upstream
                .seen()
                .last()
                .unwrap()
                .text()
                .contains("SUMMARY BY MODEL");
            if found {
                break;
            }
        }
        assert!(found, "{dialect}: no summary was used");
        let seen = upstream.seen();
        let summary = seen
            .iter()
            .find(|asked| !asked.text().contains("\"stream\":true"))
            .unwrap();
        assert_eq!(summary.headers["authorization"], "Bearer k");
    }
}

#[tokio::test]
async fn summary_that_another_proxy_has_just_finished_is_not_written_again() {
    let dialect = Dialect::Chat;
    let upstream = echo(dialect).await;
    let mut settings = windowed(config(&upstream.url()), 40_000);
    settings.preset = "checkpoint".to_owned();
    let store = Arc::new(Failing::new(Wrong::Overtaken));
    let (_running, base) = proxy_with(settings, Arc::clone(&store) as Arc<dyn Store>).await;
    let mut talk = Talk::new(dialect, "read all files");
    talk.stream = true;
    for round in 0..60 {
        talk.round(&format!("c{round}"), &lines(100));
        post(&base, path(dialect), &[], talk.body()).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if store.releases() > 0 {
            break;
        }
    }
    assert!(store.releases() > 0, "a summary was claimed");
    let seen = upstream.seen();
    let is_of_client = |asked: &Asked| asked.json()["stream"] == true;
    assert!(seen.iter().all(is_of_client), "no model is asked for it");
}

#[tokio::test]
async fn request_can_wait_for_its_summary() {
    let dialect = Dialect::Chat;
    let upstream = Upstream::start(move |_, asked| {
        let asks = asked.json()["stream"] != true;
        let said = if asks {
            "<summary>SUMMARY BY MODEL: all files were read</summary>"
        } else {
            "a fine answer"
        };
        let whole = answer(dialect, said, asked.body.len() as u64 / 4);
        if asks {
            Reply::json(200, whole)
        } else {
            Reply::stream(streamed(dialect, &whole))
        }
    })
    .await;
    let mut settings = windowed(config(&upstream.url()), 40_000);
    settings.compaction = trimtab_proxy::SummaryMode::Wait;
    settings.preset = "checkpoint".to_owned();
    let (_running, base) = proxy(settings).await;
    let mut talk = Talk::new(dialect, "read all files");
    talk.stream = true;
    for round in 0..60 {
        talk.round(&format!("c{round}"), &lines(100));
        let before = upstream.seen().len();
        let got = post(&base, path(dialect), &[], talk.body()).await;
        assert_eq!(said(dialect, &got.text()), "a fine answer");
        let seen = upstream.seen();
        // The request that asked for it is the one that has it.
        if seen.len() > before + 1 {
            assert!(seen.last().unwrap().text().contains("SUMMARY BY MODEL"));
            return;
        }
    }
    panic!("no summary was asked for");
}

#[tokio::test]
async fn legacy_function_call_does_not_stop_management() {
    let upstream = echo(Dialect::Chat).await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), 8_000)).await;
    let mut talk = Talk::new(Dialect::Chat, "read all files");
    talk.entries.extend([
        json!({"role": "assistant", "content": null,
            "function_call": {"name": "old", "arguments": "{\"a\": 1}"}}),
        json!({"role": "function", "name": "old", "content": "done"}),
    ]);
    for round in 0..16 {
        talk.round(&format!("c{round}"), &lines(150));
        // The first request may already exceed the window.
        if round < 8 {
            continue;
        }
        let got = post(&base, path(Dialect::Chat), &[], talk.body()).await;
        assert_ne!(got.header("x-trimtab-action"), "passed", "round {round}");
        let sent = upstream.seen().last().unwrap().clone();
        assert!(sent.body.len() < 8_000 * 5, "round {round}");
        let scan = trimtab_wire::scan::BodyScan::new(&sent.body, Dialect::Chat).unwrap();
        assert!(trimtab_wire::validate::validate(&scan).is_empty());
        // The pair stays in its form, or goes as a whole.
        let text = sent.text();
        let calls = text.matches("\"function_call\"");
        let outputs = text.matches("\"role\":\"function\"");
        assert_eq!(calls.count(), outputs.count(), "round {round}");
    }
}

#[tokio::test]
async fn calls_without_usable_ids_do_not_stop_management() {
    let upstream = echo(Dialect::Chat).await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), 8_000)).await;
    for (name, id) in [
        ("none", None),
        ("null", Some(json!(null))),
        ("number", Some(json!(7))),
    ] {
        let mut talk = Talk::new(Dialect::Chat, &format!("read all files of {name}"));
        for round in 0..16 {
            talk.round("c", &lines(150));
            for entry in talk.entries.iter_mut().rev().take(2) {
                let call = entry.pointer_mut("/tool_calls/0");
                set_or_remove(call.and_then(Value::as_object_mut), "id", id.as_ref());
                if entry["role"] == "tool" {
                    set_or_remove(entry.as_object_mut(), "tool_call_id", id.as_ref());
                }
            }
            if round < 8 {
                continue;
            }
            let got = post(&base, path(Dialect::Chat), &[], talk.body()).await;
            assert_ne!(got.header("x-trimtab-action"), "passed", "{name} {round}");
            let sent = upstream.seen().last().unwrap().clone();
            assert!(sent.body.len() < 8_000 * 5, "{name} {round}");
            let scan = trimtab_wire::scan::BodyScan::new(&sent.body, Dialect::Chat).unwrap();
            let faults = trimtab_wire::validate::validate(&scan);
            assert!(faults.is_empty(), "{name} {round}: {faults:?}");
        }
    }
}

fn set_or_remove(
    object: Option<&mut serde_json::Map<String, Value>>,
    field: &str,
    value: Option<&Value>,
) {
    let Some(object) = object else { return };
    match value {
        Some(value) => object.insert(field.to_owned(), value.clone()),
        None => object.remove(field),
    };
}
