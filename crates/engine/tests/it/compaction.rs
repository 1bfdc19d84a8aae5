//! What a compaction says and asks, over any history.

use proptest::prelude::*;
use trimtab_engine::compaction::audit::audit;
use trimtab_engine::compaction::fallback::summarise;
use trimtab_engine::compaction::prompt::SummaryPrompt;
use trimtab_engine::compaction::summary_requests::{SummaryModel, SummaryRequests, requests};
use trimtab_engine::compaction::text_budget::TextBudget;
use trimtab_engine::policy::SummaryRequestForm;
use trimtab_model::{Call, Message, MessageKind, Output, Part, Ref, Role};
use trimtab_testkit::cases;
use trimtab_testkit::history::{any_history, hostile_text, valid_history};

fn bytes(text: &str) -> u64 {
    text.len() as u64
}

/// Weighs a message as its JSON: nothing in it is free.
fn weigh(message: &Message) -> u64 {
    serde_json::to_string(message).map_or(0, |json| json.len() as u64)
}

/// A ref as a store would give it.
fn reference(id: &str) -> Option<Ref> {
    serde_json::from_str(&format!("{{\"id\":\"{id}\"}}")).ok()
}

/// Any history in which outputs are stored, with a summary before it.
fn stored_history() -> impl Strategy<Value = Vec<Message>> {
    (any_history(30), hostile_text(), any::<bool>()).prop_map(|(mut log, summary, any)| {
        for (at, message) in log.iter_mut().enumerate() {
            for (part, found) in message.parts.iter_mut().enumerate() {
                if let Part::Output(output) = found {
                    output.stored = reference(&format!("ref-{at}-{part}"));
                }
            }
        }
        if any {
            log.insert(0, Message::user(summary).with_kind(MessageKind::Summary));
        }
        log
    })
}

fn refs(log: &[Message]) -> Vec<&Ref> {
    let outputs = log.iter().flat_map(Message::outputs);
    outputs
        .filter_map(|output| output.stored.as_ref())
        .collect()
}

/// Asks until there is nothing more to ask.
fn asked(requests: &SummaryRequests, answer: &str) -> Vec<Vec<Message>> {
    let mut made = Vec::new();
    let mut answers = Vec::new();
    while let Some(request) = requests.next(&answers, &weigh) {
        made.push(request.messages);
        answers.push(Some(answer));
    }
    made
}

