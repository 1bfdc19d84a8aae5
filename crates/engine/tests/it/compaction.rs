//! What a compaction says and asks, over any history.

use proptest::prelude::*;
use trimtab_engine::decide::summary::requests::{SummaryModel, SummaryRequests, requests};
use trimtab_engine::policy::SummaryPrompt;
use trimtab_engine::policy::SummaryRequestForm;
use trimtab_model::Message;
use trimtab_testkit::cases;
use trimtab_testkit::history::{any_history, hostile_text};

/// Weighs a message as its JSON: nothing in it is free.
fn weigh(message: &Message) -> u64 {
    serde_json::to_string(message).map_or(0, |json| json.len() as u64)
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
    fn requests_fit_and_end(log in any_history(40), form in form(), window in 0..9_000u64) {
        let summariser = SummaryModel { window: Some(window), max_output: window / 8, ..SummaryModel::default() };
        let requests = requests(&log, form, &SummaryPrompt::default(), "", summariser, &weigh);
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
        let requests = requests(&log, SummaryRequestForm::Text, &SummaryPrompt::default(), "", summariser, &weigh);
        for messages in asked(&requests, &answer) {
            let text = messages[0].text();
            prop_assert_eq!(text.matches("</conversation>").count(), 1);
            let said = text.split("</conversation>").next().unwrap_or_default();
            prop_assert!(!said.contains("</"), "{said}");
        }
    }
}
