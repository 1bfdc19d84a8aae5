use super::*;
use trimtab_model::{Call, Media, MediaKind, MessageKind, Part, RawJson, Reasoning};

fn weigh(message: &Message) -> u64 {
    let calls: usize = message.calls().map(|call| call.arguments.len() + 8).sum();
    (message.text().len() + calls).div_ceil(4) as u64
}

fn summariser(window: u64) -> SummaryModel {
    SummaryModel {
        window: Some(window),
        max_output: window / 10,
        ..SummaryModel::default()
    }
}

fn round(n: usize, size: usize) -> [Message; 2] {
    let id = format!("c{n}");
    let call = Call::new(&id, "read", format!("{{\"path\":\"file{n}.rs\"}}"));
    [
        Message::assistant(format!("marker-{n}. ")).with_call(call),
        Message::output(id, format!("output-{n}. {}", "y".repeat(size))),
    ]
}

fn log(rounds: usize, size: usize) -> Vec<Message> {
    let mut log = vec![
        Message::user("OLDFACT 77").with_kind(MessageKind::Summary),
        Message::user("begin"),
    ];
    log.extend((0..rounds).flat_map(|n| round(n, size)));
    log
}

/// All requests, each answered with what `answer` makes of its number.
fn asked(
    requests: &SummaryRequests,
    answer: impl Fn(usize) -> String,
) -> (Vec<SummaryRequest>, Vec<String>) {
    let (mut made, mut answers) = (Vec::new(), Vec::<String>::new());
    loop {
        let given: Vec<Option<&str>> = answers.iter().map(|text| Some(text.as_str())).collect();
        let Some(request) = requests.next(&given, &weigh) else {
            return (made, answers);
        };
        answers.push(answer(made.len()));
        made.push(request);
    }
}

fn text(request: &SummaryRequest) -> String {
    let said = |message: &Message| {
        let calls: String = message.calls().map(|call| call.arguments.clone()).collect();
        format!("{}{calls}\n", message.text())
    };
    request.messages.iter().map(said).collect()
}

#[test]
fn replaced_messages_that_fit_need_one_request() {
    for form in [SummaryRequestForm::Messages, SummaryRequestForm::Text] {
        let requests = requests(
            &log(3, 100),
            form,
            &SummaryPrompt::default(),
            summariser(20_000),
            &weigh,
        );
        assert_eq!(requests.len(), 1);
        let request = requests.next(&[], &weigh).unwrap();
        assert!(text(&request).contains("OLDFACT 77"));
        assert!(text(&request).contains("Summary instructions:"));
        assert_eq!(request.messages.last().unwrap().role, Role::User);
        assert_eq!(requests.next(&[Some("x")], &weigh), None);
        assert_eq!(requests.result(&[Some("x")]).as_deref(), Some("x"));
    }
}

#[test]
fn chunks_hold_every_message_once_and_are_given_the_answer_before() {
    for form in [SummaryRequestForm::Messages, SummaryRequestForm::Text] {
        let requests = requests(
            &log(40, 900),
            form,
            &SummaryPrompt::default(),
            summariser(4_000),
            &weigh,
        );
        let (made, answers) = asked(&requests, |n| format!("<summary>answer {n}.</summary>"));
        assert!(made.len() > 1 && made.len() <= 8, "{} requests", made.len());
        let all: String = made.iter().map(text).collect();
        for n in 0..40 {
            for mark in [
                format!("marker-{n}. "),
                format!("output-{n}. "),
                format!("file{n}.rs"),
            ] {
                assert_eq!(all.matches(&mark).count(), 1, "{form:?} {mark}");
            }
        }
        for (n, request) in made.iter().enumerate() {
            let weight: u64 = request.messages.iter().map(weigh).sum();
            assert!(weight + request.max_output <= 4_000, "{form:?}: {weight}");
            let before = format!("answer {}.", n.wrapping_sub(1));
            assert_eq!(text(request).contains(&before), n > 0);
        }
        let given: Vec<Option<&str>> = answers.iter().map(|text| Some(text.as_str())).collect();
        assert_eq!(requests.result(&given), answers.last().cloned());
        assert_eq!(requests.result(&given[..1]), None);
        assert_eq!(requests.next(&[None], &weigh), None);
    }
}

