//! However hidden rounds end, the client gets an answer or an error.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, Proxy};
use trimtab_store::MemoryStore;
use trimtab_testkit::script::ScriptedReply as Says;
use trimtab_testkit::upstream::{Count, ReplySource, Upstream as Strict, UpstreamOptions};
use trimtab_wire::sse::{StreamEvent, StreamWatcher};

use crate::fake::{Asked, Got, Reply, Upstream, post};
use crate::fits::HEADERS;
use crate::retrieval::shown_ref;
use crate::talk::{Talk, answer, calling, lines, may_call, path, said, streamed, with_text};
use crate::{config, proxy};

fn reply(dialect: Dialect, asked: &Asked, whole: &str) -> Reply {
    if asked.json()["stream"] == true {
        Reply::stream(streamed(dialect, whole))
    } else {
        Reply::json(200, whole)
    }
}

/// The call of a model that looks something up, as often as it is asked.
fn looks_up(dialect: Dialect, number: usize, asked: &Asked) -> String {
    let arguments = json!({"ref_id": shown_ref(&asked.text()), "offset": number, "limit": 1});
    calling(
        dialect,
        &format!("h{number}"),
        "tool_output_cache",
        &arguments,
    )
}

/// An error event in a stream.
fn error_of(dialect: Dialect, got: &Got) -> Option<String> {
    let mut message = None;
    let mut watcher = StreamWatcher::new(dialect);
    watcher.push(&got.body, |event| {
        if let StreamEvent::Error(error) = event {
            message = Some(error.message.clone());
        }
    });
    message
}

async fn ask(upstream: &Upstream, dialect: Dialect, stream: bool) -> Got {
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(dialect, "what is in line 4321?");
    talk.stream = stream;
    talk.round("c1", &lines(9_000));
    post(&base, path(dialect), &[], talk.body()).await
}

#[tokio::test]
async fn rejected_hidden_round_still_gives_an_answer() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let upstream = Upstream::start(move |number, asked| {
                if !may_call(&asked.json()) {
                    return reply(dialect, asked, &answer(dialect, "without", 60));
                }
                if asked.text().contains("\"h0\"") {
                    return Reply::json(400, r#"{"error":{"message":"no"}}"#);
                }
                reply(dialect, asked, &looks_up(dialect, number, asked))
            })
            .await;
            let got = ask(&upstream, dialect, stream).await;
            assert_eq!(got.status, 200);
            assert_eq!(said(dialect, &got.text()), "without", "{dialect} {stream}");
            let last = upstream.seen().last().unwrap().clone();
            let scan = trimtab_wire::scan::BodyScan::new(&last.body, dialect).unwrap();
            assert_eq!(trimtab_wire::validate::validate(&scan), []);
            // The tools stay: what a provider has cached begins with them.
            assert_eq!(last.json()["tools"].as_array().unwrap().len(), 3);
        }
    }
}

#[tokio::test]
async fn error_in_a_hidden_round_reaches_the_client() {
    for dialect in Dialect::ALL {
        for (stream, status) in [(false, 429), (true, 429), (false, 503), (true, 503)] {
            let upstream = Upstream::start(move |number, asked| {
                if asked.text().contains("\"h0\"") {
                    let error = json!({"type": "error", "error": {"message": "come back later",
                        "type": "busy"}});
                    return Reply::json(status, error.to_string());
                }
                reply(dialect, asked, &looks_up(dialect, number, asked))
            })
            .await;
            let got = ask(&upstream, dialect, stream).await;
            if stream {
                assert_eq!(got.status, 200);
                let error = error_of(dialect, &got);
                assert_eq!(error.as_deref(), Some("come back later"), "{}", got.text());
            } else {
                assert_eq!(got.status, status);
                assert!(got.text().contains("come back later"));
            }
            assert_eq!(upstream.seen().len(), 2, "{dialect} {stream}");
        }
    }
}

#[tokio::test]
async fn a_model_that_never_stops_asking_is_an_error() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let upstream = Upstream::start(move |number, asked| {
                reply(dialect, asked, &looks_up(dialect, number, asked))
            })
            .await;
            let got = ask(&upstream, dialect, stream).await;
            if stream {
                let error = error_of(dialect, &got).unwrap();
                assert!(error.contains("again and again"), "{dialect}: {error}");
            } else {
                assert_eq!(got.status, 502);
                assert!(got.text().contains("again and again"));
            }
            // Eight rounds, and one in which nothing may be called.
            assert_eq!(upstream.seen().len(), 10, "{dialect} {stream}");
            assert!(!may_call(&upstream.seen().last().unwrap().json()));
        }
    }
}

