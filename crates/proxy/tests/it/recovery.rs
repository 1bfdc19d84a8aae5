//! Recovery from every form of overflow, in every dialect.

use serde_json::json;
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;

use crate::fake::{Reply, Upstream, post};
use crate::talk::{Talk, answer, lines, path, said, streamed, without_our_tools};
use crate::{config, proxy};

/// How an upstream says that a request is too large.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Status,
    FirstEvent,
    FailedAfterOk,
}

const FORMS: [Form; 3] = [Form::Status, Form::FirstEvent, Form::FailedAfterOk];

fn refusal(dialect: Dialect, form: Form, actual: usize, limit: usize) -> Reply {
    let text = format!("prompt is too long: {actual} tokens > {limit} maximum");
    let other = format!(
        "This model's maximum context length is {limit} tokens. However, your messages \
         resulted in {actual} tokens. Please reduce the length of the messages."
    );
    let error = match dialect {
        Dialect::Messages => json!({"type": "invalid_request_error", "message": text}),
        _ => json!({"code": "context_length_exceeded", "message": other,
            "type": "invalid_request_error"}),
    };
    match (form, dialect) {
        (Form::Status, _) => Reply::json(400, json!({"type": "error", "error": error}).to_string()),
        (Form::FirstEvent, Dialect::Messages) => Reply::stream(format!(
            "event: error\ndata: {}\n\n",
            json!({"type": "error", "error": error})
        )),
        (Form::FirstEvent, Dialect::Chat) => {
            Reply::stream(format!("data: {}\n\n", json!({"error": error})))
        }
        (Form::FirstEvent, Dialect::Responses) => Reply::stream(format!(
            "event: error\ndata: {}\n\n",
            json!({"type": "error", "code": error["code"], "message": error["message"]})
        )),
        (Form::FailedAfterOk, Dialect::Responses) => Reply::stream(format!(
            "event: response.created\ndata: {}\n\nevent: response.failed\ndata: {}\n\n",
            json!({"type": "response.created", "response": {"id": "r"}}),
            json!({"type": "response.failed", "response": {"status": "failed", "error": error}})
        )),
        (Form::FailedAfterOk, _) => Reply::json(200, json!({"error": error}).to_string()),
    }
}

/// An upstream with a window of so many bytes, four to the token.
async fn strict(dialect: Dialect, form: Form, limit: usize) -> Upstream {
    Upstream::start(move |_, asked| {
        let size = asked.body.len() / 4;
        if size > limit {
            return refusal(dialect, form, size, limit);
        }
        let whole = answer(dialect, "recovered", size as u64);
        if asked.json()["stream"] == true {
            Reply::stream(streamed(dialect, &whole))
        } else {
            Reply::json(200, whole)
        }
    })
    .await
}

fn long_talk(dialect: Dialect) -> Talk {
    let mut talk = Talk::new(dialect, "read all files");
    for round in 0..20 {
        talk.round(&format!("c{round}"), &lines(300));
    }
    talk
}

#[tokio::test]
async fn overflow_is_recovered() {
    for dialect in Dialect::ALL {
        for form in FORMS {
            // The window is not known beforehand: the error teaches it.
            let upstream = strict(dialect, form, 30_000).await;
            let (running, base) = proxy(config(&upstream.url())).await;
            let mut talk = long_talk(dialect);
            talk.stream = form != Form::Status;
            let got = post(&base, path(dialect), &[], talk.body()).await;
            assert_eq!(got.status, 200, "{dialect} {form:?}: {}", got.text());
            assert_eq!(
                said(dialect, &got.text()),
                "recovered",
                "{dialect} {form:?}"
            );
            let seen = upstream.seen();
            assert!(
                (2..=3).contains(&seen.len()),
                "{dialect} {form:?}: {}",
                seen.len()
            );
            for pair in seen.windows(2) {
                assert!(pair[1].body.len() < pair[0].body.len());
            }
            for asked in &seen {
                let scan = trimtab_wire::scan::BodyScan::new(&asked.body, dialect).unwrap();
                assert!(trimtab_wire::validate::validate(&scan).is_empty());
            }
            assert_eq!(running.report().recovered, 1);
            // The next request fits at once.
            talk.says("recovered").user("thanks");
            let got = post(&base, path(dialect), &[], talk.body()).await;
            assert_eq!(got.header("x-trimtab-recoveries"), "");
            assert_eq!(upstream.seen().len(), seen.len() + 1);
        }
    }
}

