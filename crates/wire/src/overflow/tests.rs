use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn judge(status: u16, body: &str) -> OverflowVerdict {
    classify(&ProviderResponse::new(status, body.as_bytes()))
}

fn message(status: u16, text: &str) -> (OverflowKind, OverflowAction) {
    let verdict = judge(
        status,
        &serde_json::json!({"error": {"message": text}}).to_string(),
    );
    (verdict.kind, verdict.action)
}

#[test]
fn the_embedded_rules_compile() {
    OverflowRules::parse(include_str!("../../data/overflow.toml")).unwrap();
}

#[test]
fn figures_settle_what_is_too_much() {
    let too_much = |prompt: u64, answer: u64| {
        message(
            400,
            &format!(
                "This model's maximum context length is 8192 tokens. However, you requested {} \
                 tokens ({prompt} in the messages, {answer} in the completion).",
                prompt + answer
            ),
        )
    };
    assert_eq!(
        too_much(8_000, 500),
        (OverflowKind::PromptAndAnswer, OverflowAction::LowerReserve)
    );
    assert_eq!(
        too_much(9_000, 500),
        (OverflowKind::Prompt, OverflowAction::Compact)
    );
    assert_eq!(
        too_much(100, 9_000),
        (OverflowKind::AnswerLimit, OverflowAction::LowerReserve)
    );
}

#[test]
fn characters_are_converted_where_tokens_were_not_counted() {
    let text = |chars: u64| {
        format!(
            "This model's maximum context length is 32768 tokens. However, you requested 4096 \
             output tokens and your prompt contains {chars} characters (more than 130000 \
             characters, which is the upper bound for 28672 input tokens)."
        )
    };
    assert_eq!(
        message(400, &text(140_000)).0,
        OverflowKind::PromptAndAnswer
    );
    assert_eq!(message(400, &text(200_000)).0, OverflowKind::Prompt);
}

#[test]
fn bytes_are_measured_too() {
    let verdict = judge(
        400,
        r#"{"message": "too many total text bytes: 28000000 > 25000000"}"#,
    );
    assert_eq!(
        (verdict.kind, verdict.action),
        (OverflowKind::Bytes, OverflowAction::ShrinkBytes)
    );
    assert_eq!(verdict.sizes.excess(), Some(3_000_000));
}

#[test]
fn an_excess_is_read_where_no_limit_is_named() {
    let verdict = judge(
        400,
        r#"{"error": "prompt too long; over the context length by 1,234 tokens"}"#,
    );
    assert_eq!(
        (verdict.sizes.limit, verdict.sizes.excess()),
        (None, Some(1_234))
    );
}

#[test]
fn a_request_over_the_whole_rate_is_not_sent_again_as_it_is() {
    let over = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 45000.";
    assert_eq!(
        message(429, over),
        (OverflowKind::RateLimit, OverflowAction::Compact)
    );
    let used =
        "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000.";
    assert_eq!(
        message(429, used),
        (OverflowKind::RateLimit, OverflowAction::BackOff)
    );
}

/// An answer to a request of this estimate, by a model with this window.
fn sent(
    response: ProviderResponse<'_>,
    window: u64,
    estimate: Option<u64>,
) -> ProviderResponse<'_> {
    ProviderResponse {
        window: Some(window),
        estimate,
        ..response
    }
}

#[test]
fn empty_error_is_an_overflow_only_for_a_large_request() {
    let silent = ProviderResponse::new(400, b"");
    assert_eq!(classify(&silent).certainty, Certainty::IfLarge);
    assert!(classify(&sent(silent, 1000, Some(900))).is_overflow());
    assert_eq!(
        classify(&sent(silent, 1000, Some(100))).kind,
        OverflowKind::Other
    );
    assert_eq!(
        classify(&ProviderResponse::new(429, b" \n")).action,
        OverflowAction::BackOff
    );
}

#[test]
fn usage_over_the_window_is_a_silent_overflow_in_every_dialect() {
    for usage in [
        r#"{"usage": {"prompt_tokens": 1500, "completion_tokens": 1}}"#,
        r#"{"usage": {"input_tokens": 500, "cache_read_input_tokens": 1000}}"#,
        r#"{"usage": {"input_tokens": 1500, "input_tokens_details": {"cached_tokens": 1000}}}"#,
        r#"{"prompt_eval_count": 1500, "done": true}"#,
    ] {
        let response = ProviderResponse::new(200, usage.as_bytes());
        assert_eq!(
            classify(&sent(response, 1000, None)).kind,
            OverflowKind::Silent,
            "{usage}"
        );
        assert_eq!(
            classify(&sent(response, 1501, None)).kind,
            OverflowKind::Other,
            "{usage}"
        );
        assert_eq!(classify(&response).kind, OverflowKind::Other, "{usage}");
    }
}

#[test]
fn a_prompt_that_was_cut_by_the_server_shows_in_usage() {
    let full = r#"{"choices": [{"finish_reason": "length"}],
        "usage": {"prompt_tokens": 950, "completion_tokens": 0}}"#;
    assert_eq!(
        classify(&sent(
            ProviderResponse::new(200, full.as_bytes()),
            1000,
            None
        ))
        .kind,
        OverflowKind::Silent
    );
    let cut = ProviderResponse::new(
        200,
        br#"{"usage": {"prompt_tokens": 700, "completion_tokens": 9}}"#,
    );
    assert_eq!(
        classify(&sent(cut, 1000, Some(1600))).kind,
        OverflowKind::Silent
    );
    assert_eq!(
        classify(&sent(cut, 1000, Some(900))).kind,
        OverflowKind::Other
    );
}

