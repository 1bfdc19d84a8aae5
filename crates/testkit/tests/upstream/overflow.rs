//! Prompts that are too long.

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::upstream::{Count, OverflowForm, RequestOutcome, UpstreamOptions};
use trimtab_wire::overflow::{ProviderResponse, classify};

use crate::client::{Got, Talk, scripted, start};

const WINDOW: u64 = 1_000;

async fn overflow(dialect: Dialect, stream: bool, form: OverflowForm) -> Got {
    let (upstream, client) = start(UpstreamOptions {
        window: Some(WINDOW),
        overflow: form,
        ..UpstreamOptions::default()
    })
    .await;
    let mut talk = Talk::new(dialect, &"0123 4567 ".repeat(500));
    if stream {
        talk = talk.streaming();
    }
    let got = client.post(dialect, &talk.body).await;
    let request = &upstream.requests()[0];
    assert!(
        (1_250..1_300).contains(&request.tokens),
        "{}",
        request.tokens
    );
    let expected = match form {
        OverflowForm::Silent => RequestOutcome::Answered,
        _ => RequestOutcome::Overflow,
    };
    assert_eq!(request.outcome, expected);
    assert_eq!(upstream.violations(), Vec::<String>::new());
    got
}

#[tokio::test]
async fn every_form_is_an_overflow_for_the_classifier() {
    let forms = [
        OverflowForm::Status,
        OverflowForm::FirstEvent,
        OverflowForm::Failed,
        OverflowForm::LlamaCpp,
    ];
    for dialect in Dialect::ALL {
        for form in forms {
            for stream in [false, true] {
                let got = overflow(dialect, stream, form).await;
                let verdict = classify(&ProviderResponse::new(got.status, &got.body));
                let text = String::from_utf8_lossy(&got.body).into_owned();
                assert!(verdict.is_overflow(), "{dialect} {form:?} {stream}: {text}");
                let events = matches!(form, OverflowForm::FirstEvent | OverflowForm::Failed);
                assert_eq!(got.status, if events && stream { 200 } else { 400 });
            }
        }
    }
}

#[tokio::test]
async fn each_provider_has_its_words() {
    let got = overflow(Dialect::Chat, false, OverflowForm::Status).await;
    assert_eq!(got.json()["error"]["code"], "context_length_exceeded");
    assert!(
        got.message()
            .starts_with("This model's maximum context length is 1000 tokens.")
    );
    let got = overflow(Dialect::Messages, false, OverflowForm::Status).await;
    assert!(
        got.message().starts_with("prompt is too long: 12"),
        "{}",
        got.message()
    );
    assert!(got.message().ends_with(" tokens > 1000 maximum"));
    let got = overflow(Dialect::Responses, false, OverflowForm::Status).await;
    assert!(
        got.message()
            .starts_with("Your input exceeds the context window")
    );
    let got = overflow(Dialect::Chat, false, OverflowForm::LlamaCpp).await;
    assert_eq!(got.json()["error"]["n_ctx"], 1000);
    assert_eq!(got.json()["error"]["type"], "exceed_context_size_error");
}

#[tokio::test]
async fn a_response_can_fail_after_it_began() {
    let got = overflow(Dialect::Responses, true, OverflowForm::Failed).await;
    let events = crate::client::events(&got);
    let types: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(
        types,
        [
            "response.created",
            "response.in_progress",
            "response.failed"
        ]
    );
    assert_eq!(
        events[2]["response"]["error"]["code"],
        "context_length_exceeded"
    );
    let said = got.said(Dialect::Responses);
    assert!(said.error.starts_with("Your input exceeds"), "{said:?}");
}

#[tokio::test]
async fn a_silent_overflow_shows_in_the_usage_only() {
    for dialect in Dialect::ALL {
        let got = overflow(dialect, true, OverflowForm::Silent).await;
        let said = got.said(dialect);
        assert_eq!(
            (said.text.as_str(), said.usage.prompt()),
            ("done", WINDOW),
            "{dialect}"
        );
    }
}

#[tokio::test]
async fn the_limit_of_the_answer_counts_where_the_provider_says_so() {
    let options = || UpstreamOptions {
        window: Some(WINDOW),
        ..UpstreamOptions::default()
    };
    for (dialect, name, words) in [
        (
            Dialect::Chat,
            "max_completion_tokens",
            Some("990 in the completion"),
        ),
        (
            Dialect::Messages,
            "max_tokens",
            Some("+ 990 > 1000, decrease input length or `max_tokens`"),
        ),
        (Dialect::Responses, "max_output_tokens", None),
    ] {
        let (_upstream, client) = start(options()).await;
        let mut talk = Talk::new(dialect, &"0123 4567 ".repeat(20));
        talk.body[name] = json!(990);
        let got = client.post(dialect, &talk.body).await;
        match words {
            Some(words) => assert!(got.message().contains(words), "{}", got.message()),
            None => assert_eq!(got.status, 200),
        }
        talk.body[name] = json!(700);
        assert_eq!(
            client.post(dialect, &talk.body).await.status,
            200,
            "{dialect}"
        );
        let (_upstream, client) = start(UpstreamOptions {
            answer_counts: false,
            ..options()
        })
        .await;
        talk.body[name] = json!(990);
        assert_eq!(
            client.post(dialect, &talk.body).await.status,
            200,
            "{dialect}"
        );
    }
}

#[tokio::test]
async fn tokens_are_counted_as_told() {
    let mut tokens = Vec::new();
    for count in [Count::Bytes, Count::Estimate] {
        let (upstream, client) = start(UpstreamOptions {
            count,
            ..UpstreamOptions::default()
        })
        .await;
        let talk = Talk::new(Dialect::Chat, &"the quick brown fox ".repeat(200));
        let got = client.post(Dialect::Chat, &talk.body).await;
        let request = upstream.requests()[0].clone();
        assert_eq!(got.json()["usage"]["prompt_tokens"], request.tokens);
        tokens.push(request.tokens);
    }
    assert!((1_000..1_050).contains(&tokens[0]), "{tokens:?}");
    assert!(tokens[1] > 700 && tokens[1] < 1_100, "{tokens:?}");
}

#[tokio::test]
async fn overflow_of_a_script_refuses_once_whatever_the_length() {
    for dialect in Dialect::ALL {
        let fault = json!({"kind": "overflow", "window": 9_000});
        let (upstream, client) = start(scripted(&json!([{"text": "hello", "fault": fault}]))).await;
        let talk = Talk::new(dialect, "short");
        let got = client.post(dialect, &talk.body).await;
        let verdict = classify(&ProviderResponse::new(got.status, &got.body));
        assert!(verdict.is_overflow(), "{dialect}: {got:?}");
        assert_eq!(upstream.requests()[0].outcome, RequestOutcome::Overflow);
        let got = client.post(dialect, &talk.body).await;
        assert_eq!(got.status, 200);
        assert!(
            String::from_utf8_lossy(&got.body).contains("hello"),
            "{got:?}"
        );
    }
}