fn form() -> impl Strategy<Value = SummaryRequestForm> {
    prop::sample::select(vec![
        SummaryRequestForm::Messages,
        SummaryRequestForm::Text,
        SummaryRequestForm::Turns,
    ])
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn a_summary_without_a_model_is_bounded_and_the_same_every_time(
        log in stored_history(),
        tokens in 0..3_000u64,
    ) {
        let made = summarise(&log, false, &TextBudget::new(tokens, &bytes));
        prop_assert!(bytes(&made.text) <= tokens);
        prop_assert!(!made.text.contains('<'));
        let whole: u64 = log.iter().map(weigh).sum();
        prop_assert!(made.text.is_empty() || bytes(&made.text) < whole);
        prop_assert_eq!(made, summarise(&log, false, &TextBudget::new(tokens, &bytes)));
    }

    #[test]
    fn chained_summaries_keep_the_first_request(
        steps in prop::collection::vec(valid_history(12), 1..8),
        tokens in 900..3_000u64,
    ) {
        let mut summary = String::new();
        for (n, step) in steps.into_iter().enumerate() {
            let mut replaced = vec![Message::user("GOAL: port the parser to bytes")];
            if n > 0 {
                replaced = vec![Message::user(&summary).with_kind(MessageKind::Summary)];
            }
            replaced.extend(step);
            replaced.push(Message::assistant("filler ".repeat(600)));
            summary = summarise(&replaced, false, &TextBudget::new(tokens, &bytes)).text;
            prop_assert!(bytes(&summary) <= tokens);
            prop_assert!(summary.contains("GOAL: port the parser to bytes"), "{n}: {summary}");
        }
    }

    #[test]
    fn a_block_with_room_names_every_ref_and_no_tag(log in stored_history(), summary in hostile_text()) {
        let audit = audit(&log, &[&summary]);
        let coverage = audit.coverage;
        prop_assert_eq!(coverage.facts, coverage.covered + coverage.missing);
        let block = audit.fact_block(&TextBudget::new(200_000, &bytes));
        prop_assert!(!block.text.contains('<'));
        prop_assert_eq!(block.coverage.added, coverage.missing);
        for stored in refs(&log) {
            prop_assert!(block.text.contains(stored.id()), "{stored}");
            prop_assert!(block.refs.contains(stored));
        }
    }

    #[test]
    fn a_block_is_within_its_room(log in stored_history(), tokens in 0..900u64) {
        let audit = audit(&log, &[]);
        let block = audit.fact_block(&TextBudget::new(tokens, &bytes));
        prop_assert!(bytes(&block.text) <= tokens);
        prop_assert!(block.coverage.added <= block.coverage.missing);
        for stored in &block.refs {
            prop_assert!(block.text.contains(stored.id()));
        }
    }

    #[test]
    fn requests_fit_and_end(log in any_history(40), form in form(), window in 0..9_000u64) {
        let summariser = SummaryModel { window: Some(window), max_output: window / 8, ..SummaryModel::default() };
        let requests = requests(&log, form, &SummaryPrompt::default(), summariser, &weigh);
        let made = asked(&requests, "<summary>so far</summary>");
        prop_assert!(made.len() == requests.len() || form == SummaryRequestForm::Turns);
        let answers: Vec<Option<&str>> = made.iter().map(|_| Some("so far")).collect();
        prop_assert_eq!(requests.result(&answers).is_some(), !made.is_empty());
        for messages in made {
            let weight: u64 = messages.iter().map(weigh).sum();
            prop_assert!(weight + window / 8 <= window, "{weight} of {window}");
        }
    }

    #[test]
    fn conversation_text_cannot_close_a_tag(log in any_history(30), answer in hostile_text()) {
        let summariser = SummaryModel { window: Some(6_000), max_output: 600, ..SummaryModel::default() };
        let requests = requests(&log, SummaryRequestForm::Text, &SummaryPrompt::default(), summariser, &weigh);
        for messages in asked(&requests, &answer) {
            let text = messages[0].text();
            prop_assert_eq!(text.matches("</conversation>").count(), 1);
            let said = text.split("</conversation>").next().unwrap_or_default();
            let said = said.replace("</previous-summary>", "");
            prop_assert!(!said.contains("</"), "{said}");
        }
    }

    #[test]
    fn every_message_is_asked_about_once(rounds in 1..60usize, window in 2_500..9_000u64, form in form()) {
        let mut log = vec![Message::user("FACT-1 of before").with_kind(MessageKind::Summary)];
        for n in 0..rounds {
            log.push(Message::user(format!("question {n}.")));
            log.push(Message::assistant(format!("reply {n}.")).with_call(Call::new(format!("c{n}"), "run", "{}")));
            let output = Output::new(format!("c{n}"), format!("output {n}.{}", "o".repeat(300)));
            log.push(Message::new(Role::Tool, vec![Part::Output(output)]));
        }
        let summariser = SummaryModel { window: Some(window), max_output: 300, ..SummaryModel::default() };
        let requests = requests(&log, form, &SummaryPrompt::default(), summariser, &weigh);
        let made = asked(&requests, "<summary>so far</summary>");
        let said: Vec<_> = made.iter().flatten().map(Message::text).collect();
        let said = said.join("\n");
        prop_assert!(said.contains("FACT-1 of before"));
        for n in 0..rounds {
            prop_assert_eq!(said.matches(&format!("question {n}.")).count(), 1);
            prop_assert_eq!(said.matches(&format!("reply {n}.")).count(), 1);
            let outputs = usize::from(form != SummaryRequestForm::Turns);
            prop_assert_eq!(said.matches(&format!("output {n}.")).count(), outputs);
        }
    }
}
