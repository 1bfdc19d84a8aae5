//! What the summariser is asked, and what becomes of its answer.

use serde_json::json;
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::ReceivedRequest;

use super::{compacted, proxied, talk_until};
use crate::scripted::{all_text, failing, is_own_call, lines, system_text};

#[tokio::test(flavor = "multi_thread")]
async fn summariser_is_asked_for_two_tagged_parts_at_the_end() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "10000"]).await;
        compacted(&mut talk, 8_000).await;
        let asked = talk.own_calls().remove(0);
        let shown = lines(&asked);
        let last = shown.last().unwrap();
        assert!(last.starts_with("user: "), "{dialect}");
        let parts = [
            "<retain>...</retain>",
            "<summary>...</summary>",
            "Retain instructions:",
            "Summary instructions:",
        ];
        let places = parts.map(|part| {
            last.find(part)
                .unwrap_or_else(|| panic!("{part} is not in {last}"))
        });
        assert!(places.is_sorted(), "{last}");
        assert!(
            all_text(&asked).contains("FIRST-OUTPUT"),
            "{dialect}: the conversation comes first"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_is_given_the_system_prompt() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "10000"]).await;
        match dialect {
            Dialect::Chat => {}
            Dialect::Responses => talk.body["instructions"] = json!("be brief"),
            Dialect::Messages => talk.body["system"] = json!("be brief"),
        }
        compacted(&mut talk, 8_000).await;
        let asked = system_text(&talk.own_calls()[0]);
        assert!(asked.contains("be brief"), "{dialect}: {asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_may_call_no_tools() {
    let mut talk = proxied(Dialect::Chat, &["--window", "10000"]).await;
    compacted(&mut talk, 8_000).await;
    let body = talk.own_calls()[0].json();
    let none = body["tools"].is_null() || body["tool_choice"] == "none";
    assert!(none, "{}", body["tool_choice"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wishes_are_added_to_the_prompts_as_bullets() {
    let args = [
        "--window",
        "10000",
        "--set",
        "summaryDirectives=['keep ports']",
        "--set",
        "retainDirectives=['keep ids']",
        "--set",
        "summaryPrompt=BE-SHORT",
        "--set",
        "retainPrompt=KEEP-IT",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    compacted(&mut talk, 8_000).await;
    let last = talk.own_calls()[0].last.clone();
    assert!(
        last.contains("Retain instructions:\nKEEP-IT\n- keep ids\n"),
        "{last}"
    );
    assert!(
        last.ends_with("Summary instructions:\nBE-SHORT\n- keep ports"),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_retain_prompt_no_such_part_is_asked_for() {
    let args = ["--window", "10000", "--set", "retainPrompt=null"];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let seen = compacted(&mut talk, 8_000).await;
    assert!(!talk.own_calls()[0].last.contains("retain"));
    assert!(!all_text(&seen).contains("KEPT-FACT"));
}

#[tokio::test(flavor = "multi_thread")]
async fn summaries_are_written_by_the_model_that_is_set_for_them() {
    let mut talk = proxied(
        Dialect::Chat,
        &["--window", "10000", "--set", "compaction.model=gpt-4o-mini"],
    )
    .await;
    compacted(&mut talk, 8_000).await;
    assert_eq!(talk.own_calls()[0].model, "gpt-4o-mini");
    let mut talk = proxied(Dialect::Chat, &["--window", "10000"]).await;
    compacted(&mut talk, 8_000).await;
    assert_eq!(talk.own_calls()[0].model, "gpt-4o");
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_larger_than_what_it_replaces_changes_nothing() {
    let mut talk = proxied(Dialect::Chat, &["--window", "10000"]).await;
    let long = format!("<summary>{}</summary>", "far too long ".repeat(3_000));
    talk.answers.summarise(ScriptedReply::text(long));
    talk_until(&mut talk, 8_000);
    let asked = |_: &ReceivedRequest| talk.upstream.requests().iter().any(|one| is_own_call(one));
    talk.send_until(asked).await;
    let seen = talk.send_some_times().await;
    assert_eq!(seen.json()["messages"], talk.body["messages"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_without_tags_is_taken_as_the_summary() {
    let mut talk = proxied(Dialect::Chat, &["--window", "10000"]).await;
    talk.answers
        .summarise(ScriptedReply::text("<retain>R</retain> JUST-TEXT"));
    let seen = compacted(&mut talk, 8_000).await;
    let text = all_text(&seen);
    assert!(
        text.contains("JUST-TEXT") && !text.contains("<retain>"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_that_fails_or_says_nothing_changes_nothing() {
    for reply in [
        failing(),
        ScriptedReply::text("<retain></retain><summary></summary>"),
    ] {
        let mut talk = proxied(Dialect::Chat, &["--window", "10000"]).await;
        talk.answers.summarise(reply);
        talk_until(&mut talk, 8_000);
        let asked =
            |_: &ReceivedRequest| talk.upstream.requests().iter().any(|one| is_own_call(one));
        talk.send_until(asked).await;
        let seen = talk.send_some_times().await;
        assert_eq!(seen.json()["messages"], talk.body["messages"]);
    }
}
