//! When the history is replaced, and by what.

use serde_json::json;
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;

use super::{compacted, proxied, talk_until, used};
use crate::chatted::Chatted;
use crate::scripted::{all_text, lines, ref_in};
use crate::talk::{TASK, log};

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
    let settings = ["--set", "thresholdRatio=0.5"];
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
async fn number_of_kept_turns_can_be_set() {
    let args = ["--window", "10000", "--set", "retainLastTurns=2"];
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
    let args = [&args[..], &["--set", "retainLastTurns=0"]].concat();
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
