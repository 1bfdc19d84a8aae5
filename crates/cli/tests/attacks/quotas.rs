//! Quotas of a tenant.

use std::time::Duration;

use serde_json::{Value, json};
use trimtab_cli::proxy::http::HttpAnswer;
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::access::{OTHER_TOKEN, TOKEN, get, model, post, serve, text, value};
use crate::talk::{path, with_output};

async fn ask(url: &str, dialect: Dialect, key: &str, body: &Value) -> HttpAnswer {
    let headers = [("x-api-key", key), ("anthropic-version", "2023-06-01")];
    post(url, path(dialect), &headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limit_error_has_the_form_of_the_dialect() {
    let upstream = model().await;
    let served = serve(&upstream, "[proxy.quotas]\nrequests_per_minute = 2\n", &[]);
    for dialect in Dialect::ALL {
        let body = with_output(dialect, 3);
        let key = dialect.to_string();
        for _ in 0..2 {
            let answer = ask(&served.url, dialect, &key, &body).await;
            assert_eq!(answer.status, 200, "{}", text(&answer));
        }
        let answer = ask(&served.url, dialect, &key, &body).await;
        assert_eq!(answer.status, 429, "{dialect}");
        let wait: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(answer.header("x-trimtab-reason"), "rate");
        let said = value(&answer);
        let kind = &said["error"]["type"];
        assert_eq!(kind, "rate_limit_error", "{said}");
        if dialect == Dialect::Messages {
            assert_eq!(said["type"], "error");
        } else {
            assert_eq!(said["error"]["code"], "rate_limit_exceeded");
        }
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.contains("requests_per_minute"), "{message}");
    }
    assert_eq!(upstream.requests().len(), 6);
    // Who only asks whether we are well is not counted.
    for _ in 0..5 {
        assert_eq!(get(&served.url, "/healthz", &[]).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_exhaust_the_byte_quota() {
    let upstream = model().await;
    let served = serve(
        &upstream,
        "[proxy.quotas]\ninput_bytes_per_minute = 20000\n",
        &[],
    );
    let (large, small) = (
        with_output(Dialect::Chat, 1_000),
        with_output(Dialect::Chat, 2),
    );
    assert_eq!(
        ask(&served.url, Dialect::Chat, "a", &large).await.status,
        200
    );
    let answer = ask(&served.url, Dialect::Chat, "a", &small).await;
    assert_eq!(answer.status, 429);
    assert!(text(&answer).contains("input_bytes_per_minute"));
    assert_eq!(
        ask(&served.url, Dialect::Chat, "b", &small).await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_are_limited() {
    let slow = ScriptedReply {
        delay_ms: Some(300),
        ..ScriptedReply::text("one two three four five six seven eight")
    };
    let options = UpstreamOptions::new(ReplySource::with(move |_| slow.clone()));
    let upstream = Upstream::start(options).await.unwrap();
    let served = serve(&upstream, "[proxy.quotas]\nconcurrent_requests = 1\n", &[]);
    let mut body = with_output(Dialect::Chat, 2);
    body["stream"] = json!(true);
    let (url, first) = (served.url.clone(), body.clone());
    let open = tokio::spawn(async move { ask(&url, Dialect::Chat, "a", &first).await });
    while upstream.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let answer = ask(&served.url, Dialect::Chat, "a", &body).await;
    assert_eq!(answer.status, 429);
    assert_eq!(
        ask(&served.url, Dialect::Chat, "b", &body).await.status,
        200
    );
    assert_eq!(open.await.unwrap().status, 200);
    assert_eq!(
        ask(&served.url, Dialect::Chat, "a", &body).await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_the_store_quota_pass_through() {
    let upstream = model().await;
    let served = serve(&upstream, "[proxy.quotas]\nstore_bytes = 100000\n", &[]);
    let body = with_output(Dialect::Chat, 4_000);
    let answer = ask(&served.url, Dialect::Chat, "a", &body).await;
    assert_eq!(answer.header("x-trimtab-action"), "edited");
    // How much there is gets known within seconds.
    let mut reason = String::new();
    for _ in 0..200 {
        let answer = ask(&served.url, Dialect::Chat, "a", &body).await;
        assert_eq!(answer.status, 200);
        answer.header("x-trimtab-reason").clone_into(&mut reason);
        if reason == "quota" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(reason, "quota");
    let passed = upstream.requests().last().unwrap().clone();
    assert_eq!(passed.body, body.to_string().as_bytes());
    let answer = ask(&served.url, Dialect::Chat, "b", &body).await;
    assert_eq!(answer.header("x-trimtab-action"), "edited");
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_keys_do_not_bypass_a_token_quota() {
    let upstream = model().await;
    let settings = format!(
        "[proxy.quotas]\nrequests_per_minute = 2\n\
         [[proxy.tokens]]\nname = \"ann\"\ntoken = \"{TOKEN}\"\n\
         [[proxy.tokens]]\nname = \"bob\"\ntoken = \"{OTHER_TOKEN}\"\n"
    );
    let served = serve(&upstream, &settings, &[]);
    let body = with_output(Dialect::Chat, 2);
    let mut statuses = Vec::new();
    for (token, key) in [(TOKEN, "1"), (TOKEN, "2"), (TOKEN, "3"), (OTHER_TOKEN, "3")] {
        let headers = [("x-trimtab-token", token), ("authorization", key)];
        let answer = post(&served.url, path(Dialect::Chat), &headers, &body).await;
        statuses.push(answer.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 200]);
}
