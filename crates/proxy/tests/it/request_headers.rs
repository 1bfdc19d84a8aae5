//! Our own request headers: a wrong value is an error of its sender.

use serde_json::Value;
use trimtab_model::Dialect;

use crate::fake::{Reply, Upstream, get, post};
use crate::talk::path;
use crate::{config, proxy};

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"q"}]}"#;

/// A header, a wrong value, and a value that the error must name as allowed.
const WRONG: [(&str, &str, &str); 5] = [
    ("x-trimtab-preset", "tidy", "steady"),
    ("x-trimtab-preset", "Steady", "steady"),
    ("x-trimtab-mode", "of", "on, observe, bypass"),
    ("x-trimtab-mode", "caf\u{e9}", "on, observe, bypass"),
    ("x-trimtab-bypass", "1", "true, false"),
];

#[tokio::test]
async fn wrong_value_of_a_header_is_refused_in_the_form_of_the_dialect() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    for dialect in [Dialect::Chat, Dialect::Responses, Dialect::Messages] {
        for (header, value, allowed) in WRONG {
            let got = post(&base, path(dialect), &[(header, value)], BODY).await;
            assert_eq!(got.status, 400, "{dialect} {header}: {value}");
            assert_eq!(got.header("x-trimtab-action"), "refused");
            assert_eq!(got.header("x-trimtab-reason"), "header");
            let answer: Value = serde_json::from_str(&got.text()).unwrap();
            let error = &answer["error"];
            assert_eq!(error["type"], "invalid_request_error", "{answer}");
            assert_eq!(answer["type"] == "error", dialect == Dialect::Messages);
            let message = error["message"].as_str().unwrap();
            for named in [header, value, allowed] {
                assert!(message.contains(named), "{message}");
            }
        }
    }
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn known_values_and_blank_headers_are_accepted() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    for (header, value) in [
        ("x-trimtab-mode", "Observe"),
        ("x-trimtab-mode", " on "),
        ("x-trimtab-mode", ""),
        ("x-trimtab-bypass", "TRUE"),
        ("x-trimtab-bypass", "false"),
        ("x-trimtab-preset", "refs"),
        ("x-trimtab-preset", ""),
        ("x-trimtab-unknown", "anything"),
    ] {
        let got = post(&base, path(Dialect::Chat), &[(header, value)], BODY).await;
        assert_eq!(got.status, 200, "{header}: {value:?}: {}", got.text());
    }
}

#[tokio::test]
async fn wrong_value_is_refused_on_every_path() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let got = get(&base, "/v1/models", &[("x-trimtab-mode", "of")]).await;
    assert_eq!(got.status, 400, "{}", got.text());
    assert!(upstream.seen().is_empty());
}
