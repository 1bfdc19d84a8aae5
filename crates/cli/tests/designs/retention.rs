//! Preset `retention`: above a budget of input tokens old outputs keep their first characters.

use std::sync::Arc;

use serde_json::json;
use trimtab_model::{Dialect, Usage};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::ReceivedRequest;

use crate::chatted::Chatted;
use crate::proxied::Proxied;
use crate::scripted::{all_text, outputs, ref_in, without_way_back};

const MARKER: &str = "\n\n[truncated for context management]";

async fn proxied(dialect: Dialect, args: &[&str]) -> Proxied {
    Proxied::start(dialect, &[&["--preset", "retention"], args].concat()).await
}

/// An output of so many characters.
fn output(mark: &str, chars: usize) -> String {
    let text = format!("{mark} {}", "é".repeat(chars));
    text.chars().take(chars).collect()
}

/// Two rounds, and answers that report so much input.
fn reported(talk: &mut Proxied, input: u64) {
    talk.round(&[&output("OLD", 900)]);
    talk.round(&[&output("NEWER", 900)]);
    talk.answers.report_input(input);
}

/// The first request in which something is cut.
async fn first_cut(talk: &Proxied) -> Arc<ReceivedRequest> {
    talk.send_until_says("[truncated for context management]")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn old_outputs_are_cut_when_input_is_above_the_budget() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &[]).await;
        reported(&mut talk, 40_001);
        let seen = first_cut(&talk).await;
        let shown = outputs(&seen);
        assert_eq!(
            without_way_back(&shown[0]),
            format!("{}{MARKER}", output("OLD", 500)),
            "{dialect}"
        );
        assert_eq!(shown[1], output("NEWER", 900), "{dialect}: the most recent");
        assert_eq!(talk.own_calls().len(), 0, "nothing is summarised");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn input_at_the_budget_changes_nothing() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    reported(&mut talk, 40_000);
    let seen = talk.send_some_times().await;
    assert!(!all_text(&seen).contains("truncated for context management"));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_from_the_cache_counts() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    reported(&mut talk, 100);
    talk.answers.report(Usage {
        input: 100,
        cache_read: 45_000,
        ..Usage::default()
    });
    first_cut(&talk).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn budget_of_zero_disables_it() {
    for setting in [
        "ageing.prefix.input_budget=0",
        "ageing.prefix.enabled=false",
    ] {
        let mut talk = proxied(Dialect::Messages, &["--set", setting]).await;
        reported(&mut talk, 90_000);
        let seen = talk.send_some_times().await;
        assert!(!all_text(&seen).contains("truncated for context management"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn budget_and_kept_characters_can_be_set() {
    let args = [
        "--set",
        "ageing.prefix.input_budget=1000",
        "--set",
        "ageing.prefix.chars=20",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    reported(&mut talk, 1_001);
    let seen = first_cut(&talk).await;
    assert_eq!(
        without_way_back(&outputs(&seen)[0]),
        format!("{}{MARKER}", output("OLD", 20))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_outputs_of_the_most_recent_message_stay() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    talk.round(&[&output("A", 900), &output("B", 900)]);
    talk.round(&[&output("C", 900), &output("D", 900)]);
    talk.answers.report_input(50_000);
    let seen = first_cut(&talk).await;
    let is_cut: Vec<bool> = outputs(&seen)
        .iter()
        .map(|text| text.ends_with(MARKER))
        .collect();
    assert_eq!(is_cut, [true, true, false, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_of_the_user_in_parts_is_no_output() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    reported(&mut talk, 50_000);
    let messages = talk.body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "yes?"}));
    messages.push(json!({"role": "user", "content": [{"type": "text", "text": "go on"}]}));
    let seen = first_cut(&talk).await;
    assert_eq!(outputs(&seen)[1], output("NEWER", 900));
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_outputs_are_not_cut_again() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    reported(&mut talk, 40_001);
    let seen = first_cut(&talk).await;
    let first = outputs(&seen)[0].clone();
    for number in 0..3 {
        talk.round(&[&format!("ok {number}")]);
        let seen = talk.send_some_times().await;
        assert_eq!(outputs(&seen)[0], first, "{}", all_text(&seen));
        assert_eq!(first.matches(MARKER).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_outputs_stay() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    talk.round(&[&output("SHORT", 500), &output("LONG", 900)]);
    talk.round(&["x"]);
    talk.answers.report_input(50_000);
    let seen = first_cut(&talk).await;
    let shown = outputs(&seen);
    assert_eq!(shown[0], output("SHORT", 500));
    assert!(shown[1].ends_with(MARKER));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_a_marker_would_make_longer_stays() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    talk.round(&[&output("LONGER", 510), &output("LONG", 900)]);
    talk.round(&["x"]);
    talk.answers.report_input(50_000);
    let seen = first_cut(&talk).await;
    assert_eq!(outputs(&seen)[0], output("LONGER", 510));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_with_an_image_stays() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    talk.round(&["x"]);
    let image = json!([{"type": "text", "text": output("SEEN", 900)},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]);
    talk.body["messages"][2]["content"][0]["content"] = image.clone();
    talk.round(&[&output("OLD", 900)]);
    talk.round(&["y"]);
    talk.answers.report_input(50_000);
    let seen = first_cut(&talk).await;
    assert_eq!(seen.json()["messages"][2]["content"][0]["content"], image);
}

#[tokio::test(flavor = "multi_thread")]
async fn short_conversation_reaches_the_provider_as_it_came() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    talk.answers.report_input(30_000);
    for number in 0..4 {
        let text = output("X", 5_000);
        let seen = talk.send_round(&[&text, &format!("{number}")]).await;
        assert_eq!(seen.json()["messages"], talk.body["messages"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_output_names_the_call_that_gives_it_back() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &[]).await;
        reported(&mut talk, 40_001);
        let seen = first_cut(&talk).await;
        let id = ref_in(&outputs(&seen)[0]).unwrap();
        talk.answers.say(ScriptedReply::call(
            "tool_output_cache",
            json!({"ref_id": id}),
        ));
        let seen = talk.send().await;
        let given = outputs(&seen).last().unwrap().clone();
        assert!(given.contains(&output("OLD", 900)), "{dialect}: {given}");
    }
}

#[test]
fn chat_tells_what_was_cut_and_why() {
    let chatted = Chatted::new(None);
    chatted.file("a.txt", &"first file\n".repeat(100));
    chatted.file("b.txt", &"second file\n".repeat(100));
    let read = |name: &str, input: u64| ScriptedReply {
        usage: Some(Usage {
            input,
            ..Usage::default()
        }),
        ..ScriptedReply::call("read_file", json!({"path": name}))
    };
    chatted.answers.say(read("a.txt", 2_000));
    chatted.answers.say(read("b.txt", 4_000));
    chatted.answers.report_input(45_231);
    let told = chatted.chat(
        &["--preset", "retention", "--window", "200k"],
        "read both\nand now?\n",
    );
    let note = "Note: Compacted 1 old tool result(s) \u{2014} input tokens (45,231) exceeded budget (40,000)";
    let mut lines = told.stderr.lines();
    assert!(lines.any(|line| line.trim() == note), "{}", told.stderr);
    let calls = chatted.main_calls();
    assert!(outputs(calls.last().unwrap())[0].ends_with(MARKER));
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_one_text_is_cut_like_a_string() {
    let mut talk = proxied(Dialect::Messages, &[]).await;
    talk.round(&["x"]);
    let list = json!([{"type": "text", "text": output("OLD", 900)}]);
    talk.body["messages"][2]["content"][0]["content"] = list;
    talk.round(&["y"]);
    talk.answers.report_input(50_000);
    let seen = first_cut(&talk).await;
    assert_eq!(
        without_way_back(&outputs(&seen)[0]),
        format!("{}{MARKER}", output("OLD", 500))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_one_text_stays_in_other_dialects() {
    for dialect in [Dialect::Chat, Dialect::Responses] {
        let mut talk = proxied(dialect, &[]).await;
        talk.round(&["x"]);
        let (items, kind, field) = match dialect {
            Dialect::Chat => ("messages", "text", "content"),
            _ => ("input", "input_text", "output"),
        };
        let items = talk.body[items].as_array_mut().unwrap();
        let last = items.last_mut().unwrap();
        last[field] = json!([{"type": kind, "text": output("LIST", 900)}]);
        talk.round(&[&output("STRING", 900)]);
        talk.round(&["y"]);
        talk.answers.report_input(50_000);
        let seen = first_cut(&talk).await;
        let shown = outputs(&seen);
        assert_eq!(shown[0], output("LIST", 900), "{dialect}");
        assert!(shown[1].ends_with(MARKER), "{dialect}: {}", shown[1]);
    }
}
