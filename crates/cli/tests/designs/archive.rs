//! Preset `archive`: old outputs are archived, recent messages stay by tokens.

use std::sync::Arc;

use serde_json::json;
use trimtab_model::{Dialect, Usage};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, RequestOutcome};

use crate::chatted::Chatted;
use crate::proxied::Proxied;
use crate::scripted::{
    UNKNOWN_MODEL, all_text, failing, lines, outputs, ref_in, reporting, without_way_back,
};
use crate::talk::{TASK, log};

async fn proxied(dialect: Dialect, args: &[&str]) -> Proxied {
    Proxied::start(dialect, &[&["--preset", "archive"], args].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn output_above_2000_lines_keeps_its_first_and_last_lines() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &[]).await;
        let line = |row: usize| format!("row {row}\n");
        let text: String = (1..=2_500).map(line).collect();
        let fits: String = (1..2_000).map(line).collect();
        let seen = talk.send_round(&[&fits, &text]).await;
        let shown = outputs(&seen);
        assert_eq!(shown[0], fits, "{dialect}");
        let shown = &shown[1];
        assert!(
            shown.starts_with("row 1\n") && shown.contains("\nrow 1000\n... [truncated "),
            "{shown}"
        );
        assert!(shown.contains(" lines] ...\nrow 150"), "{shown}");
        assert!(
            shown.contains("\n\n[tool output truncated: showing "),
            "{shown}"
        );
        let notice = shown.rsplit("[tool output truncated").next().unwrap();
        assert!(
            notice.contains(" lines, ") && notice.contains(" chars]"),
            "{notice}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_mode_keeps_the_first_lines() {
    let args = [
        "--set",
        "views.default.keep=head",
        "--set",
        "views.default.max_lines=10",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let line = |row: usize| format!("row {row}\n");
    let text: String = (1..=500).map(line).collect();
    let seen = talk.send_round(&[&text]).await;
    let shown = outputs(&seen).remove(0);
    assert!(
        shown.contains("row 10\n") && !shown.contains("row 500"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn output_above_its_bytes_or_characters_is_cut() {
    for setting in [
        "views.default.max_bytes=1000",
        "views.default.max_chars=1000",
    ] {
        let mut talk = proxied(Dialect::Chat, &["--set", setting]).await;
        let seen = talk.send_round(&[&log(200)]).await;
        let shown = without_way_back(&outputs(&seen)[0]);
        let body = shown.split("\n\n[tool output truncated: ").next().unwrap();
        assert!(body.len() <= 1_000, "{setting}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_a_notice_would_make_longer_stays() {
    let mut talk = proxied(Dialect::Chat, &["--window", "400k"]).await;
    let text = "z".repeat(51_210);
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
async fn huge_output_goes_to_a_file_that_is_named_with_its_digest() {
    let mut talk = proxied(Dialect::Chat, &["--window", "400k"]).await;
    let text = "é".repeat(204_801);
    let seen = talk.send_round(&[&text]).await;
    let shown = outputs(&seen).remove(0);
    assert!(
        shown.starts_with("[tool output too large: 204801 chars]\nSaved to: "),
        "{shown}"
    );
    let named = |label: &str| {
        let line = shown.lines().find_map(|line| line.strip_prefix(label));
        line.unwrap_or_else(|| panic!("no {label} in {shown}"))
            .to_owned()
    };
    let path = named("Saved to: ");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let summed = std::process::Command::new("sha256sum")
        .arg(&path)
        .output()
        .unwrap();
    let summed = String::from_utf8(summed.stdout).unwrap();
    assert!(summed.starts_with(&named("SHA256: ")), "{summed} {shown}");
    let id = ref_in(&shown).unwrap();
    talk.answers.say(ScriptedReply::call(
        "tool_output_cache",
        json!({"ref_id": id, "limit": 1}),
    ));
    let seen = talk.send().await;
    let given = outputs(&seen).last().unwrap().clone();
    assert!(given.contains("éééééé"), "{given}");
}

/// So many rounds, each sent, with outputs that are worth archiving; the last request.
async fn rounds(talk: &mut Proxied, count: usize) -> Arc<ReceivedRequest> {
    for number in 1..=count {
        talk.round(&[&format!("OUTPUT-{number:02}\n{}", log(60))]);
        talk.send().await;
    }
    talk.send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_outputs_are_archived_above_ten_visible_ones() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "400k"]).await;
        talk.answers.summarise(ScriptedReply::text("SUMMED-UP"));
        let seen = rounds(&mut talk, 10).await;
        assert_eq!(talk.own_calls().len(), 0, "{dialect}: ten");
        assert!(outputs(&seen)[0].starts_with("OUTPUT-01"), "{dialect}");
        talk.round(&[&format!("OUTPUT-11\n{}", log(60))]);
        let seen = talk
            .send_until(|seen| !all_text(seen).contains("OUTPUT-01"))
            .await;
        let shown = outputs(&seen);
        assert_eq!(shown[0], "[tool output archived]", "{dialect}");
        assert!(shown[1].starts_with("OUTPUT-02"), "{dialect}");
        let summary = lines(&seen)
            .into_iter()
            .find(|line| line.contains("[Tool output summary]"));
        let summary = summary.unwrap();
        assert!(
            summary.starts_with("user: [Tool output summary]\nTool: "),
            "{summary}"
        );
        assert!(
            summary.contains("Call ID: call_1_0\nStatus: ok\nSUMMED-UP"),
            "{summary}"
        );
        assert_eq!(
            talk.own_calls().len(),
            1,
            "{dialect}: one call for one output"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn number_of_visible_outputs_can_be_set_and_archiving_switched_off() {
    let mut talk = proxied(Dialect::Chat, &["--set", "ageing.archive.cutoff=3"]).await;
    let seen = rounds(&mut talk, 5).await;
    let seen = if outputs(&seen)[1].starts_with("OUTPUT") {
        talk.send_until(|seen| !all_text(seen).contains("OUTPUT-02"))
            .await
    } else {
        seen
    };
    assert!(outputs(&seen)[2].starts_with("OUTPUT-03"));
    for setting in [
        "ageing.archive.enabled=false",
        "ageing.archive.summaries=off",
    ] {
        let mut talk = proxied(Dialect::Chat, &["--set", setting]).await;
        let seen = rounds(&mut talk, 12).await;
        assert!(outputs(&seen)[0].starts_with("OUTPUT-01"), "{setting}");
        assert_eq!(talk.own_calls().len(), 0, "{setting}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heuristic_summaries_ask_no_model_and_are_short() {
    let args = [
        "--set",
        "ageing.archive.cutoff=2",
        "--set",
        "ageing.archive.summaries=heuristic",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let seen = rounds(&mut talk, 4).await;
    assert_eq!(talk.own_calls().len(), 0);
    let shown = lines(&seen);
    let summary = shown
        .iter()
        .find(|line| line.contains("[Tool output summary]"))
        .unwrap();
    assert!(summary.contains("OUTPUT-01"), "{summary}");
    // Besides the mark of a quotation in each line.
    let text = summary.replace("> ", "");
    assert!(text.chars().count() < 1_200, "{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn summaries_of_outputs_have_limits() {
    let mut talk = proxied(
        Dialect::Chat,
        &["--set", "ageing.archive.cutoff=1", "--window", "400k"],
    )
    .await;
    talk.answers
        .summarise(ScriptedReply::text("S".repeat(5_000)));
    talk.round(&[&format!("OUTPUT-01\n{}", log(900))]);
    talk.send().await;
    talk.round(&[&log(20)]);
    let seen = talk.send_until_says("[Tool output summary]").await;
    assert!(talk.own_calls()[0].last.chars().count() < 12_000 + 1_000);
    assert_eq!(
        all_text(&seen).matches('S').count() / 1_000,
        1,
        "1,200 characters at most"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_of_an_output_falls_back_to_an_excerpt() {
    let mut talk = proxied(Dialect::Chat, &["--set", "ageing.archive.cutoff=1"]).await;
    talk.answers.summarise(failing());
    let seen = rounds(&mut talk, 3).await;
    let seen = if all_text(&seen).contains("[Tool output summary]") {
        seen
    } else {
        talk.send_until_says("[Tool output summary]").await
    };
    assert!(all_text(&seen).contains("OUTPUT-01"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tiny_outputs_are_not_worth_a_call() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    for number in 0..15 {
        talk.send_round(&[&format!("ok {number}")]).await;
    }
    assert_eq!(talk.own_calls().len(), 0);
}

/// Turns of about 2,200 tokens each.
fn six_turns(talk: &mut Proxied) {
    for number in 1..=6 {
        talk.round(&[&format!("OUTPUT-{number:02}\n{}", log(220))]);
        talk.turn(&format!("ANSWER-{number}"), &format!("QUESTION-{number}"));
    }
}

/// The same; the first request with a summary.
async fn compacted(talk: &mut Proxied) -> Arc<ReceivedRequest> {
    six_turns(talk);
    talk.send_until_says("[Previous conversation summary]")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn compacted_history_is_a_summary_and_the_recent_messages() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(
            dialect,
            &[
                "--window",
                "28k",
                "--set",
                "compaction.keep=[{keep='recent_tokens',tokens=5000}]",
            ],
        )
        .await;
        let seen = compacted(&mut talk).await;
        let shown = lines(&seen);
        let place = |text: &str| shown.iter().position(|line| line.contains(text));
        let summary = &shown[place("SHORT-SUMMARY").unwrap()];
        assert!(
            summary.starts_with("user: [Previous conversation summary]\n\n"),
            "{summary}"
        );
        assert!(
            place("SHORT-SUMMARY") < place("QUESTION-6"),
            "{dialect}: {shown:#?}"
        );
        assert!(place("OUTPUT-01").is_none(), "{dialect}");
        assert!(place(TASK).is_some(), "{dialect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_messages_are_behind_a_ref_in_the_summary() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(
            dialect,
            &[
                "--window",
                "28k",
                "--set",
                "compaction.keep=[{keep='recent_tokens',tokens=5000}]",
            ],
        )
        .await;
        let seen = compacted(&mut talk).await;
        let summary = lines(&seen);
        let summary = summary.iter().find(|line| line.contains("SHORT-SUMMARY"));
        let id = ref_in(summary.unwrap()).unwrap();
        let asks = json!({"ref_id": id, "pattern": "OUTPUT-01"});
        let found = talk.read_back("tool_output_cache_grep", asks).await;
        assert!(found.contains("OUTPUT-01"), "{dialect}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_is_asked_for_as_a_structured_checkpoint() {
    let mut talk = proxied(
        Dialect::Chat,
        &[
            "--window",
            "28k",
            "--set",
            "compaction.keep=[{keep='recent_tokens',tokens=5000}]",
        ],
    )
    .await;
    compacted(&mut talk).await;
    let asked = all_text(&talk.own_calls()[0]);
    let sections = [
        "## Goal",
        "## Constraints",
        "## Progress",
        "## Decisions",
        "## Next steps",
        "## Critical context",
    ];
    let places = sections.map(|section| asked.find(section).unwrap_or_else(|| panic!("{section}")));
    assert!(places.is_sorted());
    assert!(asked.contains("<conversation>"), "{asked}");
    let label = "[Tool result read_log]: ";
    assert!(
        asked.contains(label) || asked.contains("[Tool result tool]: "),
        "{asked}"
    );
    for output in asked.split("[Tool result ").skip(1) {
        let text = output.split("\n\n[").next().unwrap();
        let text = text.split("</conversation>").next().unwrap();
        assert!(text.chars().count() < 1_900, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn number_of_recent_messages_is_kept_where_tokens_are_not_told() {
    let args = [
        "--window",
        "28k",
        "--set",
        "compaction.keep=[{keep='recent_messages',messages=3}]",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let seen = compacted(&mut talk).await;
    let shown = lines(&seen);
    let summary = shown
        .iter()
        .position(|line| line.contains("SHORT-SUMMARY"))
        .unwrap();
    assert!(shown.len() - summary - 1 <= 4, "{shown:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_compacted_where_it_is_switched_off() {
    let mut talk = proxied(
        Dialect::Chat,
        &["--window", "28k", "--set", "compaction.auto=false"],
    )
    .await;
    six_turns(&mut talk);
    talk.send_some_times().await;
    assert_eq!(talk.own_calls().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_that_fails_or_says_nothing_changes_nothing_while_it_fits() {
    for reply in [
        failing(),
        ScriptedReply::text("<summary></summary>"),
        ScriptedReply::text(" "),
    ] {
        let mut talk = proxied(Dialect::Chat, &["--window", "28k"]).await;
        talk.answers.summarise(reply);
        six_turns(&mut talk);
        let seen = talk.send_some_times().await;
        assert!(all_text(&seen).contains("OUTPUT-01"), "{}", all_text(&seen));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overflow_is_recovered_from_by_one_compaction() {
    let args = [
        "--preset",
        "archive",
        "--window",
        "100k",
        "--set",
        "compaction.keep=[{keep='recent_tokens',tokens=4000}]",
    ];
    let mut talk = Proxied::in_front_of(Dialect::Chat, &args, Some(12_000)).await;
    six_turns(&mut talk);
    let seen = talk.send().await;
    assert!(all_text(&seen).contains("[Previous conversation summary]"));
    let requests = talk.upstream.requests();
    let refused = requests
        .iter()
        .filter(|one| one.outcome == RequestOutcome::Overflow);
    assert_eq!(refused.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn overflow_is_recovered_from_although_the_summariser_fails() {
    let args = ["--preset", "archive", "--window", "100k"];
    let mut talk = Proxied::in_front_of(Dialect::Chat, &args, Some(12_000)).await;
    talk.answers.summarise(failing());
    six_turns(&mut talk);
    let seen = talk.send().await;
    let text = all_text(&seen);
    assert!(text.contains(TASK) && text.contains("QUESTION-6"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_outputs_among_the_recent_messages_are_told_in_a_digest() {
    let args = [
        "--window",
        "28k",
        "--set",
        "ageing.archive.cutoff=1",
        "--set",
        "compaction.digest.cutoff=1",
        "--set",
        "ageing.archive.summaries=off",
        "--set",
        "compaction.keep=[{keep='recent_tokens',tokens=5500}]",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    let seen = compacted(&mut talk).await;
    let text = all_text(&seen);
    assert!(text.contains("[Compaction tool digest]"), "{text}");
    let digest = text.rsplit("[Compaction tool digest]").next().unwrap();
    assert!(digest.contains("(ok): "), "{digest}");
}

#[test]
fn chat_cuts_archives_and_tells_it() {
    let chatted = Chatted::new(None);
    chatted.answers.summarise(ScriptedReply::text("SUMMED-UP"));
    for number in 0..4 {
        chatted.file(&format!("{number}.log"), &log(60 + number));
        chatted.answers.say(ScriptedReply::call(
            "read_file",
            json!({"path": format!("{number}.log")}),
        ));
    }
    let args = [
        "--preset",
        "archive",
        "--window",
        "100k",
        "--set",
        "ageing.archive.cutoff=2",
    ];
    let events = chatted.events(&args, &["read them all"]);
    let calls = chatted.main_calls();
    let text = all_text(calls.last().unwrap());
    assert!(
        text.contains("[Tool output summary]\nTool: read_file\n"),
        "{text}"
    );
    assert!(text.contains("SUMMED-UP"), "{text}");
    assert!(
        events.iter().any(|one| one["type"] == "summarising"),
        "{events:#?}"
    );
}

#[test]
fn chat_tells_why_a_compaction_changed_nothing() {
    for (reply, why) in [
        (failing(), "failed to generate summary"),
        (ScriptedReply::text(" "), "the summary is empty"),
        (
            ScriptedReply::text("<summary></summary>"),
            "the summary is empty",
        ),
    ] {
        let chatted = Chatted::new(None);
        chatted.answers.summarise(reply);
        for _ in 0..3 {
            let words = "word ".repeat(800);
            chatted.answers.say(ScriptedReply::text(words));
        }
        chatted.answers.report_input(20_000);
        let args = ["--preset", "archive", "--window", "30000"];
        let keep = [
            "--set",
            "compaction.keep=[{keep='recent_tokens',tokens=1000}]",
        ];
        let events = chatted.events(&[&args[..], &keep].concat(), &["Q1", "Q2", "Q3"]);
        let begun = events.iter().find(|one| one["type"] == "summarising");
        assert!(begun.unwrap()["messages_before"].is_u64(), "{events:#?}");
        let ended = events.iter().find(|one| one["kind"] == "no_op").unwrap();
        assert!(ended["note"].as_str().unwrap().contains(why), "{ended}");
        assert_eq!(ended["messages_before"], ended["messages_after"], "{ended}");
    }
}

/// An answer of about 5,000 tokens.
fn long_answer() -> String {
    "word ".repeat(4_000)
}

/// With a window of 40,000 tokens, a compaction starts at 23,616: the input and the answer that are
/// reported, each once.
const BORDERS: [(u64, bool); 2] = [(18_615, false), (18_616, true)];

#[test]
fn chat_counts_the_newest_answer_once() {
    for (input, compacts) in BORDERS {
        let chatted = Chatted::new(None);
        for _ in 0..3 {
            chatted.answers.say(reporting(long_answer(), 1_000, 5_000));
        }
        chatted.answers.say(reporting(long_answer(), input, 5_000));
        let args = ["--preset", "archive", "--window", "40000"];
        let told = chatted.chat(&args, "A\nB\nC\nD\n");
        assert_eq!(told.code, 0, "{}", told.stderr);
        assert_eq!(!chatted.own_calls().is_empty(), compacts, "{input}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_counts_the_newest_answer_once() {
    for (input, compacts) in BORDERS {
        let mut talk = proxied(Dialect::Chat, &["--window", "40000"]).await;
        for question in ["B", "C", "D"] {
            talk.turn(&long_answer(), question);
        }
        talk.answers.say(reporting(long_answer(), input, 5_000));
        talk.send().await;
        if compacts {
            talk.send_until(|_| !talk.own_calls().is_empty()).await;
        } else {
            talk.send_some_times().await;
            assert_eq!(talk.own_calls().len(), 0, "{input}");
        }
    }
}

#[test]
fn context_shows_the_number_that_decides() {
    let chatted = Chatted::new(None);
    chatted.answers.say(reporting(long_answer(), 18_000, 5_000));
    let args = ["--preset", "archive", "--window", "40000"];
    let told = chatted.chat(&args, "A\n/context\n");
    // 23,616 less 23,000.
    let expected = "616 to go";
    assert!(
        told.stdout.contains(expected) || told.stderr.contains(expected),
        "{}{}",
        told.stdout,
        told.stderr
    );
}

/// Settings, the input that is reported, and whether the design compacts a conversation of four
/// turns with a model of unknown window.
const UNKNOWN_WINDOWS: [(&[&str], u64, bool); 4] = [
    (&[], 2_999, false),
    (&[], 3_000, true),
    (
        &[
            "--set",
            "compaction.when=['log >= window - 16384','messages >= 9']",
        ],
        9_000,
        false,
    ),
    (
        &[
            "--set",
            "compaction.when=['log >= window - 16384','messages >= 8']",
        ],
        9_000,
        true,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn unknown_window_means_a_number_of_tokens_or_of_messages() {
    for (settings, input, compacts) in UNKNOWN_WINDOWS {
        let mut talk = proxied(Dialect::Chat, settings).await;
        talk.body["model"] = json!(UNKNOWN_MODEL);
        for question in ["B", "C", "D"] {
            talk.turn(&long_answer(), question);
        }
        talk.answers.report(Usage {
            input,
            output: 5_000,
            ..Usage::default()
        });
        talk.answers.say(ScriptedReply::text(long_answer()));
        talk.send().await;
        if compacts {
            talk.send_until(|_| !talk.own_calls().is_empty()).await;
        } else {
            talk.send_some_times().await;
            assert_eq!(talk.own_calls().len(), 0, "{settings:?}: {input}");
        }
        // Chat decides the same.
        let told = std::thread::spawn(move || {
            let chatted = Chatted::new(None);
            for _ in 0..3 {
                chatted.answers.say(reporting(long_answer(), 1_000, 500));
            }
            chatted.answers.say(reporting(long_answer(), input, 5_000));
            let args = [&["--preset", "archive"], settings].concat();
            let told = chatted.chat_of(UNKNOWN_MODEL, Dialect::Chat, &args, "A\nB\nC\nD\n");
            assert_eq!(told.code, 0, "{}", told.stderr);
            assert!(told.stderr.contains("is unknown until"), "{}", told.stderr);
            chatted.own_calls().len()
        });
        let asked = told.join().unwrap();
        assert_eq!(asked > 0, compacts, "{settings:?}: {input}");
    }
}