/// A talk whose newest output is larger than the window of the upstream. If `with_image` is set, an
/// image follows its text.
fn talk_with_large_output(dialect: Dialect, with_image: bool) -> Talk {
    let mut talk = Talk::new(dialect, "read the file");
    talk.round("c1", &lines(6_000));
    if !with_image {
        return talk;
    }
    let url = "data:image/png;base64,iVBORw0KGgo=";
    let last = talk.entries.last_mut().unwrap();
    let (place, text, image) = match dialect {
        Dialect::Chat => (
            "/content",
            "text",
            json!({"type": "image_url", "image_url": {"url": url}}),
        ),
        Dialect::Responses => (
            "/output",
            "input_text",
            json!({"type": "input_image", "image_url": url}),
        ),
        Dialect::Messages => (
            "/content/0/content",
            "text",
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png",
                "data": "iVBORw0KGgo="}}),
        ),
    };
    let output = last.pointer_mut(place).unwrap();
    *output = json!([{"type": text, "text": output.clone()}, image]);
    talk
}

#[tokio::test]
async fn new_output_larger_than_an_unknown_window_is_shortened() {
    for dialect in Dialect::ALL {
        for preset in PRESETS.iter().filter(|preset| preset.name != "none") {
            for with_image in [false, true] {
                let case = format!("{dialect} {} image {with_image}", preset.name);
                let upstream = strict(dialect, Form::Status, 20_000).await;
                let (_running, base) = proxy(config(&upstream.url())).await;
                let talk = talk_with_large_output(dialect, with_image);
                let headers = [("x-trimtab-preset", preset.name)];
                let got = post(&base, path(dialect), &headers, talk.body()).await;
                assert_eq!(got.status, 200, "{case}: {}", got.text());
                let sent = upstream.seen().pop().unwrap();
                let scan = trimtab_wire::scan::BodyScan::new(&sent.body, dialect).unwrap();
                assert!(trimtab_wire::validate::validate(&scan).is_empty(), "{case}");
                assert_eq!(sent.text().contains("iVBORw0KGgo="), with_image, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn copies_of_a_rejected_request_are_made_smaller_once() {
    for dialect in Dialect::ALL {
        // All copies arrive before the first answer.
        let upstream = Upstream::start(move |_, asked| {
            let size = asked.body.len() / 4;
            let mut reply = if size > 30_000 {
                refusal(dialect, Form::Status, size, 30_000)
            } else {
                Reply::json(200, answer(dialect, "recovered", size as u64))
            };
            reply.pieces[0].0 = 500;
            reply
        })
        .await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        let talk = long_talk(dialect);
        let copy = || post(&base, path(dialect), &[], talk.body());
        let (one, two, three) = tokio::join!(copy(), copy(), copy());
        for got in [one, two, three] {
            assert_eq!(got.status, 200, "{dialect}: {}", got.text());
        }
        let sizes = upstream.seen();
        let accepted = sizes.iter().map(|asked| asked.body.len());
        let accepted: Vec<usize> = accepted.filter(|size| size / 4 <= 30_000).collect();
        assert_eq!(accepted.len(), 3, "{dialect}");
        assert!(
            accepted.iter().all(|size| *size == accepted[0]),
            "{dialect}: {accepted:?}"
        );
    }
}

/// The errors of some providers say nothing about sizes.
#[tokio::test]
async fn overflow_without_figures_is_recovered_if_half_of_the_prompt_is_too_much() {
    let dialect = Dialect::Responses;
    let upstream = Upstream::start(move |_, asked| {
        if asked.body.len() / 4 > 20_000 {
            let error = json!({"code": "context_length_exceeded",
                "message": "Your input exceeds the context window of this model."});
            return Reply::json(400, json!({"error": error}).to_string());
        }
        Reply::json(200, answer(dialect, "recovered", 0))
    })
    .await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let talk = talk_with_large_output(dialect, true);
    let headers = [("x-trimtab-preset", "turns")];
    let got = post(&base, path(dialect), &headers, talk.body()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(got.header("x-trimtab-recoveries"), "2");
}

#[tokio::test]
async fn failed_recovery_passes_on_the_error_of_the_provider() {
    for dialect in Dialect::ALL {
        for form in FORMS {
            let upstream =
                Upstream::start(move |number, _| refusal(dialect, form, 900_000 + number, 10))
                    .await;
            let (_running, base) = proxy(config(&upstream.url())).await;
            let mut talk = long_talk(dialect);
            talk.stream = true;
            let got = post(&base, path(dialect), &[], talk.body()).await;
            let expected = refusal(dialect, form, 900_000, 10);
            assert_eq!(got.status.as_u16(), expected.status);
            assert_eq!(got.body, expected.pieces[0].1, "{dialect} {form:?}");
            assert!(upstream.seen().len() <= 3, "{dialect} {form:?}");
        }
    }
}

#[tokio::test]
async fn output_limit_is_lowered_before_messages_are_removed() {
    for dialect in [Dialect::Chat, Dialect::Messages] {
        let upstream = Upstream::start(move |_, asked| {
            let body = asked.json();
            let limit = if dialect == Dialect::Chat {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            let asked_for = body[limit].as_u64().unwrap();
            let prompt = asked.body.len() as u64 / 4;
            if prompt + asked_for > 60_000 {
                let text = format!(
                    "This model's maximum context length is 60000 tokens. However, you requested \
                     {} tokens ({prompt} in the messages, {asked_for} in the completion). Please \
                     reduce the length of the messages or completion.",
                    prompt + asked_for
                );
                return Reply::json(
                    400,
                    json!({"error": {"message": text, "type": "invalid_request_error"}})
                        .to_string(),
                );
            }
            Reply::json(200, answer(dialect, "short", prompt))
        })
        .await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        let mut talk = Talk::new(dialect, "read all files");
        for round in 0..10 {
            talk.round(&format!("c{round}"), &lines(200));
        }
        talk.max_tokens = 50_000;
        let got = post(&base, path(dialect), &[], talk.body()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let seen = upstream.seen();
        let list = |at: usize| seen[at].json()["messages"].clone();
        assert_eq!(list(0), list(1), "{dialect}: no message was lost");
        assert_eq!(seen.len(), 2);
    }
}

#[tokio::test]
async fn rate_limit_is_not_an_overflow() {
    let upstream = Upstream::start(|_, _| {
        let mut reply = Reply::json(429, r#"{"error":{"message":"Rate limit reached for tokens per min. Please try again in 1s."}}"#);
        reply.headers.push(("retry-after", "1".to_owned()));
        reply
    })
    .await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let got = post(
        &base,
        "/v1/chat/completions",
        &[],
        long_talk(Dialect::Chat).body(),
    )
    .await;
    assert_eq!((got.status.as_u16(), got.header("retry-after")), (429, "1"));
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn client_compaction_passes_unchanged_unless_it_overflows() {
    let dialect = Dialect::Messages;
    let ask = "CRITICAL: Respond with TEXT ONLY. Write an <analysis> and then a <summary>";
    for (limit, edited) in [(1_000_000, false), (30_000, true)] {
        let upstream = strict(dialect, Form::Status, limit).await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        let mut talk = Talk::new(dialect, "read all files");
        for round in 0..4 {
            talk.round(&format!("c{round}"), &lines(5_000));
        }
        talk.says("read").user(ask);
        let got = post(&base, "/v1/messages", &[], talk.body()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let seen = upstream.seen();
        assert_eq!(without_our_tools(dialect, &seen[0].text()), talk.body());
        assert_eq!(seen.len() > 1, edited);
        if !edited {
            assert_eq!(got.header("x-trimtab-reason"), "own-compaction");
        }
    }
}

/// A server that reads at most so many tokens of a prompt, and does not say so.
async fn cutting(dialect: Dialect, window: u64) -> Upstream {
    Upstream::start(move |_, asked| {
        let read = (asked.body.len() as u64 / 4).min(window);
        let whole = answer(dialect, "read", read);
        if asked.json()["stream"] == true {
            Reply::stream(streamed(dialect, &whole))
        } else {
            Reply::json(200, whole)
        }
    })
    .await
}

/// The last of many windows of a conversation with a server that cuts at `window`.
async fn last_window(dialect: Dialect, stream: bool, window: u64) -> crate::fake::Asked {
    let upstream = cutting(dialect, window).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(dialect, "read all files");
    talk.stream = stream;
    for round in 0..20 {
        talk.round(&format!("c{round}"), &lines(120));
        let got = post(&base, path(dialect), &[], talk.body()).await;
        assert_eq!(said(dialect, &got.text()), "read");
    }
    let last = upstream.seen().last().unwrap().clone();
    let scan = trimtab_wire::scan::BodyScan::new(&last.body, dialect).unwrap();
    assert!(trimtab_wire::validate::validate(&scan).is_empty());
    last
}

#[tokio::test]
async fn silently_truncating_server_gets_no_more_than_it_reads() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let last = last_window(dialect, stream, 8_000).await;
            let tokens = last.body.len() / 4;
            assert!(tokens <= 8_000, "{dialect} {stream}: {tokens}");
            assert!(tokens >= 2_000, "{dialect} {stream}: {tokens}");
        }
        // One that reads everything is sent everything.
        let last = last_window(dialect, true, u64::MAX).await;
        assert!(
            last.body.len() / 4 > 16_000,
            "{dialect}: {}",
            last.body.len() / 4
        );
    }
}

fn presets() -> impl Iterator<Item = &'static str> {
    let names = PRESETS.iter().map(|preset| preset.name);
    names.filter(|name| *name != "none")
}

#[tokio::test]
async fn payload_too_large_is_retried_smaller_under_every_preset() {
    let explained = r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#;
    for preset in presets() {
        for text in [explained, ""] {
            let upstream = Upstream::start(move |_, asked| {
                if asked.body.len() > 160_000 {
                    return Reply::json(413, text);
                }
                Reply::json(200, answer(Dialect::Messages, "read", 9))
            })
            .await;
            let mut config = config(&upstream.url());
            preset.clone_into(&mut config.preset);
            let (running, base) = proxy(config).await;
            let body = long_talk(Dialect::Messages).body();
            assert!(body.len() > 160_000, "{}", body.len());
            let got = post(&base, "/v1/messages", &[], body).await;
            assert_eq!(got.status, 200, "{preset} {text:?}: {}", got.text());
            assert_eq!(running.report().recovered, 1, "{preset} {text:?}");
        }
    }
}

/// An upstream that counts a token for seven bytes, reports it, and refuses too many without
/// saying how many they are.
async fn without_figures(dialect: Dialect, limit: usize) -> Upstream {
    Upstream::start(move |_, asked| {
        let size = asked.body.len() / 7;
        if size <= limit {
            return Reply::json(200, answer(dialect, "read", size as u64));
        }
        let text = match dialect {
            Dialect::Messages => "prompt is too long",
            _ => "Your input exceeds the context window of this model. Please adjust your input and try again.",
        };
        let error = json!({"type": "invalid_request_error", "code": "context_length_exceeded",
            "message": text});
        Reply::json(400, json!({"type": "error", "error": error}).to_string())
    })
    .await
}

#[tokio::test]
async fn overflow_without_figures_is_retried_with_refs_and_tools() {
    for dialect in Dialect::ALL {
        for preset in presets() {
            let upstream = without_figures(dialect, 20_000).await;
            let mut config = config(&upstream.url());
            preset.clone_into(&mut config.preset);
            let (running, base) = proxy(config).await;
            let mut talk = Talk::new(dialect, "read all files");
            post(&base, path(dialect), &[], talk.body()).await;
            for round in 0..30 {
                talk.round(&format!("c{round}"), &lines(140 + 40 * (round % 7)));
                let got = post(&base, path(dialect), &[], talk.body()).await;
                let context = format!("{dialect} {preset} {round}");
                assert_eq!(got.status, 200, "{context}: {}", got.text());
            }
            // Some presets compact early enough here; ours and `refs` do not.
            let seen = upstream.seen();
            let overflows = seen.iter().any(|asked| asked.body.len() / 7 > 20_000);
            assert!(overflows || !matches!(preset, "steady" | "refs"));
            assert_eq!(
                running.report().recovered > 0,
                overflows,
                "{dialect} {preset}"
            );
            for asked in upstream.seen() {
                let mut body = asked.json();
                let is_summary = body.get("tool_choice").is_some() || body.get("tools").is_none();
                if !is_summary {
                    let tools = body["tools"].take().to_string();
                    assert!(
                        tools.contains("tool_output_cache"),
                        "{dialect} {preset}: {body}"
                    );
                }
            }
        }
    }
}

/// The action on a conversation that ends with `asked`, for a model whose window is known.
async fn action_on(rounds: usize, asked: &str) -> (String, String) {
    let dialect = Dialect::Messages;
    let upstream = strict(dialect, Form::Status, 40_000).await;
    let mut config = config(&upstream.url());
    config.models.push(trimtab_proxy::ModelRule {
        model: "*".to_owned(),
        window: Some(40_000),
        max_output: None,
        preset: None,
        mode: None,
    });
    let (_running, base) = proxy(config).await;
    let mut talk = Talk::new(dialect, "read all files");
    for round in 0..rounds {
        talk.round(&format!("c{round}"), &lines(1_000));
    }
    talk.says("read").user(asked);
    let got = post(&base, "/v1/messages", &[], talk.body()).await;
    assert_eq!(got.status, 200, "{asked}: {}", got.text());
    assert_eq!(upstream.seen().len(), 1, "{asked}: nothing was refused");
    let header = |name| got.header(name).to_owned();
    (header("x-trimtab-action"), header("x-trimtab-reason"))
}

#[tokio::test]
async fn only_a_compaction_request_that_fits_passes_unmanaged() {
    let instruction = "CRITICAL: Respond with TEXT ONLY. Write an <analysis> and then a <summary>";
    let passed = ("passed".to_owned(), "own-compaction".to_owned());
    assert_eq!(action_on(2, instruction).await, passed);
    let edited = ("edited".to_owned(), String::new());
    assert_eq!(action_on(12, instruction).await, edited);
    let quote = format!("What is wrong with this prompt? {instruction}");
    assert_eq!(action_on(12, &quote).await, edited);
    assert_ne!(action_on(2, &quote).await, passed);
}

/// The client asks for an answer that is longer than the window, and its system prompt fills
/// most of that.
#[tokio::test]
async fn newest_output_is_shown_after_a_recovery_that_leaves_little_room() {
    let dialect = Dialect::Messages;
    let upstream = strict(dialect, Form::Status, 16_000).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(dialect, "look at the logs");
    for round in 0..14 {
        let output = format!("part {round}\n{}", lines(80));
        talk.round(&format!("c{round}"), &output);
        let mut body: serde_json::Value = serde_json::from_str(&talk.body()).unwrap();
        body["max_tokens"] = json!(32_000);
        body["system"] = json!("be good. ".repeat(5_000));
        let got = post(&base, path(dialect), &[], body.to_string()).await;
        assert_eq!(got.status, 200, "{round}: {}", got.text());
        let sent = upstream.seen().last().unwrap().json();
        let newest = sent["messages"].as_array().unwrap().last().unwrap();
        let shown = newest["content"][0]["content"].to_string();
        assert!(shown.len() > 200, "{round}: {newest}");
    }
}
