//! Preset `checkpoint`: outputs lose their middle; user messages and a summary stay.

use std::sync::Arc;

use serde_json::json;
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, RequestOutcome};

use crate::chatted::Chatted;
use crate::proxied::Proxied;
use crate::scripted::{all_text, failing, lines, outputs, ref_in, refused_as_too_long};
use crate::talk::{TASK, log};

const PREFIX: &str = "Another language model started this task and produced\na summary. Use this to build on existing work and avoid duplication:";

async fn proxied(dialect: Dialect, args: &[&str]) -> Proxied {
    Proxied::start(dialect, &[&["--preset", "checkpoint"], args].concat()).await
}

/// Lines of 40 characters, of which the last may be shorter.
fn of_chars(chars: usize) -> String {
    let line = |at: usize| format!("{at:039}\n");
    let text: String = (0..=chars / 40).map(line).collect();
    text.chars().take(chars).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_above_the_limit_keeps_its_start_and_its_end() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &[]).await;
        // 5,000 tokens of four characters, and a fifth more.
        let text = of_chars(30_000);
        let seen = talk.send_round(&[&of_chars(24_000), &text]).await;
        let shown = outputs(&seen);
        assert_eq!(shown[0], of_chars(24_000), "{dialect}: at the limit");
        let body = shown[1]
            .strip_prefix("Total output lines: 751\n\n")
            .unwrap();
        let (start, end) = body
            .split_once("\u{2026}1500 tokens truncated\u{2026}")
            .unwrap();
        assert_eq!(start, &text[..12_000], "{dialect}");
        assert!(
            text.ends_with(end.split("\n[").next().unwrap()),
            "{dialect}: {end}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_one_line_has_no_count_of_lines() {
    let mut talk = proxied(Dialect::Chat, &["--set", "views.default.max=100"]).await;
    let seen = talk.send_round(&[&"z".repeat(2_000)]).await;
    let shown = outputs(&seen).remove(0);
    assert!(
        shown.starts_with("zzz") && shown.contains("380 tokens truncated"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_a_marker_would_make_longer_stays() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    let text = "z".repeat(24_010);
    let seen = talk.send_round(&[&text]).await;
    assert_eq!(outputs(&seen), [text]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_output_names_the_call_that_gives_it_back() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "400k"]).await;
        talk.expect_cut_output_is_given_back().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn truncation_can_be_by_bytes_or_none() {
    let text = of_chars(30_000);
    let bytes = ["views.default.unit=bytes", "views.default.max=20000"];
    let bytes = ["--set", bytes[0], "--set", bytes[1]];
    let mut talk = proxied(Dialect::Chat, &bytes).await;
    let seen = talk.send_round(&[&text, &of_chars(24_000)]).await;
    let shown = outputs(&seen);
    assert!(
        shown[0].contains("\u{2026}6000 chars truncated\u{2026}"),
        "{}",
        shown[0]
    );
    assert_eq!(shown[1], of_chars(24_000));
    let none = ["--set", "views.default={shape='whole'}"];
    let mut talk = proxied(Dialect::Chat, &none).await;
    let seen = talk.send_round(&[&text]).await;
    assert_eq!(outputs(&seen), [text]);
}

#[tokio::test(flavor = "multi_thread")]
async fn split_can_be_60_to_40() {
    let args = [
        "--set",
        "views.default.head_percent=60",
        "--set",
        "views.default.max=1000",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let text = of_chars(9_000);
    let seen = talk.send_round(&[&text]).await;
    let shown = outputs(&seen).remove(0);
    // 1,200 tokens of four characters: 4,800, of which 2,880 are from the start.
    assert!(
        shown.contains(&format!("\n\n{}\u{2026}", &text[..2_880])),
        "{shown}"
    );
    assert!(shown.contains(&text[text.len() - 1_920..]), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn user_messages_are_not_truncated_when_they_come() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    let long = of_chars(40_000);
    talk.turn("yes?", &long);
    let seen = talk.send().await;
    assert!(all_text(&seen).contains(&long));
}

/// Three turns with rounds; compacted at the last, which has a small limit.
async fn compacted(talk: &mut Proxied) -> Arc<ReceivedRequest> {
    talk.round(&[&format!("FIRST-OUTPUT\n{}", log(150))]);
    talk.turn("first answer", "SECOND-QUESTION");
    talk.round(&[&format!("SECOND-OUTPUT\n{}", log(150))]);
    talk.turn("second answer", "THIRD-QUESTION");
    let shows = |output: &String| output.contains("FIRST-OUTPUT");
    talk.send_until(|seen| !outputs(seen).iter().any(shows))
        .await
}

const SMALL: [&str; 2] = ["--set", "compaction.when=['log > 3000','messages >= 100']"];

#[tokio::test(flavor = "multi_thread")]
async fn compacted_history_is_system_then_user_messages_then_summary() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &SMALL).await;
        let seen = compacted(&mut talk).await;
        let shown = lines(&seen);
        let place = |text: &str| {
            let found = shown.iter().position(|line| line.contains(text));
            found.unwrap_or_else(|| panic!("{dialect}: no {text} in {shown:#?}"))
        };
        let order = [TASK, "SECOND-QUESTION", "THIRD-QUESTION", "SHORT-SUMMARY"];
        assert!(order.map(place).is_sorted(), "{dialect}: {shown:#?}");
        assert!(
            shown[place("SHORT-SUMMARY")].contains(PREFIX),
            "{dialect}: {shown:#?}"
        );
        for gone in ["FIRST-OUTPUT", "WORDS-1", "first answer", "SECOND-OUTPUT"] {
            assert!(!all_text(&seen).contains(gone), "{dialect}: {gone}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_is_asked_with_the_prompt_of_the_design() {
    let mut talk = proxied(Dialect::Chat, &SMALL).await;
    compacted(&mut talk).await;
    let asked = all_text(&talk.own_calls()[0]);
    for part in [
        "You are performing a CONTEXT CHECKPOINT COMPACTION. \nCreate a handoff summary for another LLM that will resume the task.",
        "- Current progress and key decisions made",
        "- Important context, constraints, or user preferences",
        "- What remains to be done (clear next steps)",
        "- Any critical data needed to continue",
        "Be concise and focused on helping the next LLM seamlessly continue.",
    ] {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_reads_the_task_in_the_words_of_the_user() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &SMALL).await;
        compacted(&mut talk).await;
        let asked = all_text(&talk.own_calls()[0]);
        for said in [TASK, "SECOND-QUESTION", "THIRD-QUESTION", "FIRST-OUTPUT"] {
            assert!(asked.contains(said), "{dialect}: {said} is not in {asked}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prompt_and_prefix_can_be_set() {
    let args = [
        &SMALL[..],
        &[
            "--set",
            "compaction.prompt.summary=OUR-PROMPT",
            "--set",
            "compaction.placement={placement='message',prefix='OUR-PREFIX '}",
        ],
    ]
    .concat();
    let mut talk = proxied(Dialect::Chat, &args).await;
    let seen = compacted(&mut talk).await;
    assert!(all_text(&talk.own_calls()[0]).contains("OUR-PROMPT"));
    let text = all_text(&seen);
    assert!(
        text.contains("user: OUR-PREFIX") && text.contains("SHORT-SUMMARY"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn newest_user_messages_stay_up_to_their_budget() {
    let args = [
        &SMALL[..],
        &[
            "--set",
            "compaction.keep=[{keep='user_messages',tokens=100},{keep='open_calls'}]",
        ],
    ]
    .concat();
    let mut talk = proxied(Dialect::Chat, &args).await;
    talk.round(&[&format!("FIRST-OUTPUT\n{}", log(150))]);
    talk.turn("a1", &format!("LONG-AGO {}", "word ".repeat(100)));
    talk.round(&[&log(150)]);
    talk.turn("a2", "RECENT-QUESTION");
    talk.turn("a3", "NEWEST-QUESTION");
    let seen = talk
        .send_until(|seen| !all_text(seen).contains("FIRST-OUTPUT"))
        .await;
    let text = all_text(&seen);
    assert!(
        text.contains("RECENT-QUESTION") && text.contains("NEWEST-QUESTION"),
        "{text}"
    );
    assert!(!text.contains("LONG-AGO"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mark_of_an_aborted_turn_stays() {
    let keep = "compaction.keep=[{keep='user_messages',tokens=30},{keep='open_calls'}]";
    let args = [&SMALL[..], &["--set", keep]].concat();
    let mut talk = proxied(Dialect::Chat, &args).await;
    talk.round(&[&format!("FIRST-OUTPUT\n{}", log(150))]);
    let aborted = format!(
        "<turn-aborted> the user stopped this: {}",
        "why ".repeat(60)
    );
    talk.turn("a1", &aborted);
    talk.round(&[&log(150)]);
    talk.turn("a2", "NEWEST-QUESTION");
    let seen = talk
        .send_until(|seen| !all_text(seen).contains("FIRST-OUTPUT"))
        .await;
    assert!(all_text(&seen).contains(&aborted), "{}", all_text(&seen));
}

#[tokio::test(flavor = "multi_thread")]
async fn rounds_of_protected_tools_stay_behind_the_summary() {
    for (args, stays) in [
        (
            vec![
                "--set",
                "compaction.keep=[{keep='protected_tools',tools=['read_*']}]",
            ],
            true,
        ),
        (vec![], false),
    ] {
        let mut talk = proxied(Dialect::Chat, &[&SMALL[..], &args].concat()).await;
        talk.round(&["TODO-LIST: one, two"]);
        talk.turn("a1", "SECOND-QUESTION");
        talk.turn(&log(300), "THIRD-QUESTION");
        let seen = talk
            .send_until(|seen| all_text(seen).contains("SHORT-SUMMARY"))
            .await;
        let shown = lines(&seen);
        let place = |text: &str| shown.iter().position(|line| line.contains(text));
        assert_eq!(place("TODO-LIST").is_some(), stays, "{shown:#?}");
        if stays {
            assert!(place("SHORT-SUMMARY") < place("TODO-LIST"), "{shown:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn talk_without_tools_becomes_the_messages_of_the_user_and_a_summary() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &[&SMALL[..], &["--window", "100k"]].concat()).await;
        for number in 1..=4 {
            let answer = format!("ANSWER-{number} {}", "word ".repeat(700));
            talk.turn(&answer, &format!("QUESTION-{number}"));
        }
        let seen = talk.send_until_says("SHORT-SUMMARY").await;
        let shown = lines(&seen);
        let order = [
            TASK,
            "QUESTION-1",
            "QUESTION-2",
            "QUESTION-3",
            "QUESTION-4",
            PREFIX,
        ];
        let place = |text: &str| shown.iter().position(|line| line.contains(text));
        let places = order.map(|text| place(text).unwrap_or_else(|| panic!("{text}: {shown:#?}")));
        assert!(places.is_sorted(), "{dialect}: {shown:#?}");
        assert!(place("ANSWER-").is_none(), "{dialect}: {shown:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_messages_are_behind_a_ref_in_the_summary() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &SMALL).await;
        let seen = compacted(&mut talk).await;
        let summary = lines(&seen);
        let summary = summary.iter().find(|line| line.contains("SHORT-SUMMARY"));
        let id = ref_in(summary.unwrap()).unwrap();
        let asks = json!({"ref_id": id, "pattern": "FIRST-OUTPUT"});
        let found = talk.read_back("tool_output_cache_grep", asks).await;
        assert!(found.contains("FIRST-OUTPUT"), "{dialect}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn second_compaction_replaces_the_summary() {
    let mut talk = proxied(Dialect::Chat, &SMALL).await;
    talk.answers
        .summarise(ScriptedReply::text("<summary>SUMMARY-A</summary>"));
    compacted(&mut talk).await;
    talk.answers
        .summarise(ScriptedReply::text("<summary>SUMMARY-B</summary>"));
    talk.round(&[&log(300)]);
    talk.turn("third answer", "FOURTH-QUESTION");
    let seen = talk.send_until_says("SUMMARY-B").await;
    let text = all_text(&seen);
    assert!(!text.contains("SUMMARY-A"), "{text}");
    assert_eq!(text.matches(PREFIX).count(), 1, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn number_of_messages_makes_it_time() {
    let mut talk = proxied(
        Dialect::Chat,
        &["--set", "compaction.when=['log > 60000','messages >= 9']"],
    )
    .await;
    talk.round(&[&log(100)]);
    talk.round(&[&log(99)]);
    talk.turn("a1", "q2");
    let seen = talk.send_some_times().await;
    assert_eq!((seen.messages, talk.own_calls().len()), (8, 0));
    talk.turn("a2", "q3");
    talk.send_until_says("SHORT-SUMMARY").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_that_fails_is_replaced_by_a_summary_that_needs_no_model() {
    let mut talk = proxied(Dialect::Chat, &SMALL).await;
    talk.answers.summarise(failing());
    let seen = compacted(&mut talk).await;
    let text = all_text(&seen);
    for kept in [TASK, "SECOND-QUESTION", "THIRD-QUESTION", PREFIX] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_call_is_answered_with_aborted_and_an_orphan_goes() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    talk.round(&["ANSWERED"]);
    let messages = talk.body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "open", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}]}));
    messages.push(json!({"role": "user", "content": "never mind"}));
    messages.push(json!({"role": "tool", "tool_call_id": "nobody", "content": "ORPHAN"}));
    messages.push(json!({"role": "user", "content": "go on"}));
    let seen = talk.send().await;
    assert_eq!(outputs(&seen), ["ANSWERED", "aborted"]);
    assert!(!all_text(&seen).contains("ORPHAN"));
}

/// A conversation that the provider refuses as too long.
async fn overflowing(args: &[&str], window: u64) -> Proxied {
    let args = [&["--preset", "checkpoint", "--window", "100k"], args].concat();
    let mut talk = Proxied::in_front_of(Dialect::Chat, &args, Some(window)).await;
    for number in 1..=8 {
        talk.round(&[&log(60).replace("worker", &format!("worker_{number}"))]);
    }
    talk
}

#[tokio::test(flavor = "multi_thread")]
async fn overflow_is_recovered_from_by_removing_the_oldest_with_their_pairs() {
    let talk = overflowing(&[], 4_000).await;
    let seen = talk.send().await;
    let requests = talk.upstream.requests();
    assert!(
        requests
            .iter()
            .any(|one| one.outcome == RequestOutcome::Overflow)
    );
    assert!(!all_text(&seen).contains("worker_1 "), "the oldest goes");
    assert!(all_text(&seen).contains(TASK));
}

#[tokio::test(flavor = "multi_thread")]
async fn overflow_by_a_few_tokens_leaves_most_of_the_history() {
    for dialect in Dialect::ALL {
        let long = |talk: &mut Proxied| {
            for number in 0..24 {
                let words = "the import reads a file and writes a row for it. ".repeat(25);
                talk.round(&[&format!("OUTPUT-{number} {words}")]);
            }
        };
        let mut free = proxied(dialect, &[]).await;
        long(&mut free);
        let limit = free.send().await.tokens - 100;
        let args = ["--preset", "checkpoint", "--window", "200000"];
        let mut talk = Proxied::in_front_of(dialect, &args, Some(limit)).await;
        long(&mut talk);
        let sent = talk.send().await;
        assert!(sent.tokens <= limit, "{dialect}");
        assert!(
            sent.tokens >= limit / 2,
            "{dialect}: {} tokens of {limit}",
            sent.tokens
        );
        assert!(all_text(&sent).contains("OUTPUT-23"), "{dialect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overflow_is_retried_three_times_at_most() {
    let talk = overflowing(&[], 300).await;
    let (status, said) = talk.try_send().await;
    assert_ne!(status, 200, "{said}");
    let requests = talk.upstream.requests().len();
    assert!((2..=4).contains(&requests), "{requests} requests");
    let talk = overflowing(&["--set", "recovery.retries=0"], 4_000).await;
    assert_ne!(talk.try_send().await.0, 200);
    assert_eq!(talk.upstream.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_is_made_again_three_times_whatever_happened_to_calls_before() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "100k"]).await;
        for number in 0..30 {
            talk.round(&[&format!("OUTPUT-{number} {}", log(8))]);
        }
        // The first call fails for good, and so the next one begins anew.
        for _ in 0..4 {
            talk.answers.say(refused_as_too_long());
        }
        assert_ne!(talk.try_send().await.0, 200, "{dialect}");
        assert_eq!(talk.upstream.requests().len(), 4, "{dialect}");
        talk.answers.say(refused_as_too_long());
        let (status, said) = talk.try_send().await;
        assert_eq!(status, 200, "{dialect}: {said}");
        let requests = talk.upstream.requests();
        assert_eq!(requests.len(), 6, "{dialect}");
        let text = all_text(requests.last().unwrap());
        assert!(text.contains(TASK) && text.contains("OUTPUT-29"), "{text}");
    }
}

#[test]
fn chat_compacts_by_hand_and_tells_what_was_saved() {
    let chatted = Chatted::new(None);
    chatted.file("notes.txt", &log(200));
    chatted.answers.say(ScriptedReply::call(
        "read_file",
        json!({"path": "notes.txt"}),
    ));
    let told = chatted.chat(
        &["--preset", "checkpoint"],
        "FIRST-QUESTION\nSECOND-QUESTION\n/compact\nTHIRD-QUESTION\n",
    );
    assert_eq!(told.code, 0, "{}", told.stderr);
    let said = format!("{}{}", told.stdout, told.stderr);
    assert!(said.contains("saved") && said.contains("tokens"), "{said}");
    let calls = chatted.main_calls();
    let shown = lines(calls.last().unwrap());
    let place = |text: &str| shown.iter().position(|line| line.contains(text));
    assert!(
        place("FIRST-QUESTION").is_some() && place("FIRST-QUESTION") < place(PREFIX),
        "{shown:#?}"
    );
    assert!(place(PREFIX) < place("THIRD-QUESTION"), "{shown:#?}");
    assert!(all_text(&chatted.own_calls()[0]).contains("CONTEXT CHECKPOINT COMPACTION"));
}

#[test]
fn every_compaction_goes_with_a_warning() {
    let chatted = Chatted::new(None);
    chatted.file("notes.txt", &log(300));
    let read = || ScriptedReply::call("read_file", json!({"path": "notes.txt"}));
    chatted.answers.say(read());
    chatted.answers.say(ScriptedReply::text("first answer"));
    chatted.answers.say(read());
    let told = chatted.chat(
        &["--preset", "checkpoint"],
        "FIRST-QUESTION\n/compact\nSECOND-QUESTION\n/compact\n",
    );
    assert_eq!(told.code, 0, "{}", told.stderr);
    let said = format!("{}{}", told.stdout, told.stderr);
    for times in ["once", "2 times"] {
        let warning = format!("this conversation was compacted {times}; details fade");
        assert!(said.contains(&warning), "{said}");
    }
}

/// Outputs that alone exceed the limit of the condition.
fn large_output() -> String {
    format!("NEWEST-OUTPUT\n{}", log(250))
}

#[test]
fn chat_shows_the_newest_outputs_once_before_they_are_compacted() {
    let chatted = Chatted::new(None);
    chatted.file("a.log", &large_output());
    let read = ScriptedReply::call("read_file", json!({"path": "a.log"}));
    chatted.answers.say(ScriptedReply::text("first answer"));
    chatted.answers.say(read);
    let args = [&["--preset", "checkpoint"], &SMALL[..]].concat();
    let told = chatted.chat(&args, "FIRST-QUESTION\nSECOND-QUESTION\nTHIRD-QUESTION\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let calls = chatted.main_calls();
    let shows: Vec<bool> = { calls.iter() }
        .map(|call| all_text(call).contains("NEWEST-OUTPUT"))
        .collect();
    assert_eq!(
        shows,
        [false, false, true, false],
        "{}",
        all_text(&calls[3])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_shows_the_newest_outputs_once_before_they_are_compacted() {
    let wait = ["--set", "proxy.compaction=wait"];
    let args = [&SMALL[..], &wait].concat();
    let mut talk = proxied(Dialect::Chat, &args).await;
    talk.turn("first answer", "SECOND-QUESTION");
    let seen = talk.send_round(&[&large_output()]).await;
    assert!(all_text(&seen).contains("NEWEST-OUTPUT"));
    talk.turn("second answer", "THIRD-QUESTION");
    let seen = talk.send().await;
    let text = all_text(&seen);
    assert!(
        !text.contains("NEWEST-OUTPUT") && text.contains("SHORT-SUMMARY"),
        "{text}"
    );
}
