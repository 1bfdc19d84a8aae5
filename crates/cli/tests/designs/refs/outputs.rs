//! How outputs are shown, trimmed and read back.

use serde_json::json;
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;

use super::proxied;
use crate::chatted::Chatted;
use crate::proxied::Proxied;
use crate::scripted::{all_text, lines, outputs, ref_in};
use crate::talk::log;

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
async fn json_document_on_one_line_is_cut_by_its_structure() {
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
async fn limits_of_a_message_and_of_a_line_can_be_set_by_their_names() {
    let args = ["--set", "maxMessageBytes=300", "--set", "maxLineLength=50"];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let seen = talk.send_round(&[&of_bytes(1_000)]).await;
    let shown = outputs(&seen).remove(0);
    let body = shown.split("\n\n[tool output truncated").next().unwrap();
    assert!(body.len() <= 300, "{shown}");
    assert!(!shown.contains(&"x".repeat(51)), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn switched_off_cache_leaves_outputs_as_they_came() {
    let args = ["--window", "400k", "--set", "toolOutputCache.enabled=false"];
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
    let mut talk = proxied(Dialect::Chat, &["--set", "contextBudgetTokens=1000"]).await;
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
        let args = ["--set", "contextBudgetTokens=1000"];
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
    let args = ["--set", "contextBudgetTokens=1000"];
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
fn chat_trims_old_outputs_and_the_model_reads_them_again() {
    let chatted = Chatted::new(None);
    let line = |row: usize| format!("row {row} of the log\n");
    let rows: String = (1..=300).map(line).collect();
    chatted.file("old.log", &rows);
    chatted.file("new.log", &log(100));
    let read = |name: &str| ScriptedReply::call("read_file", json!({"path": name}));
    chatted.answers.say(read("old.log"));
    chatted.answers.say(read("new.log"));
    let args = ["--preset", "refs", "--set", "contextBudgetTokens=1800"];
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
