//! Models with a prompt limit below their window.

use serde_json::{Value, json};
use trimtab_testkit::upstream::RequestOutcome;

use crate::model::upstream;
use crate::run::Served;
use crate::talk::post;

/// What gpt-5 takes as a prompt; its window is 400,000.
const PROMPT: u64 = 272_000;

/// A conversation of about 330,000 tokens, a quarter of its bytes.
fn conversation() -> Value {
    let said = "some plain words that take up room in the prompt ".repeat(660);
    let turn = |at: usize| {
        [
            json!({"role": "user", "content": format!("{at}: {said}")}),
            json!({"role": "assistant", "content": format!("{at} is done")}),
        ]
    };
    let mut messages: Vec<Value> = (0..40).flat_map(turn).collect();
    messages.push(json!({"role": "user", "content": "what was first?"}));
    json!({"model": "gpt-5", "max_completion_tokens": 500, "messages": messages})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_above_the_input_limit_is_made_to_fit_before_it_is_sent() {
    let upstream = upstream(Some(PROMPT)).await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    let answer = post(&served.url, "/v1/chat/completions", &conversation(), &[]).await;
    assert!(answer.status.is_success(), "{}", answer.status);
    let requests = upstream.requests();
    assert!(!requests.is_empty());
    for received in requests {
        assert_eq!(received.outcome, RequestOutcome::Answered);
        assert!(received.tokens < PROMPT, "{}", received.tokens);
    }
}
