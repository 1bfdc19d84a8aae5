//! What is learned about the window of a model, from whom, and for whom.

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_proxy::ModelRule;

use crate::fake::{Reply, Upstream, post};
use crate::talk::{Talk, answer, lines, path};
use crate::{config, proxy};

fn long_talk(dialect: Dialect) -> Talk {
    let mut talk = Talk::new(dialect, "read all files");
    for round in 0..20 {
        talk.round(&format!("c{round}"), &lines(300));
    }
    talk
}

fn error(message: &str) -> Reply {
    Reply::json(
        400,
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
            .to_string(),
    )
}

fn authorization(key: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {key}"))
}

/// Posts the talk with this key, and returns the length of the body that the upstream got last.
async fn sent_length(upstream: &Upstream, base: &str, key: &str, talk: &Talk) -> usize {
    let (name, value) = authorization(key);
    let got = post(base, path(talk.dialect), &[(name, &value)], talk.body()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    upstream.seen().last().unwrap().body.len()
}

#[tokio::test]
async fn a_tenant_changes_no_window_of_another() {
    for dialect in Dialect::ALL {
        let upstream = Upstream::start(move |_, asked| {
            let size = asked.body.len() / 4;
            let key = asked.headers.get("authorization");
            if key.is_some_and(|key| key == "Bearer small") && size > 6_000 {
                return error(&format!("prompt is too long: {size} tokens > 6000 maximum"));
            }
            Reply::json(200, answer(dialect, "read", size as u64))
        })
        .await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        let talk = long_talk(dialect);
        let before = sent_length(&upstream, &base, "before", &talk).await;
        let small = sent_length(&upstream, &base, "small", &talk).await;
        assert!(small / 4 <= 6_000, "{dialect}: {small}");
        let after = sent_length(&upstream, &base, "after", &talk).await;
        assert_eq!(before, after, "{dialect}");
    }
}

#[tokio::test]
async fn a_window_of_the_settings_wins_over_a_learned_one() {
    let mut sent = Vec::new();
    for refused in [1, 0] {
        let upstream = Upstream::start(move |number, asked| {
            if number < refused {
                return error("prompt is too long: 21000 tokens > 3000 maximum");
            }
            let read = asked.body.len() as u64 / 4;
            Reply::json(200, answer(Dialect::Messages, "read", read))
        })
        .await;
        let mut config = config(&upstream.url());
        config.models = vec![ModelRule {
            window: Some(30_000),
            ..ModelRule::for_all()
        }];
        let (running, base) = proxy(config).await;
        let talk = long_talk(Dialect::Messages);
        let mut first = Talk::new(Dialect::Messages, "another conversation");
        first.entries.extend_from_slice(&talk.entries[1..]);
        sent_length(&upstream, &base, "k", &first).await;
        assert_eq!(running.report().recovered, refused as u64);
        sent.push(sent_length(&upstream, &base, "k", &talk).await);
    }
    assert_eq!(sent[0], sent[1]);
}

/// A round whose output has images behind a URL, whose size nobody knows.
fn round_with_images(talk: &mut Talk, id: &str) {
    let image = match talk.dialect {
        Dialect::Chat => json!({"type": "image_url",
            "image_url": {"url": "https://images.example/a.png"}}),
        Dialect::Messages => json!({"type": "image",
            "source": {"type": "url", "url": "https://images.example/a.png"}}),
        Dialect::Responses => json!({"type": "input_image",
            "image_url": "https://images.example/a.png"}),
    };
    talk.round(id, "three images");
    let last = talk.entries.last_mut().unwrap();
    let content = match talk.dialect {
        Dialect::Messages => &mut last["content"][0]["content"],
        Dialect::Chat => &mut last["content"],
        Dialect::Responses => &mut last["output"],
    };
    *content = Value::Array(vec![image; 3]);
}

#[tokio::test]
async fn images_that_cost_less_than_assumed_shrink_no_window() {
    for dialect in Dialect::ALL {
        // Images cost next to nothing here, so the provider reads far less than we assume.
        let upstream =
            Upstream::start(move |_, _| Reply::json(200, answer(dialect, "read", 2_000))).await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        let mut talk = Talk::new(dialect, "look at the images");
        for round in 0..8 {
            round_with_images(&mut talk, &format!("c{round}"));
            sent_length(&upstream, &base, "k", &talk).await;
        }
        let talk = long_talk(dialect);
        let sent = sent_length(&upstream, &base, "k", &talk).await;
        assert!(sent >= talk.body().len(), "{dialect}: {sent}");
    }
}

#[tokio::test]
async fn one_strange_usage_shrinks_no_window() {
    let dialect = Dialect::Chat;
    // The usage of one call repeats that of the call before.
    let upstream = Upstream::start(move |number, asked| {
        let read = asked.body.len() as u64 / 4;
        let read = if number == 3 { 9_000 } else { read };
        Reply::json(200, answer(dialect, "read", read))
    })
    .await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(dialect, "read all files");
    for round in 0..12 {
        talk.round(&format!("c{round}"), &lines(400));
        let sent = sent_length(&upstream, &base, "k", &talk).await;
        assert!(sent >= talk.body().len(), "{round}: {sent}");
    }
}

/// Texts that a web page can contain, and that providers write into errors.
const QUOTED: [&str; 8] = [
    "This model's maximum context length is 3000 tokens. However, your messages resulted in 9000 \
     tokens.",
    "prompt is too long: 9000 tokens > 3000 maximum",
    "Your input exceeds the context window of this model.",
    "the context length is 3,000 tokens",
    "context_length_exceeded",
    "input is too long for requested model",
    "maximum context length is 3k tokens",
    "request (9000 tokens) exceeds the available context size (3000 tokens), try increasing it",
];

#[tokio::test]
async fn text_of_the_request_in_an_error_is_no_evidence() {
    for dialect in Dialect::ALL {
        for quoted in QUOTED {
            let upstream = Upstream::start(move |number, asked| {
                if number == 0 {
                    return error(&format!(
                        "Invalid value: '{quoted}'. Expected a JSON object."
                    ));
                }
                let read = asked.body.len() as u64 / 4;
                Reply::json(200, answer(dialect, "read", read))
            })
            .await;
            let (running, base) = proxy(config(&upstream.url())).await;
            let mut talk = long_talk(dialect);
            talk.round("page", &format!("<html>{quoted}</html>"));
            let (name, value) = authorization("k");
            let got = post(&base, path(dialect), &[(name, &value)], talk.body()).await;
            // The request was sent again as the client wrote it, or the client has the error.
            assert!(
                [200, 400].contains(&got.status.as_u16()),
                "{dialect} {quoted}"
            );
            assert_eq!(running.report().recovered, 0, "{dialect} {quoted}");
            let sent = sent_length(&upstream, &base, "k", &long_talk(dialect)).await;
            assert!(
                sent >= long_talk(dialect).body().len(),
                "{dialect} {quoted}: {sent}"
            );
        }
    }
}

#[tokio::test]
async fn an_overflow_is_recovered_although_the_conversation_is_about_overflows() {
    for dialect in Dialect::ALL {
        let upstream = Upstream::start(move |_, asked| {
            let size = asked.body.len() / 4;
            if size > 20_000 {
                return error(&format!(
                    "prompt is too long: {size} tokens > 20000 maximum"
                ));
            }
            Reply::json(200, answer(dialect, "read", size as u64))
        })
        .await;
        let (running, base) = proxy(config(&upstream.url())).await;
        let mut talk = long_talk(dialect);
        talk.round(
            "log",
            "error: prompt is too long: 210000 tokens > 200000 maximum",
        );
        let sent = sent_length(&upstream, &base, "k", &talk).await;
        assert!(sent / 4 <= 20_000, "{dialect}: {sent}");
        assert_eq!(running.report().recovered, 1, "{dialect}");
    }
}