#[tokio::test]
async fn text_beside_retrieval_calls_becomes_a_complete_answer() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let upstream = Upstream::start(move |number, asked| {
                let whole = looks_up(dialect, number, asked);
                let text = if number == 0 { "Let me see." } else { " " };
                reply(dialect, asked, &with_text(dialect, &whole, text))
            })
            .await;
            let got = ask(&upstream, dialect, stream).await;
            let text = got.text();
            assert_eq!(got.status, 200);
            assert_eq!(
                said(dialect, &text).trim(),
                "Let me see.",
                "{dialect}: {text}"
            );
            // Nobody waits for a call that is not there.
            assert!(!text.contains("\"tool_use\""), "{text}");
            assert!(!text.contains("\"tool_calls\""), "{text}");
        }
    }
}

/// A strict model with a small window that looks something up whenever it can.
async fn curious(window: u64) -> Strict {
    let source = ReplySource::with(|received| {
        let offered = received
            .tools
            .iter()
            .any(|tool| tool == "tool_output_cache_grep");
        let messages = received.read_messages();
        let newest = messages.iter().rev().take(2);
        let mut calls = newest.flat_map(trimtab_model::Message::calls);
        let has_looked = calls.any(|call| call.name == "tool_output_cache_grep");
        if received.last.contains("<summary>") {
            Says::text("<summary>\nfiles were read\n</summary>")
        } else if offered && !has_looked {
            Says::call("tool_output_cache_grep", json!({"pattern": "value is 9"}))
        } else {
            Says::text("read")
        }
    });
    let options = UpstreamOptions {
        window: Some(window),
        count: Count::Estimate,
        ..UpstreamOptions::new(source)
    };
    Strict::start(options).await.unwrap()
}

#[tokio::test]
async fn tiny_windows_give_an_answer_or_an_error() {
    for dialect in Dialect::ALL {
        for window in [1_200, 1_800, 2_500, 3_500, 5_000] {
            let upstream = curious(window).await;
            let mut config = config(&upstream.url());
            config.models.push(ModelRule {
                model: "*".to_owned(),
                window: Some(window),
                max_output: None,
                preset: None,
                mode: None,
            });
            let (_running, base) = proxy(config).await;
            let mut talk = Talk::new(dialect, "read all files");
            talk.max_tokens = 300;
            for round in 0..8 {
                talk.stream = round % 2 == 1;
                talk.round(&format!("c{round}"), &lines(30 + 50 * round));
                let direct = post(&upstream.url(), path(dialect), &HEADERS, talk.body()).await;
                let got = post(&base, path(dialect), &HEADERS, talk.body()).await;
                let (text, name) = (got.text(), format!("{dialect} {window} {round}"));
                let is_error = got.status != 200 || error_of(dialect, &got).is_some();
                if is_error {
                    assert_ne!(direct.status, 200, "{name}: {text}");
                } else {
                    assert_eq!(said(dialect, &text), "read", "{name}: {text}");
                }
            }
            assert_eq!(
                upstream.violations(),
                Vec::<String>::new(),
                "{dialect} {window}"
            );
        }
    }
}

#[tokio::test]
async fn client_disconnect_at_stream_end_loses_nothing() {
    for dialect in Dialect::ALL {
        // The upstream does not close its stream for a while.
        let stream = streamed(dialect, &answer(dialect, "done", 9));
        let end = match dialect {
            Dialect::Chat => "data: [DONE]",
            Dialect::Messages => "\"message_stop\"}",
            Dialect::Responses => "\"response.completed\"",
        };
        let upstream = Upstream::start(move |_, _| {
            let mut reply = Reply::stream(stream.clone());
            reply
                .pieces
                .push((60_000, Bytes::from_static(b": late\n\n")));
            reply
        })
        .await;
        let (ended, mut records) = tokio::sync::mpsc::unbounded_channel();
        let running = Proxy::new(config(&upstream.url()), Arc::new(MemoryStore::new()))
            .log(move |record| ended.send(record.cut).unwrap_or(()))
            .run()
            .await
            .unwrap();
        let mut talk = Talk::new(dialect, "q");
        talk.stream = true;
        talk.round("c1", &lines(30));
        let body = talk.body();
        let mut client = tokio::net::TcpStream::connect(running.address())
            .await
            .unwrap();
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer k\r\ncontent-length: {}\r\n\r\n",
            path(dialect),
            running.address(),
            body.len()
        );
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(body.as_bytes()).await.unwrap();
        let mut read = String::new();
        while !read.contains(end) {
            let mut piece = [0; 4096];
            let count = client.read(&mut piece).await.unwrap();
            read.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        drop(client);
        assert_eq!(records.recv().await, Some(false), "{dialect}");
    }
}
