use super::*;
use trimtab_model::{Call, Media, MediaKind, MessageKind, Part, RawJson, Reasoning, Role};

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

const FORMS: [SummaryRequestForm; 2] = [SummaryRequestForm::Messages, SummaryRequestForm::Text];

fn requests_of(old: &[Message], form: SummaryRequestForm, window: u64) -> SummaryRequests {
    let prompt = SummaryPrompt::default();
    requests(old, form, &prompt, "", summariser(window), &weigh)
}

#[test]
fn one_request_has_every_message_and_fits() {
    for form in FORMS {
        for window in [4_000, 20_000] {
            let requests = requests_of(&log(40, 900), form, window);
            assert_eq!(requests.len(), 1);
            let request = requests.next(&[], &weigh).unwrap();
            let said = text(&request);
            assert!(said.contains("OLDFACT 77") && said.contains("Summary instructions:"));
            for n in 0..40 {
                for mark in [format!("marker-{n}. "), format!("file{n}.rs")] {
                    assert_eq!(said.matches(&mark).count(), 1, "{form:?} {mark}");
                }
            }
            let weight: u64 = request.messages.iter().map(weigh).sum();
            assert!(weight + request.max_output <= window, "{form:?}: {weight}");
            assert_eq!(request.messages.last().unwrap().role, Role::User);
            assert_eq!(requests.next(&[Some("x")], &weigh), None);
            assert_eq!(requests.result(&[Some("x")]).as_deref(), Some("x"));
            assert_eq!(requests.result(&[None]), None);
        }
    }
}

#[test]
fn request_with_the_messages_themselves_is_valid() {
    for dialect in Dialect::ALL {
        let model = SummaryModel {
            dialect,
            ..summariser(9_000)
        };
        let (form, prompt) = (SummaryRequestForm::Messages, SummaryPrompt::default());
        let requests = requests(&log(40, 900), form, &prompt, "", model, &weigh);
        let asked = requests.next(&[], &weigh).unwrap().messages;
        assert!(asked.len() > 40);
        let asked: Vec<_> = asked.into_iter().map(Arc::new).collect();
        assert_eq!(crate::verify::verify(&asked, dialect), vec![]);
    }
}

#[test]
fn a_message_that_is_too_large_is_cut_in_its_middle() {
    let old = [Message::user(format!("HEAD{}TAIL", "z".repeat(90_000)))];
    for form in FORMS {
        let said = text(&requests_of(&old, form, 4_000).next(&[], &weigh).unwrap());
        assert!(said.contains("HEAD") && said.contains("TAIL") && said.contains("truncated"));
        assert!(said.len() < 16_000);
    }
}

#[test]
fn media_and_signed_thoughts_stay_away() {
    let raw = RawJson::parse(r#"{"type":"image","data":"SECRETBYTES"}"#).unwrap();
    let kind = MediaKind::Image;
    let thought = Reasoning {
        text: "SEALED".into(),
        seal: Some("s".into()),
        extra: vec![],
    };
    let picture = vec![Part::text("look"), Part::Media(Media { kind, raw })];
    let seen = vec![Part::Reasoning(thought), Part::text("seen")];
    let old = [
        Message::new(Role::User, picture),
        Message::new(Role::Assistant, seen),
    ];
    let requests = requests_of(&old, SummaryRequestForm::Text, 9_000);
    let json = serde_json::to_string(&requests.next(&[], &weigh).unwrap().messages).unwrap();
    assert!(json.contains("[image]") && !json.contains("SECRETBYTES") && !json.contains("SEALED"));
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
    let requests = requests_of(&old, SummaryRequestForm::Turns, 9_000);
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
    let requests = requests_of(&old, SummaryRequestForm::Turns, 9_000);
    let result = requests.result(&[Some("<summary>s</summary>")]).unwrap();
    assert!(
        result.starts_with("<summary>s\n[Note: Some oversized") && result.ends_with("</summary>")
    );
}
