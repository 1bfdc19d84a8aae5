//! Measures the error of calibrated estimates for a vocabulary that the estimator does not know.
//!
//! Conversations are sent call by call, and only the reported size of each prompt is used. The
//! error is that of each new increment, the basis of an anchored estimate.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may fail by panicking"
)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "token counts are small and positive"
)]

use std::path::Path;

use serde_json::Value;
use tiktoken_rs::CoreBPE;
use trimtab_model::estimate::{Calibration, Measure};
use trimtab_model::{Call, Message, Part, Role};

/// Counts like a vocabulary of which digits, letters and the rest cost more or less than in
/// the public one it is made from.
struct Hidden {
    vocabulary: &'static CoreBPE,
    letters: f64,
    digits: f64,
    rest: f64,
}

impl Hidden {
    /// What a provider would report for one message.
    fn tokens(&self, message: &Message) -> f64 {
        let mut texts: Vec<String> = message.calls().map(|call| call.arguments.clone()).collect();
        texts.extend(message.calls().map(|call| call.name.clone()));
        texts.push(message.text().into_owned());
        let text: f64 = texts.iter().map(|text| self.text(text)).sum();
        text + 5.0 + 9.0 * message.calls().count() as f64
    }

    fn text(&self, text: &str) -> f64 {
        let share = |wanted: fn(&char) -> bool| {
            text.chars().filter(wanted).count() as f64 / text.chars().count().max(1) as f64
        };
        let letters = share(char::is_ascii_alphabetic);
        let digits = share(char::is_ascii_digit);
        let factor =
            letters * self.letters + digits * self.digits + (1.0 - letters - digits) * self.rest;
        self.vocabulary.encode_ordinary(text).len() as f64 * factor
    }
}

/// Conversations as lists of increments: the messages between two calls.
type Sessions = Vec<Vec<Vec<Message>>>;

#[expect(clippy::disallowed_methods, reason = "test data")]
fn recorded() -> Option<Sessions> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/public");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|f| f.path())
        .collect();
    files.sort();
    let mut sessions = Vec::new();
    for file in files
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
    {
        let text = std::fs::read_to_string(file).unwrap();
        let conversations = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        for conversation in conversations.filter(|c| c["format"] != "anthropic").take(3) {
            let messages: Vec<Message> = conversation["messages"]
                .as_array()?
                .iter()
                .map(read)
                .collect();
            sessions.push(increments(&messages));
        }
    }
    Some(sessions)
}

fn read(message: &Value) -> Message {
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    };
    let mut read = match message["role"].as_str() {
        Some("assistant") => Message::assistant(text),
        Some("tool") => Message::output("c", text),
        _ => Message::user(text),
    };
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let field = |name: &str| {
            call["function"][name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        read = read.with_call(Call::new("c", field("name"), field("arguments")));
    }
    read
}

/// An answer and all that came before the next one.
fn increments(messages: &[Message]) -> Vec<Vec<Message>> {
    let starts = |message: &Message| message.role == Role::Assistant;
    messages
        .chunk_by(|_, next| !starts(next))
        .map(<[Message]>::to_vec)
        .collect()
}

fn generated() -> Sessions {
    let kinds: [fn(u64) -> String; 5] = [
        |n| {
            format!(
                "{:>5}: error at 0x{:08x} after {} ms\n",
                n % 977,
                n.wrapping_mul(2_654_435_761),
                n % 1013
            )
        },
        |n| {
            format!(
                "The {} run of the module was moved to the {} place.\n",
                n % 13,
                n % 7
            )
        },
        |n| {
            format!(
                "    let value_{} = compute(input.field{}, \"text\")?;\n",
                n % 31,
                n % 5
            )
        },
        |n| {
            format!(
                "{{\"id\":{},\"name\":\"item {}\",\"price\":{}.{:02}}},",
                n,
                n % 97,
                n % 500,
                n % 100
            )
        },
        |n| format!("Съешь ещё {} мягких булок, да выпей чаю. ", n % 90),
    ];
    let text = |seed: u64| -> String {
        let kind = kinds[(seed % 5) as usize];
        (0..4 + seed % 60)
            .map(|line| kind(seed.wrapping_mul(31) + line * 7919))
            .collect()
    };
    let step = |seed: u64| {
        let call = Call::new(
            "c",
            "run",
            format!("{{\"command\":\"grep -n {seed} src\"}}"),
        );
        vec![
            Message::assistant("Looking at it now.").with_call(call),
            Message::new(Role::Tool, vec![Part::text(text(seed * 17 + seed / 3))]),
        ]
    };
    (0..6)
        .map(|session| (0..50).map(|call| step(session * 53 + call)).collect())
        .collect()
}