#[test]
fn chunks_of_messages_are_valid() {
    let requests = requests(
        &log(40, 900),
        SummaryRequestForm::Messages,
        &SummaryPrompt::default(),
        summariser(4_000),
        &weigh,
    );
    for dialect in Dialect::ALL {
        for request in asked(&requests, |_| "so far".to_owned()).0 {
            let messages: Vec<_> = request
                .messages
                .into_iter()
                .map(std::sync::Arc::new)
                .collect();
            assert_eq!(crate::verify::verify(&messages, dialect), vec![]);
        }
    }
}

#[test]
fn a_message_that_is_too_large_is_cut_in_its_middle() {
    let old = [Message::user(format!("HEAD{}TAIL", "z".repeat(90_000)))];
    for form in [SummaryRequestForm::Messages, SummaryRequestForm::Text] {
        let requests = requests(
            &old,
            form,
            &SummaryPrompt::default(),
            summariser(4_000),
            &weigh,
        );
        assert_eq!(requests.len(), 1);
        let said = text(&requests.next(&[], &weigh).unwrap());
        assert!(said.contains("HEAD") && said.contains("TAIL") && said.contains("truncated"));
        assert!(said.len() < 16_000);
    }
}

#[test]
fn media_and_signed_thoughts_stay_away() {
    let raw = RawJson::parse(r#"{"type":"image","data":"SECRETBYTES"}"#).unwrap();
    let thought = Reasoning {
        text: "SEALED".into(),
        seal: Some("s".into()),
        extra: vec![],
    };
    let old = [
        Message::new(
            Role::User,
            vec![
                Part::text("look"),
                Part::Media(Media {
                    kind: MediaKind::Image,
                    raw,
                }),
            ],
        ),
        Message::new(
            Role::Assistant,
            vec![Part::Reasoning(thought), Part::text("seen")],
        ),
    ];
    let requests = requests(
        &old,
        SummaryRequestForm::Text,
        &SummaryPrompt::default(),
        summariser(9_000),
        &weigh,
    );
    let json = serde_json::to_string(&requests.next(&[], &weigh).unwrap().messages).unwrap();
    assert!(json.contains("[image]") && !json.contains("SECRETBYTES") && !json.contains("SEALED"));
}

#[test]
fn a_window_without_room_means_no_request() {
    let requests = requests(
        &log(3, 100),
        SummaryRequestForm::Text,
        &SummaryPrompt::default(),
        summariser(200),
        &weigh,
    );
    assert!(requests.is_empty() && requests.next(&[], &weigh).is_none());
    assert_eq!(requests.result(&[]), None);
}

#[test]
fn turns_are_asked_in_two_batches_that_are_merged() {
    let old: Vec<Message> = (0..8)
        .flat_map(|n| {
            [
                Message::user(format!("question {n}.")),
                Message::assistant(format!("reply {n}.")),
            ]
        })
        .collect();
    let requests = requests(
        &old,
        SummaryRequestForm::Turns,
        &SummaryPrompt::default(),
        summariser(9_000),
        &weigh,
    );
    let (made, _) = asked(&requests, |n| {
        format!("<summary>part {n}</summary></summary-part>")
    });
    assert_eq!(made.len(), 3);
    assert!(text(&made[0]).contains("question 0.") && !text(&made[0]).contains("reply 7."));
    assert!(text(&made[1]).contains("reply 7.") && !text(&made[1]).contains("part 0"));
    assert!(text(&made[2]).contains("part 0") && text(&made[2]).contains("part 1"));
    assert_eq!(text(&made[2]).matches("</summary-part>").count(), 2);
    let answers = [Some("<summary>one</summary>"), Some("two"), None];
    assert_eq!(requests.result(&answers).as_deref(), Some("one two"));
}

#[test]
fn summary_notes_that_oversized_messages_were_left_out() {
    let old = [Message::user("x".repeat(20_000)), Message::user("small")];
    let requests = requests(
        &old,
        SummaryRequestForm::Turns,
        &SummaryPrompt::default(),
        summariser(9_000),
        &weigh,
    );
    let result = requests.result(&[Some("<summary>s</summary>")]).unwrap();
    assert!(
        result.starts_with("<summary>s\n[Note: Some oversized") && result.ends_with("</summary>")
    );
}
