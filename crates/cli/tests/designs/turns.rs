//! Preset `turns`: whole turns, summarised in the background, the summary in the system prompt.

use serde_json::{Value, json};
use trimtab_model::estimate::{Heuristic, Measure};
use trimtab_model::{Dialect, Message};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::RequestOutcome;

use crate::chatted::Chatted;
use crate::proxied::Proxied;
use crate::scripted::{
    UNKNOWN_MODEL, all_text, failing, lines, outputs, ref_in, refused_as_too_long, reporting,
    system_text,
};
use crate::talk::{TASK, log};

async fn proxied(dialect: Dialect, args: &[&str]) -> Proxied {
    Proxied::start(dialect, &[&["--preset", "turns"], args].concat()).await
}

/// Turns of a question and an answer each, so many.
fn chatter(talk: &mut Proxied, turns: usize) {
    for number in 1..=turns {
        let words = format!("ANSWER-{number} {}", "and so on ".repeat(30));
        talk.turn(&words, &format!("QUESTION-{number}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_20_messages_are_summarised_behind_a_turn() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &[]).await;
        chatter(&mut talk, 9);
        talk.send_some_times().await;
        assert_eq!(
            talk.own_calls().len(),
            0,
            "{dialect}: 19 messages and an answer"
        );
        chatter(&mut talk, 1);
        talk.send_until(|_| !talk.own_calls().is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_without_usage_are_summarised_too() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    talk.body["stream"] = json!(true);
    chatter(&mut talk, 10);
    talk.send_until(|_| !talk.own_calls().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn number_of_messages_and_share_of_the_window_can_be_set() {
    let mut talk = proxied(
        Dialect::Chat,
        &[
            "--set",
            "compaction.when=['messages > 6','log > 75 % of window']",
        ],
    )
    .await;
    chatter(&mut talk, 4);
    talk.send_until(|_| !talk.own_calls().is_empty()).await;
    let args = [
        "--window",
        "20000",
        "--set",
        "compaction.when=['messages > 20','log > 10 % of window']",
    ];
    let mut talk = proxied(Dialect::Chat, &args).await;
    talk.turn(&log(150), "SECOND-QUESTION");
    talk.turn("a2", "q3");
    talk.turn("a3", "q4");
    talk.send_until(|_| !talk.own_calls().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_is_at_the_end_of_the_system_prompt() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &[]).await;
        match dialect {
            Dialect::Chat => {}
            Dialect::Responses => talk.body["instructions"] = json!("be brief"),
            Dialect::Messages => talk.body["system"] = json!("be brief"),
        }
        chatter(&mut talk, 12);
        let seen = talk
            .send_until(|seen| system_text(seen).contains("SHORT-SUMMARY"))
            .await;
        let system = system_text(&seen);
        assert!(
            system.starts_with("be brief\n\n---\n\nCONTEXT_SUMMARY: "),
            "{dialect}: {system}"
        );
        // One system prompt, and no other message has the summary.
        let shown = lines(&seen);
        let prompts = shown.iter().filter(|line| line.starts_with("system: "));
        assert!(prompts.count() <= 1, "{dialect}: {shown:#?}");
        let mut users = shown.iter().filter(|line| line.starts_with("user: "));
        assert!(
            users.all(|line| !line.contains("SHORT-SUMMARY")),
            "{dialect}"
        );
    }
}

#[test]
fn chat_puts_the_summary_into_the_system_prompt() {
    for dialect in Dialect::ALL {
        let chatted = Chatted::new(None);
        for _ in 0..6 {
            let words = "and so on ".repeat(30);
            chatted.answers.say(ScriptedReply::text(words));
        }
        let args = ["--preset", "turns", "--system", "be brief"];
        let told = chatted.chat_in(dialect, &args, "A\nB\nC\nD\nE\n/compact\nF\n");
        assert_eq!(told.code, 0, "{}", told.stderr);
        let system = system_text(chatted.main_calls().last().unwrap());
        let place = |text: &str| system.find(text).unwrap_or_else(|| panic!("{system}"));
        assert!(place("be brief") < place("CONTEXT_SUMMARY: "), "{dialect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn about_the_last_four_messages_stay_from_the_start_of_a_turn() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    chatter(&mut talk, 12);
    let seen = talk.send_until_says("SHORT-SUMMARY").await;
    let shown = lines(&seen);
    let first = shown
        .iter()
        .find(|line| !line.starts_with("system: ") && !line.contains(TASK))
        .unwrap();
    assert!(first.starts_with("user: QUESTION-"), "{shown:#?}");
    assert!(shown.len() <= 8, "{shown:#?}");
    assert!(shown.last().unwrap().contains("QUESTION-12"), "{shown:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_reads_what_was_said_and_no_outputs() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    talk.round(&["SECRET-OUTPUT"]);
    chatter(&mut talk, 12);
    talk.send_until(|_| !talk.own_calls().is_empty()).await;
    let asked = talk.own_calls();
    let text: String = asked.iter().map(|one| all_text(one)).collect();
    assert!(
        text.contains("QUESTION-1") && text.contains("ANSWER-1"),
        "{text}"
    );
    assert!(!text.contains("SECRET-OUTPUT"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_history_is_summarised_in_two_batches_that_are_merged() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    chatter(&mut talk, 14);
    talk.send_until_says("SHORT-SUMMARY").await;
    let asked = talk.own_calls();
    assert_eq!(asked.len(), 3, "two batches and a merge");
    assert!(
        asked[2].last.contains("Merge them into one"),
        "{}",
        asked[2].last
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_that_fails_is_replaced_by_excerpts_of_what_was_said() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    talk.answers.summarise(failing());
    chatter(&mut talk, 12);
    let seen = talk
        .send_until(|seen| system_text(seen).contains("CONTEXT_SUMMARY"))
        .await;
    assert!(system_text(&seen).len() > 200, "{}", system_text(&seen));
}

/// Five turns with large outputs.
fn large_turns(talk: &mut Proxied) {
    for number in 1..=5 {
        talk.round(&[&format!("OUTPUT-{number}\n{}", log(100))]);
        talk.turn(&format!("ANSWER-{number}"), &format!("QUESTION-{number}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_half_of_the_turns_goes_before_a_call_that_would_not_fit() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "9000"]).await;
        large_turns(&mut talk);
        let seen = talk.send().await;
        let requests = talk.upstream.requests();
        assert!(
            requests
                .iter()
                .all(|one| one.outcome == RequestOutcome::Answered),
            "{dialect}: no wasted call"
        );
        let text = all_text(&seen);
        assert!(!text.contains("OUTPUT-1\n"), "{dialect}: {text}");
        assert!(text.contains("QUESTION-5"), "{dialect}: {text}");
        let system = system_text(&seen);
        let note = "[Emergency compression dropped ";
        assert!(system.contains(note), "{dialect}: {system}");
        assert!(
            system.contains("oldest messages due to context limit]"),
            "{system}"
        );
        let shown = lines(&seen);
        let first = shown
            .iter()
            .find(|line| !line.starts_with("system: ") && !line.contains(TASK));
        assert!(
            first.unwrap().starts_with("user: QUESTION-"),
            "{dialect}: {shown:#?}"
        );
    }
}

/// Four turns that take so many tokens by the estimate of the design, all texts together.
fn turns_of_tokens(talk: &mut Proxied, tokens: usize) {
    let chars = tokens * 5 / 2 / 4;
    for number in 1..=4 {
        let words = format!("ANSWER-{number} {}", "word ".repeat(chars / 5));
        talk.turn(&words, &format!("QUESTION-{number}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_is_too_large_by_the_estimate_of_the_design_drops_turns() {
    for dialect in Dialect::ALL {
        // With the answer's 500 tokens, the tool and ours it is below the window, and above.
        for (tokens, drops) in [(14_000, false), (15_600, true)] {
            let mut talk = proxied(dialect, &["--window", "16000"]).await;
            turns_of_tokens(&mut talk, tokens);
            let seen = talk.send().await;
            assert!(seen.tokens < 12_000, "others count {} tokens", seen.tokens);
            let text = all_text(&seen);
            assert_eq!(!text.contains("ANSWER-1 "), drops, "{dialect} {tokens}");
            let note = "[Emergency compression dropped ";
            assert_eq!(system_text(&seen).contains(note), drops, "{dialect}");
            assert!(
                text.contains(TASK) && text.contains("ANSWER-4"),
                "{dialect}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_turns_are_behind_a_ref_in_the_summary() {
    let mut talk = proxied(Dialect::Chat, &["--window", "9000"]).await;
    large_turns(&mut talk);
    let seen = talk.send().await;
    let system = system_text(&seen);
    let id = ref_in(&system).unwrap();
    let asks = json!({"ref_id": id, "pattern": "OUTPUT-1"});
    let found = talk.read_back("tool_output_cache_grep", asks).await;
    assert!(found.contains("OUTPUT-1"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_call_is_made_again_without_the_oldest_half_of_the_turns() {
    let args = ["--preset", "turns", "--window", "100k"];
    let mut talk = Proxied::in_front_of(Dialect::Chat, &args, Some(4_000)).await;
    large_turns(&mut talk);
    let seen = talk.send().await;
    let requests = talk.upstream.requests();
    let refused = requests
        .iter()
        .filter(|one| one.outcome == RequestOutcome::Overflow)
        .count();
    assert!((1..=2).contains(&refused), "{refused}");
    assert!(system_text(&seen).contains("[Emergency compression dropped "));
    assert!(all_text(&seen).contains("QUESTION-5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_call_of_a_short_conversation_is_made_again_without_half_of_the_turns() {
    for dialect in Dialect::ALL {
        let mut talk = proxied(dialect, &["--window", "100k"]).await;
        chatter(&mut talk, 8);
        talk.answers.say(refused_as_too_long());
        let (status, said) = talk.try_send().await;
        assert_eq!(status, 200, "{dialect}: {said}");
        let requests = talk.upstream.requests();
        assert_eq!(requests.len(), 2, "{dialect}");
        let seen = requests.last().unwrap();
        let note = "[Emergency compression dropped ";
        assert!(system_text(seen).contains(note), "{dialect}");
        let text = all_text(seen);
        for (said, stays) in [("QUESTION-1", false), ("QUESTION-5", true), (TASK, true)] {
            assert_eq!(text.contains(said), stays, "{dialect}: {said}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn image_of_the_newest_turn_survives_a_refused_call() {
    let args = ["--preset", "turns", "--window", "100k"];
    let mut talk = Proxied::in_front_of(Dialect::Chat, &args, Some(4_000)).await;
    large_turns(&mut talk);
    let image = json!([{"type": "text", "text": "WHAT-IS-THIS"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]);
    let messages = talk.body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "yes?"}));
    messages.push(json!({"role": "user", "content": image}));
    let seen = talk.send().await;
    let body = seen.json();
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"], image);
}

#[tokio::test(flavor = "multi_thread")]
async fn round_with_an_unanswered_call_goes_as_a_whole() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    talk.round(&["ANSWERED"]);
    let messages = talk.body["messages"].as_array_mut().unwrap();
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read_log", "arguments": "{}"}});
    messages.push(json!({"role": "assistant", "content": "HALF-A-ROUND", "tool_calls": [call("p"), call("q")]}));
    messages.push(json!({"role": "tool", "tool_call_id": "p", "content": "HALF-AN-ANSWER"}));
    messages.push(json!({"role": "user", "content": "never mind"}));
    let seen = talk.send().await;
    assert_eq!(outputs(&seen), ["ANSWERED"]);
    assert!(!all_text(&seen).contains("HALF-A"), "{}", all_text(&seen));
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_are_shown_whole_when_they_come() {
    let mut talk = proxied(Dialect::Chat, &["--window", "400k"]).await;
    let text = log(5_000);
    let seen = talk.send_round(&[&text]).await;
    assert_eq!(outputs(&seen), [text]);
}

#[tokio::test(flavor = "multi_thread")]
async fn second_summary_takes_the_place_of_the_first() {
    let mut talk = proxied(Dialect::Chat, &[]).await;
    talk.answers
        .summarise(ScriptedReply::text("<summary>SUMMARY-A</summary>"));
    chatter(&mut talk, 12);
    talk.send_until_says("SUMMARY-A").await;
    talk.answers
        .summarise(ScriptedReply::text("<summary>SUMMARY-B</summary>"));
    chatter(&mut talk, 12);
    let seen = talk.send_until_says("SUMMARY-B").await;
    assert!(!all_text(&seen).contains("SUMMARY-A"));
    let again: String = talk.own_calls().iter().map(|one| all_text(one)).collect();
    assert!(
        again.contains("SUMMARY-A"),
        "the summariser reads the first"
    );
}

#[test]
fn chat_drops_old_turns_before_a_call_that_would_not_fit() {
    let chatted = Chatted::new(Some(12_000));
    for _ in 0..6 {
        chatted.answers.say(ScriptedReply::text(log(80)));
    }
    let line = |number: usize| format!("QUESTION-{number}\n");
    let turns: String = (1..=7).map(line).collect();
    let args = [
        "--preset",
        "turns",
        "--window",
        "12000",
        "--max-output",
        "1000",
    ];
    let told = chatted.chat(&args, &turns);
    assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
    let calls = chatted.main_calls();
    assert!(
        calls
            .iter()
            .all(|one| one.outcome == RequestOutcome::Answered),
        "no wasted call"
    );
    assert!(all_text(calls.last().unwrap()).contains("QUESTION-7"));
}

#[test]
fn chat_sends_the_limit_of_the_answer_as_max_tokens() {
    let chatted = Chatted::new(None);
    let args = ["--preset", "turns", "--set", "max_output=2250"];
    let told = chatted.chat(&args, "QUESTION\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(chatted.main_calls()[0].json()["max_tokens"], 2_250);
}

#[tokio::test(flavor = "multi_thread")]
async fn newest_answer_counts_before_the_client_brings_it() {
    for stream in [false, true] {
        // 20 messages and the answer.
        let mut talk = proxied(Dialect::Chat, &[]).await;
        talk.body["stream"] = json!(stream);
        chatter(&mut talk, 9);
        let messages = talk.body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "user", "content": "and one more"}));
        talk.send_until(|_| !talk.own_calls().is_empty()).await;
        // Three quarters of the window, most of them in the answer.
        let mut talk = proxied(Dialect::Chat, &["--window", "20000"]).await;
        talk.body["stream"] = json!(stream);
        chatter(&mut talk, 3);
        talk.send_some_times().await;
        assert_eq!(talk.own_calls().len(), 0, "the answers are short");
        let large = "word ".repeat(8_000);
        talk.answers.say(ScriptedReply::text(large));
        talk.send_until(|_| !talk.own_calls().is_empty()).await;
    }
}

#[test]
fn chat_counts_the_newest_answer() {
    let chatted = Chatted::new(None);
    for _ in 0..3 {
        chatted.answers.say(reporting("a short answer", 100, 10));
    }
    let large = "word ".repeat(8_000);
    chatted.answers.say(reporting(large, 100, 10));
    let args = [
        "--preset",
        "turns",
        "--window",
        "20000",
        "--max-output",
        "500",
    ];
    let told = chatted.chat(&args, "A\nB\nC\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(chatted.own_calls().len(), 0);
    let told = chatted.chat(&[&args[..], &["--resume"]].concat(), "D\nE\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(!chatted.own_calls().is_empty());
}

/// A tool whose definition has a description of so many characters.
fn described(chars: usize) -> Value {
    let function = json!({
        "name": "look_up", "description": "word ".repeat(chars / 5),
        "parameters": {"type": "object", "properties": {}},
    });
    json!({"type": "function", "function": function})
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_count_by_the_formula_of_the_design() {
    // 5,000 tokens by the formula, and about half of them by the count of others.
    for (tokens, drops) in [(8_000, false), (10_600, true)] {
        let mut talk = proxied(Dialect::Chat, &["--window", "16000"]).await;
        talk.body["tools"]
            .as_array_mut()
            .unwrap()
            .push(described(12_500));
        turns_of_tokens(&mut talk, tokens);
        let seen = talk.send().await;
        assert!(seen.tokens < 12_000, "others count {} tokens", seen.tokens);
        let is_dropped = !all_text(&seen).contains("ANSWER-1 ");
        assert_eq!(is_dropped, drops, "{tokens}");
    }
}

#[test]
fn chat_counts_tools_by_the_formula_of_the_design() {
    let chatted = Chatted::new(None);
    chatted.answers.say(reporting("ANSWER", 100, 10));
    let args = [
        "--preset",
        "turns",
        "--window",
        "100000",
        "--max-output",
        "500",
        "--set",
        "compaction.when=['call > 50000']",
    ];
    let told = chatted.chat(&args, "QUESTION\n/context\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let sent = &chatted.main_calls()[0];
    let answer = Message::assistant("ANSWER");
    let messages = sent.read_messages();
    let messages: Measure = messages.iter().chain([&answer]).map(Measure::of).sum();
    let tools = Measure::of_tools(&sent.json()["tools"].to_string());
    let formula = Heuristic::Turns;
    let call = formula.sizes(messages.sizes()) + formula.tools(tools.sizes()) + 500;
    let left = (50_000 - call).to_string();
    let (thousands, rest) = left.split_at(left.len() - 3);
    let expected = format!("{thousands},{rest} to go");
    let shown = told.stdout + &told.stderr;
    assert!(shown.contains(&expected), "{expected}: {shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejection_without_figures_leaves_half_of_the_turns() {
    for rejections in [1, 2] {
        // The only dialect whose provider names no figures.
        let mut talk = proxied(Dialect::Responses, &[]).await;
        talk.body["model"] = json!(UNKNOWN_MODEL);
        talk.body["max_output_tokens"] = json!(8_192);
        talk.body["instructions"] = json!("rule ".repeat(2_500));
        for number in 1..=8 {
            let words = format!("ANSWER-{number} {}", "and so on ".repeat(120));
            talk.turn(&words, &format!("QUESTION-{number}"));
        }
        for _ in 0..rejections {
            talk.answers.say(refused_as_too_long());
        }
        let (status, said) = talk.try_send().await;
        assert_eq!(status, 200, "{said}");
        let text = all_text(talk.upstream.requests().last().unwrap());
        let stays = |number: usize| text.contains(&format!("ANSWER-{number} "));
        assert!(!stays(1), "{text}");
        // Half of eight turns, or half of that half.
        assert!(stays(7) && (stays(5) || rejections == 2), "{text}");
    }
}

#[test]
fn rejection_without_figures_leaves_half_of_the_turns_in_chat() {
    for rejections in [1, 2] {
        let chatted = Chatted::new(None);
        for number in 1..=8 {
            let words = format!("ANSWER-{number} {}", "and so on ".repeat(120));
            chatted.answers.say(reporting(words, 100, 10));
        }
        for _ in 0..rejections {
            chatted.answers.say(refused_as_too_long());
        }
        let args = ["--preset", "turns"];
        let questions = "NEXT-QUESTION\n".repeat(9);
        let told = chatted.chat_of(UNKNOWN_MODEL, Dialect::Responses, &args, &questions);
        assert_eq!(told.code, 0, "{}", told.stderr);
        let text = all_text(chatted.main_calls().last().unwrap());
        let stays = |number: usize| text.contains(&format!("ANSWER-{number} "));
        assert!(!stays(1), "{text}");
        assert!(stays(8) && (stays(6) || rejections == 2), "{text}");
    }
}
