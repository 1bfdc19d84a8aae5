//! Preset `refs`: outputs stored behind refs, and a summary once the window is 80 % full.

use std::sync::Arc;

use serde_json::json;
use trimtab_model::{Dialect, Usage};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, RequestOutcome};

use crate::chatted::Chatted;
use crate::proxied::Proxied;
use crate::scripted::{
    UNKNOWN_MODEL, all_text, failing, is_own_call, lines, outputs, ref_in, reporting, system_text,
};
use crate::talk::{TASK, log};

const REFS: [&str; 2] = ["--preset", "refs"];

async fn proxied(dialect: Dialect, args: &[&str]) -> Proxied {
    Proxied::start(dialect, &[&REFS, args].concat()).await
}

/// Lines of 100 bytes that together have so many bytes, the last line shorter.
fn of_bytes(bytes: usize) -> String {
    let line = |at: usize| format!("{at:08} {}\n", "x".repeat(90));
    let mut text: String = (0..=bytes / 100).map(line).collect();
    text.truncate(bytes);
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn output_above_50_kib_ends_with_a_note_that_names_its_ref() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "400k"]).await;
        let seen = talk.send_round(&[&of_bytes(52_000)]).await;
        let shown = outputs(&seen).remove(0);
        let (body, note) = shown
            .split_once("\n\n[tool output truncated; ref=")
            .unwrap();
        assert!(body.len() <= 51_200, "{dialect}: {}", body.len());
        assert!(body.ends_with('x'), "whole lines stay");
        assert!(note.len() < 400, "{note}");
        for tool in ["tool_output_cache", "tool_output_cache_grep"] {
            assert!(seen.tools.iter().any(|name| name == tool), "{dialect}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_50_kib_is_shown_as_it_came() {
    let mut talk = proxied(Dialect::Chat, &["--window", "400k"]).await;
    let text = of_bytes(51_199);
    let seen = talk.send_round(&[&text, "a\r\nb\r\n"]).await;
    assert_eq!(outputs(&seen), [text, "a\r\nb\r\n".to_owned()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_a_note_would_make_longer_is_shown_whole() {
    let mut talk = proxied(Dialect::Chat, &["--window", "400k"]).await;
    let text = of_bytes(51_210);
    let seen = talk.send_round(&[&text]).await;
    assert_eq!(outputs(&seen), [text]);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_document_on_one_line_keeps_its_beginning_and_its_end() {
    let mut talk = proxied(Dialect::Chat, &["--window", "400k"]).await;
    let rows: Vec<_> = (0..3_000)
        .map(|row| json!({"row": row, "name": format!("name of row {row}")}))
        .collect();
    let text = json!({"total": 3_000, "rows": rows}).to_string();
    let seen = talk.send_round(&[&text]).await;
    let shown = outputs(&seen).remove(0);
    assert!((20_000..52_000).contains(&shown.len()), "{}", shown.len());
    assert!(shown.contains("\"total\"") && shown.contains("name of row 9"));
    assert!(
        shown.contains("ref=") || shown.contains("ref_id"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn line_is_cut_at_2000_characters() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    let fits = "é".repeat(2_000);
    let long = format!("first\n{}\nlast", "é".repeat(2_500));
    let seen = talk.send_round(&[&fits, &long]).await;
    let shown = outputs(&seen);
    assert_eq!(shown[0], fits);
    let mut cut = shown[1].lines();
    assert_eq!(cut.next(), Some("first"));
    let line = cut.next().unwrap();
    assert!(
        line.starts_with(&fits) && line.chars().count() < 2_100,
        "{line}"
    );
    assert!(
        shown[1].contains("\nlast") && shown[1].contains("ref="),
        "{}",
        shown[1]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_message_and_of_a_line_can_be_set() {
    let args = [
        "--set",
        "views.default.max_bytes=300",
        "--set",
        "views.default.max_line_chars=50",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let seen = talk.send_round(&[&of_bytes(1_000)]).await;
    let shown = outputs(&seen).remove(0);
    let body = shown.split("\n\n[tool output truncated").next().unwrap();
    assert!(body.len() <= 300, "{shown}");
    assert!(!shown.contains(&"x".repeat(51)), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn switched_off_cache_leaves_outputs_as_they_came() {
    let args = [
        "--window",
        "400k",
        "--set",
        "views.default={shape='whole'}",
        "--set",
        "ageing.placeholder.enabled=false",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let text = of_bytes(200_000);
    let seen = talk.send_round(&[&text]).await;
    assert_eq!(outputs(&seen), [text]);
}

/// Outputs that are marked with their number and have so many tokens.
fn numbered(number: usize, tokens: usize) -> String {
    of_bytes(tokens * 4 - 20).replace("xx\n", &format!("{number:02}\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_outputs_become_placeholders_when_all_together_are_above_the_budget() {
    for dialect in Dialect::ALL {
        // A quarter of the window: 32,000 tokens.
        let mut talk = proxied(dialect, &["--window", "128k"]).await;
        for number in 1..=3 {
            let seen = talk.send_round(&[&numbered(number, 10_000)]).await;
            assert!(!all_text(&seen).contains("trimmed"), "{dialect} {number}");
        }
        let seen = talk.send_round(&[&numbered(4, 10_000)]).await;
        let shown = outputs(&seen);
        assert!(
            shown[0].starts_with("[tool output trimmed; ref="),
            "{}",
            shown[0]
        );
        for (at, text) in shown.iter().enumerate().skip(1) {
            assert_eq!(*text, numbered(at + 1, 10_000), "{dialect}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn budget_of_outputs_is_between_20000_and_60000_tokens() {
    // A quarter would be 8,000 and 250,000.
    for (window, fits) in [("64k", 4), ("1m", 12)] {
        let mut talk = proxied(
            Dialect::Chat,
            &["--window", window, "--set", "compaction.auto=false"],
        )
        .await;
        for number in 1..=fits {
            let seen = talk.send_round(&[&numbered(number, 5_000)]).await;
            assert!(!all_text(&seen).contains("trimmed"), "{window} {number}");
        }
        let seen = talk.send_round(&[&numbered(99, 5_000)]).await;
        assert!(outputs(&seen)[0].contains("trimmed; ref="), "{window}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn budget_of_outputs_can_be_set() {
    let mut talk = proxied(
        Dialect::Chat,
        &["--set", "ageing.placeholder.budget.tokens=1000"],
    )
    .await;
    talk.round(&[&numbered(1, 600)]);
    let seen = talk.send_round(&[&numbered(2, 600)]).await;
    let shown = outputs(&seen);
    assert!(shown[0].contains("trimmed; ref="), "{}", shown[0]);
    assert_eq!(shown[1], numbered(2, 600), "the newest stays");
}

/// Lets the model ask for a stored output; gives what it was answered.
async fn looked_up(talk: &mut Proxied, tool: &str, arguments: serde_json::Value) -> String {
    talk.answers.say(ScriptedReply::call(tool, arguments));
    let seen = talk.send().await;
    outputs(&seen).last().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholder_is_expanded_by_its_ref_in_rows() {
    for dialect in Dialect::ALL {
        let args = ["--set", "ageing.placeholder.budget.tokens=1000"];
        let mut talk = proxied(dialect, &args).await;
        let line = |row: usize| format!("row {row} of the log\n");
        let rows: String = (1..=200).map(line).collect();
        talk.round(&[&rows]);
        let seen = talk.send_round(&[&numbered(2, 900)]).await;
        let id = ref_in(&outputs(&seen)[0]).unwrap();
        let read = json!({"ref_id": id, "offset": 10, "limit": 2});
        let shown = looked_up(&mut talk, "tool_output_cache", read).await;
        assert!(
            shown.starts_with("   11  row 11 of the log\n   12  row 12"),
            "{dialect}: {shown}"
        );
        assert!(!shown.contains("row 13"), "{dialect}: {shown}");
        let past = json!({"ref_id": id, "offset": 900});
        let shown = looked_up(&mut talk, "tool_output_cache", past).await;
        assert!(shown.contains("Offset exceeds output length."), "{shown}");
        let sought = json!({"ref_id": id, "pattern": "row 77 "});
        let shown = looked_up(&mut talk, "tool_output_cache_grep", sought).await;
        assert!(
            shown.contains("   77  row 77 of the log"),
            "{dialect}: {shown}"
        );
        let sought = json!({"ref_id": id, "pattern": "no such row"});
        let shown = looked_up(&mut talk, "tool_output_cache_grep", sought).await;
        assert!(shown.contains("No matches for: no such row"), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retrieved_output_names_its_images() {
    let args = ["--set", "ageing.placeholder.budget.tokens=1000"];
    let mut talk = proxied(Dialect::Messages, &args).await;
    talk.round(&["x"]);
    let image = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    talk.body["messages"][2]["content"][0]["content"] =
        json!([{"type": "text", "text": numbered(1, 900)}, image]);
    talk.round(&[&numbered(2, 900)]);
    let seen = talk.send().await;
    let id = ref_in(&outputs(&seen)[0]).unwrap();
    let asks = json!({"ref_id": id, "pattern": "[image]"});
    let found = looked_up(&mut talk, "tool_output_cache_grep", asks).await;
    assert!(
        found.contains("[image]") && !found.contains("No matches"),
        "{found}"
    );
}

/// A usage of so many tokens in all, in its four parts.
fn used(total: u64) -> Usage {
    Usage {
        input: total - 1_000,
        cache_creation: 300,
        cache_read: 600,
        output: 100,
        ..Usage::default()
    }
}

/// Two turns with a round each; every answer reports the usage.
fn talk_until(talk: &mut Proxied, total: u64) {
    talk.answers.report(used(total));
    talk.round(&[&format!("FIRST-OUTPUT\n{}", log(150))]);
    talk.turn("first answer", "SECOND-QUESTION");
    talk.round(&["SECOND-OUTPUT"]);
}

/// The same; the request that has the summary.
async fn compacted(talk: &mut Proxied, total: u64) -> Arc<ReceivedRequest> {
    talk_until(talk, total);
    talk.send_until(|_| !talk.own_calls().is_empty()).await;
    talk.round(&["THIRD-OUTPUT"]);
    talk.send_until(|seen| !all_text(seen).contains("FIRST-OUTPUT"))
        .await
}

/// How often the summariser was asked in a chat of three turns whose answers report so much.
fn summaries_in_chat(total: u64, settings: &[&str]) -> usize {
    let chatted = Chatted::new(None);
    for _ in 0..3 {
        chatted.answers.say(ScriptedReply {
            usage: Some(used(total)),
            ..ScriptedReply::text(log(60))
        });
    }
    let fixed = [
        "--preset",
        "refs",
        "--window",
        "10000",
        "--max-output",
        "500",
    ];
    let args = [&fixed, settings].concat();
    let told = chatted.chat(&args, "FIRST-QUESTION\nSECOND-QUESTION\nTHIRD-QUESTION\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    chatted.own_calls().len()
}

#[test]
fn history_is_replaced_when_usage_reaches_the_threshold() {
    assert_eq!(summaries_in_chat(7_999, &[]), 0, "one below");
    assert!(summaries_in_chat(8_000, &[]) > 0, "at the threshold");
}

#[test]
fn threshold_ratio_can_be_set() {
    let settings = ["--set", "compaction.when=usage >= 0.5 x window"];
    assert_eq!(summaries_in_chat(4_999, &settings), 0);
    assert!(summaries_in_chat(5_000, &settings) > 0);
}

#[test]
fn nothing_is_compacted_where_it_is_switched_off() {
    for setting in ["compaction.enabled=false", "compaction.auto=false"] {
        assert_eq!(
            summaries_in_chat(9_000, &["--set", setting]),
            0,
            "{setting}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compacted_history_is_retain_then_summary_then_the_last_turn() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "10000"]).await;
        let seen = compacted(&mut talk, 8_000).await;
        let shown = lines(&seen);
        let place = |text: &str| {
            let found = shown.iter().position(|line| line.contains(text));
            found.unwrap_or_else(|| panic!("{dialect}: no {text} in {shown:#?}"))
        };
        let order = [
            "KEPT-FACT",
            "SHORT-SUMMARY",
            "SECOND-QUESTION",
            "SECOND-OUTPUT",
            "THIRD-OUTPUT",
        ];
        assert!(order.map(place).is_sorted(), "{dialect}: {shown:#?}");
        for gone in ["FIRST-OUTPUT", "first answer", "WORDS-1"] {
            assert!(!all_text(&seen).contains(gone), "{dialect}: {gone}");
        }
        for text in ["KEPT-FACT", "SHORT-SUMMARY"] {
            assert!(shown[place(text)].starts_with("user: "), "{dialect}");
        }
        // What the user asked for first is kept besides.
        assert!(all_text(&seen).contains(TASK), "{dialect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_messages_are_behind_a_ref_in_the_summary() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "10000"]).await;
        let seen = compacted(&mut talk, 8_000).await;
        let summary = lines(&seen);
        let summary = summary.iter().find(|line| line.contains("SHORT-SUMMARY"));
        let id = ref_in(summary.unwrap()).unwrap();
        let asks = json!({"ref_id": id, "pattern": "FIRST-OUTPUT"});
        let found = talk.read_back("tool_output_cache_grep", asks).await;
        assert!(found.contains("FIRST-OUTPUT"), "{dialect}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_instructions_nor_answer_of_the_summariser_stay_in_history() {
    let mut talk = proxied(Dialect::Chat, &["--window", "10000"]).await;
    let seen = compacted(&mut talk, 8_000).await;
    let text = all_text(&seen);
    for gone in ["Summary instructions:", "<retain>", "<summary>"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
}

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
async fn long_words_of_a_person_are_no_outputs() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &[]).await;
        let said: Vec<String> = (0..8)
            .map(|number| {
                format!(
                    "{}WISH-{number}",
                    "the report is late, and why. ".repeat(110)
                )
            })
            .collect();
        for words in &said {
            talk.turn("I see.", words);
        }
        let sent = talk.send().await;
        let text = all_text(&sent);
        for words in &said {
            assert!(text.contains(words.as_str()), "{dialect}");
        }
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
        "compaction.prompt.summary_directives=['keep ports']",
        "--set",
        "compaction.prompt.retain_directives=['keep ids']",
        "--set",
        "compaction.prompt.summary=BE-SHORT",
        "--set",
        "compaction.prompt.retain=KEEP-IT",
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
    let args = ["--window", "10000", "--set", "compaction.prompt.retain="];
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
async fn number_of_kept_turns_can_be_set() {
    let args = [
        "--window",
        "10000",
        "--set",
        "compaction.keep=[{keep='last_turns',turns=2}]",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    talk.round(&[&format!("OLDEST-OUTPUT\n{}", log(150))]);
    talk.turn("oldest answer", "EARLIER-QUESTION");
    talk_until(&mut talk, 8_000);
    let seen = talk
        .send_until(|seen| !all_text(seen).contains("OLDEST-OUTPUT"))
        .await;
    let text = all_text(&seen);
    assert!(
        text.contains("EARLIER-QUESTION") && text.contains("FIRST-OUTPUT"),
        "{text}"
    );
}

#[test]
fn open_round_stays_where_no_turn_is_kept() {
    let chatted = Chatted::new(None);
    chatted.file("notes.txt", &log(400));
    let read = || ScriptedReply::call("read_file", json!({"path": "notes.txt"}));
    chatted.answers.say(read());
    chatted.answers.say(ScriptedReply {
        usage: Some(used(8_000)),
        ..read()
    });
    let args = ["--preset", "refs", "--window", "10000"];
    let args = [
        &args[..],
        &["--set", "compaction.keep=[{keep='last_turns',turns=0}]"],
    ]
    .concat();
    let told = chatted.chat(&args, "read it twice\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let calls = chatted.main_calls();
    let last = lines(calls.last().unwrap());
    assert!(
        all_text(calls.last().unwrap()).contains("SHORT-SUMMARY"),
        "{last:#?}"
    );
    let called = last
        .iter()
        .position(|line| line.contains(" call read_file"));
    let called = called.unwrap();
    assert!(last[called + 1].contains("took 0 ms"), "{last:#?}");
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

#[tokio::test(flavor = "multi_thread")]
async fn second_compaction_replaces_the_summary_and_shows_it_to_the_summariser() {
    let mut talk = proxied(Dialect::Chat, &["--window", "10000"]).await;
    talk.answers.summarise(ScriptedReply::text(
        "<retain>FACT-A</retain><summary>SUMMARY-A</summary>",
    ));
    compacted(&mut talk, 8_000).await;
    talk.answers.summarise(ScriptedReply::text(
        "<retain>FACT-B</retain><summary>SUMMARY-B</summary>",
    ));
    talk.turn("second answer", "THIRD-QUESTION");
    talk.round(&[&format!("FOURTH-OUTPUT\n{}", log(150))]);
    talk.turn("third answer", "FOURTH-QUESTION");
    talk.round(&["ok"]);
    talk.send_until_says("SUMMARY-B").await;
    let seen = talk.send_round(&["FIFTH-OUTPUT"]).await;
    let asked = talk.own_calls();
    let again = all_text(asked.last().unwrap());
    assert!(asked.len() >= 2 && again.contains("SUMMARY-A"), "{again}");
    let text = all_text(&seen);
    assert!(
        text.contains("SUMMARY-B") && !text.contains("SUMMARY-A"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_call_is_taken_out() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    talk.round(&["ANSWERED"]);
    let messages = talk.body["messages"].as_array_mut().unwrap();
    messages.push(
        json!({"role": "assistant", "content": "let me see", "tool_calls": [
        {"id": "open", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}]}),
    );
    messages.push(json!({"role": "user", "content": "never mind"}));
    let seen = talk.send().await;
    let shown = lines(&seen);
    assert!(
        shown.iter().any(|line| line == "assistant: let me see"),
        "{shown:#?}"
    );
    assert!(!String::from_utf8_lossy(&seen.body).contains("\"open\""));
}

#[test]
fn chat_compacts_after_an_answer_and_tells_it() {
    let chatted = Chatted::new(None);
    for _ in 0..3 {
        chatted.answers.say(ScriptedReply {
            usage: Some(used(8_000)),
            ..ScriptedReply::text(log(60))
        });
    }
    let args = ["--preset", "refs", "--window", "10000"];
    let turns = ["FIRST-QUESTION", "SECOND-QUESTION", "THIRD-QUESTION"];
    let events = chatted.events(&args, &turns);
    assert!(!chatted.own_calls().is_empty());
    let calls = chatted.main_calls();
    let last = lines(calls.last().unwrap());
    let place = |text: &str| last.iter().position(|line| line.contains(text));
    assert!(place("KEPT-FACT") < place("SHORT-SUMMARY"), "{last:#?}");
    assert!(
        place("SHORT-SUMMARY") < place("THIRD-QUESTION"),
        "{last:#?}"
    );
    let told = events.iter().find(|one| one["kind"] == "compacted");
    let told = told.unwrap_or_else(|| panic!("{events:#?}"));
    for figure in [
        "tokens_before",
        "tokens_after",
        "messages_before",
        "messages_after",
    ] {
        assert!(told[figure].is_u64(), "{told}");
    }
}

#[test]
fn chat_trims_old_outputs_and_the_model_reads_them_again() {
    let chatted = Chatted::new(None);
    let line = |row: usize| format!("row {row} of the log\n");
    let rows: String = (1..=300).map(line).collect();
    chatted.file("old.log", &rows);
    chatted.file("new.log", &log(100));
    let read = |name: &str| ScriptedReply::call("read_file", json!({"path": name}));
    chatted.answers.say(read("old.log"));
    chatted.answers.say(read("new.log"));
    let args = [
        "--preset",
        "refs",
        "--set",
        "ageing.placeholder.budget.tokens=1800",
    ];
    let told = chatted.chat(&args, "read both\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let calls = chatted.main_calls();
    let shown = outputs(calls.last().unwrap());
    assert!(
        shown[0].starts_with("[tool output trimmed; ref="),
        "{}",
        shown[0]
    );
    assert!(
        calls
            .last()
            .unwrap()
            .tools
            .iter()
            .any(|tool| tool == "tool_output_cache")
    );
}

/// A model of unknown window that rejects prompts above 6,000 tokens, and reports far more than any
/// share of a small window.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_window_is_learned_from_a_rejected_prompt() {
    let mut talk = Proxied::in_front_of(Dialect::Chat, &REFS, Some(6_000)).await;
    talk.body["model"] = json!(UNKNOWN_MODEL);
    talk.body["max_tokens"] = json!(100);
    talk.answers.report(used(5_900));
    talk.turn("first answer", "SECOND-QUESTION");
    talk.send_some_times().await;
    assert_eq!(talk.own_calls().len(), 0, "nothing can be decided");
    talk.answers.report(used(1_000));
    talk.round(&[&log(600)]);
    talk.send().await;
    let is_rejected = |one: &&Arc<ReceivedRequest>| one.outcome == RequestOutcome::Overflow;
    let requests = talk.upstream.requests();
    assert_eq!(requests.iter().filter(is_rejected).count(), 1);
    // It is known from now on.
    talk.turn("second answer", "THIRD-QUESTION");
    talk.send().await;
    talk.turn("third answer", "FOURTH-QUESTION");
    talk.answers.report(used(4_900));
    talk.send_until(|_| !talk.own_calls().is_empty()).await;
}

#[test]
fn chat_learns_an_unknown_window_from_a_rejected_prompt() {
    let chatted = Chatted::new(Some(6_000));
    chatted.file("notes.txt", &log(600));
    chatted.answers.say(reporting("first answer", 5_900, 100));
    let read = ScriptedReply::call("read_file", json!({"path": "notes.txt"}));
    chatted.answers.say(read);
    let args = ["--preset", "refs"];
    let told = chatted.chat_of(UNKNOWN_MODEL, Dialect::Chat, &args, "A\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stderr.contains("is unknown until"), "{}", told.stderr);
    assert_eq!(chatted.own_calls().len(), 0, "nothing can be decided");
    let args = ["--preset", "refs", "--resume"];
    let told = chatted.chat_of(UNKNOWN_MODEL, Dialect::Chat, &args, "B\n/model\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let shown = told.stdout + &told.stderr;
    assert!(!shown.contains("assum"), "{shown}");
    let last = chatted.main_calls();
    assert!(last.last().unwrap().tokens <= 6_000);
}

const NO_TURNS: [&str; 4] = [
    "--window",
    "10000",
    "--set",
    "compaction.keep=[{keep='last_turns',turns=0}]",
];

/// The last question, its answer and the next question stand in this order behind the summary.
#[track_caller]
fn expect_question_with_answer(seen: &ReceivedRequest) {
    let shown = lines(seen);
    let place = |text: &str| {
        let found = shown.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("no {text} in {shown:#?}"))
    };
    let order = [
        "SHORT-SUMMARY",
        "SECOND-QUESTION",
        "SECOND-ANSWER",
        "THIRD-QUESTION",
    ];
    assert!(order.map(place).is_sorted(), "{shown:#?}");
    assert!(!all_text(seen).contains("FIRST-ANSWER"), "{shown:#?}");
}

#[test]
fn chat_keeps_the_newest_question_with_its_answer_where_no_turn_is_kept() {
    let chatted = Chatted::new(None);
    let first = format!("FIRST-ANSWER {}", log(60));
    chatted.answers.say(reporting(first, 1_000, 100));
    chatted.answers.say(reporting("SECOND-ANSWER", 7_900, 100));
    let args = [&["--preset", "refs"], &NO_TURNS[..]].concat();
    let told = chatted.chat(&args, "FIRST-QUESTION\nSECOND-QUESTION\nTHIRD-QUESTION\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    expect_question_with_answer(chatted.main_calls().last().unwrap());
    let read = all_text(&chatted.own_calls()[0]);
    assert!(!read.contains("SECOND-ANSWER"), "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn newest_question_stays_with_its_answer_where_no_turn_is_kept() {
    let mut talk = proxied(Dialect::Chat, &NO_TURNS).await;
    talk.turn(&format!("FIRST-ANSWER {}", log(60)), "SECOND-QUESTION");
    talk.answers.say(reporting("SECOND-ANSWER", 7_900, 100));
    talk.send().await;
    talk.turn("SECOND-ANSWER", "THIRD-QUESTION");
    let seen = talk.send_until_says("SHORT-SUMMARY").await;
    expect_question_with_answer(&seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_reads_only_the_questions_of_turns_that_stay() {
    let mut talk = proxied(Dialect::Chat, &["--window", "10000"]).await;
    compacted(&mut talk, 8_000).await;
    let read = all_text(&talk.own_calls()[0]);
    assert!(
        read.contains("FIRST-OUTPUT") && read.contains("SECOND-QUESTION"),
        "{read}"
    );
    assert!(!read.contains("SECOND-OUTPUT"), "{read}");
}

#[test]
fn summariser_of_chat_reads_only_the_questions_of_turns_that_stay() {
    let chatted = Chatted::new(None);
    for (name, used) in [("FIRST", 1_000), ("SECOND", 7_900)] {
        chatted.file(name, &format!("{name}-OUTPUT\n{}", log(40)));
        let read = ScriptedReply::call("read_file", json!({"path": name}));
        chatted.answers.say(read);
        chatted.answers.say(reporting("read it", used, 100));
    }
    let args = [
        "--preset",
        "refs",
        "--window",
        "10000",
        "--max-output",
        "500",
    ];
    let told = chatted.chat(&args, "FIRST-QUESTION\nSECOND-QUESTION\nTHIRD-QUESTION\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let read = all_text(&chatted.own_calls()[0]);
    assert!(
        read.contains("FIRST-OUTPUT") && read.contains("SECOND-QUESTION"),
        "{read}"
    );
    assert!(!read.contains("SECOND-OUTPUT"), "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_of_a_tool_has_room_in_the_window_and_names_the_next_call() {
    let mut talk = proxied(Dialect::Chat, &["--window", "20000"]).await;
    let seen = talk.send_round(&[&log(4_000)]).await;
    let id = ref_in(&outputs(&seen)[0]).unwrap();
    let asks = json!({"ref_id": id, "offset": 0, "limit": 1_500});
    let given = talk.read_back("tool_output_cache", asks).await;
    assert!(given.lines().count() < 1_000, "{}", given.lines().count());
    let end = given.lines().last().unwrap();
    assert!(
        end.contains("tool_output_cache(") && end.contains("\"offset\":"),
        "{end}"
    );
}

#[test]
fn answer_of_a_tool_in_chat_has_room_in_the_window_and_names_the_next_call() {
    let chatted = Chatted::new(None);
    chatted.file("a.log", &log(4_000));
    let ask = json!({"path": "a.log", "limit": 4_000});
    chatted.answers.say(ScriptedReply::call("read_file", ask));
    let args = ["--preset", "refs", "--window", "20000"];
    let told = chatted.chat(&args, "read it\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let seen = chatted.main_calls().pop().unwrap();
    let id = ref_in(&outputs(&seen)[0]).unwrap();
    let ask = json!({"ref_id": id, "offset": 0, "limit": 1_500});
    chatted
        .answers
        .say(ScriptedReply::call("tool_output_cache", ask));
    let told = chatted.chat(&[&args[..], &["--resume"]].concat(), "go on\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let seen = chatted.main_calls().pop().unwrap();
    let given = outputs(&seen).pop().unwrap();
    assert!(given.lines().count() < 1_000, "{}", given.lines().count());
    let end = given.lines().last().unwrap();
    assert!(
        end.contains("tool_output_cache(") && end.contains("\"offset\":"),
        "{end}"
    );
}