struct Errors {
    bytes4: f64,
    first: f64,
    after_20: f64,
}

fn simulate(sessions: &Sessions, hidden: &Hidden) -> Errors {
    let (mut bytes4, mut first, mut late) = (vec![], vec![], vec![]);
    for session in sessions {
        let mut model = Calibration::default();
        for (call, added) in session.iter().enumerate() {
            let truth: f64 = added
                .iter()
                .map(|message| hidden.tokens(message))
                .sum::<f64>()
                .round();
            let sum: Measure = added.iter().map(Measure::of).sum();
            if truth >= 50.0 {
                let error = |estimate: f64| (estimate / truth - 1.0).abs();
                let bytes: usize = added.iter().map(|m| m.text().len() + args(m)).sum();
                bytes4.push(error(bytes as f64 / 4.0));
                let errors = if call < 20 { &mut first } else { &mut late };
                errors.push(error(model.tokens(&sum) as f64));
            }
            model.observe(&sum, truth as u64);
        }
    }
    let mean = |errors: &[f64]| 100.0 * errors.iter().sum::<f64>() / errors.len() as f64;
    Errors {
        bytes4: mean(&bytes4),
        first: mean(&first),
        after_20: mean(&late),
    }
}

fn args(message: &Message) -> usize {
    message.calls().map(|call| call.arguments.len()).sum()
}

/// The models to learn: two public vocabularies, and both made unlike ours.
fn models() -> [(&'static str, Hidden); 4] {
    let unlike = |vocabulary, letters, digits, rest| Hidden {
        vocabulary,
        letters,
        digits,
        rest,
    };
    let o200k = tiktoken_rs::o200k_base_singleton();
    let cl100k = tiktoken_rs::cl100k_base_singleton();
    [
        ("o200k", unlike(o200k, 1.0, 1.0, 1.0)),
        ("cl100k", unlike(cl100k, 1.0, 1.0, 1.0)),
        ("cl100k, unlike by class", unlike(cl100k, 1.4, 1.9, 1.2)),
        ("o200k, unlike by class", unlike(o200k, 1.25, 0.8, 1.5)),
    ]
}

fn learn(title: &str, sessions: &Sessions) {
    println!("{title}: mean error in percent: bytes/4, first 20 calls, later");
    for (name, hidden) in models() {
        let errors = simulate(sessions, &hidden);
        println!(
            "  {name:<24} {:>5.1} {:>5.1} {:>5.1}",
            errors.bytes4, errors.first, errors.after_20
        );
        assert!(errors.after_20 <= 5.0, "{name}: {}", errors.after_20);
        assert!(errors.after_20 < errors.bytes4 / 2.0, "{name}");
    }
}

#[test]
fn calibration_learns_a_vocabulary_within_twenty_calls() {
    learn("generated", &generated());
    match recorded() {
        Some(sessions) => learn("recorded", &sessions),
        None => println!("skipped: no recorded sessions beside the workspace"),
    }
}

#[test]
fn outlier_is_ignored_and_persistent_change_is_learned() {
    use trimtab_model::estimate::CalibrationOutcome;
    let mut model = Calibration::default();
    let added = Measure::of(&Message::user("plain words in a row ".repeat(60)));
    let truth = added.tokens();
    for _ in 0..20 {
        assert_eq!(model.observe(&added, truth), CalibrationOutcome::Learned);
    }
    assert_eq!(
        model.observe(&added, truth * 2),
        CalibrationOutcome::Outlier
    );
    assert_eq!(
        model.observe(&added, truth * 40),
        CalibrationOutcome::Outlier
    );
    assert!(model.tokens(&added).abs_diff(truth) <= truth / 50);
    // A new vocabulary behind the same name: the same contradiction, again and again.
    for _ in 0..8 {
        model.observe(&added, truth * 3 / 2);
    }
    assert!(model.tokens(&added).abs_diff(truth * 3 / 2) <= truth / 30);
    assert_eq!(
        model.observe(&Measure::of(&Message::user("hi")), 9),
        CalibrationOutcome::TooSmall
    );
}