#[test]
fn overflow_wording_in_an_answer_is_no_error() {
    let words = "prompt is too long: 9000 tokens > 8192 maximum, context_length_exceeded";
    for body in [
        serde_json::json!({"choices": [{"message": {"content": words}, "finish_reason": "stop"}]}),
        serde_json::json!({"type": "message", "content": [{"type": "text", "text": words}]}),
        serde_json::json!({"object": "response", "error": null, "output": [{"text": words}]}),
        serde_json::json!({"candidates": [{"content": {"parts": [{"text": words}]}}]}),
    ] {
        assert_eq!(
            judge(200, &body.to_string()).kind,
            OverflowKind::Other,
            "{body}"
        );
    }
    let echo = serde_json::json!({"detail": [{"msg": "field required", "input": {"text": words}}]});
    assert_eq!(judge(422, &echo.to_string()).kind, OverflowKind::Other);
    assert_eq!(judge(200, words).kind, OverflowKind::Other);
}

#[test]
fn events_are_judged_by_themselves() {
    let error = br#"{"type":"error","error":{"message":"Input is too long for requested model"}}"#;
    assert_eq!(
        classify(&ProviderResponse::event("error", error)).kind,
        OverflowKind::Prompt
    );
    assert_eq!(
        classify(&ProviderResponse::event("", error)).kind,
        OverflowKind::Prompt
    );
    let delta = br#"{"type":"content_block_delta","delta":{"text":"Input is too long"}}"#;
    assert_eq!(
        classify(&ProviderResponse::event("content_block_delta", delta)).kind,
        OverflowKind::Other
    );
    let stop =
        br#"{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}"#;
    assert_eq!(
        classify(&ProviderResponse::event("message_delta", stop)).kind,
        OverflowKind::AnswerCut
    );
}

#[test]
fn headers_count() {
    let headers = [
        ("X-Amzn-ErrorType", "ThrottlingException:http://x"),
        ("Retry-After", "20"),
    ];
    let response = ProviderResponse::new(400, b"{\"message\": \"Too many tokens\"}");
    assert_eq!(classify(&response).kind, OverflowKind::Prompt);
    let verdict = classify(&ProviderResponse {
        headers: &headers,
        ..response
    });
    assert_eq!(
        (verdict.kind, verdict.retry_after),
        (OverflowKind::RateLimit, Some(Duration::from_secs(20)))
    );
}

#[test]
fn rules_that_are_wrong_name_the_rule() {
    for (toml, expected) in [
        ("[[rule]]", "the overflow rules cannot be read"),
        (
            "[[rule]]\nname='r'\nkind='bytes'",
            "overflow rule `r` has no condition",
        ),
        (
            "[[rule]]\nname='r'\nkind='bytes'\nany=['(']",
            "overflow rule `r`: pattern `(`",
        ),
        (
            "[[rule]]\nname='r'\nkind='bytes'\nstatus=['x']",
            "overflow rule `r`: status `x`",
        ),
        (
            "[[figure]]\npattern='('",
            "overflow rule `(figure)`: pattern `(`",
        ),
    ] {
        let error = OverflowRules::parse(toml).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_pattern_that_is_left_out_no_longer_fits() {
    let rules = OverflowRules::parse("[[rule]]\nname='r'\nkind='bytes'\nany=['x', 'y']").unwrap();
    let response = ProviderResponse::new(400, b"x");
    assert_eq!(
        rules
            .without(|_, index| index == 1)
            .classify(&response)
            .kind,
        OverflowKind::Bytes
    );
    assert_eq!(
        rules
            .without(|_, index| index == 0)
            .classify(&response)
            .kind,
        OverflowKind::Other
    );
}

#[test]
fn only_the_ends_of_a_huge_body_are_read() {
    let mut body = String::from("{\"error\": {\"message\": \"prompt is too long\", \"echo\": \"");
    let _ = write!(body, "{}\"}}}}", "a".repeat(20 << 20));
    assert_eq!(judge(400, &body).kind, OverflowKind::Prompt);
    let buried = format!(
        "{}prompt is too long{}",
        "a ".repeat(1 << 20),
        "a ".repeat(1 << 20)
    );
    assert_eq!(judge(400, &buried).kind, OverflowKind::Other);
    let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    assert_eq!(judge(400, &deep).kind, OverflowKind::Other);
}

proptest! {
    #[test]
    fn any_bytes_are_judged(status in 100u16..600, body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = classify(&ProviderResponse::new(status, &body));
    }

    #[test]
    fn any_text_is_judged(body in "(\\PC|[\\n\\\\\"{}<>:,0-9k]|data: |event: error\n|\\\\u){0,120}") {
        let _ = judge(400, &body);
        let _ = judge(200, &body);
    }

    #[test]
    fn wrapping_does_not_change_the_verdict(actual in 200_001u64..9_999_999, levels in 0usize..4) {
        let mut body = format!("prompt is too long: {actual} tokens > 200000 maximum");
        for _ in 0..levels {
            body = serde_json::json!({"error": {"message": body}}).to_string();
        }
        let verdict = judge(400, &body);
        prop_assert_eq!(verdict.kind, OverflowKind::Prompt);
        prop_assert_eq!(verdict.sizes.actual, Some(actual));
        prop_assert_eq!(verdict.sizes.limit, Some(200_000));
    }
}
