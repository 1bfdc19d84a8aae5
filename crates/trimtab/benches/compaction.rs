//! Planning the compaction of a million tokens without a model, beside reading them from JSON.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may stop where a test would, and its table is what it is for"
)]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use trimtab::engine::decide::{self, CallConditions, CompactionRequest, ConversationState};
use trimtab::engine::normalise::NormaliseOptions;
use trimtab::engine::plan::PlanReason;
use trimtab::engine::policy::Policy;
use trimtab::engine::window::Projection;
use trimtab::model::estimate::Measure;
use trimtab::model::{Call, Message};
use trimtab::wire::transcript::TranscriptReader;
use trimtab_testkit::bench::BenchComparison;

/// Rounds of about 2,000 tokens each.
const ROUNDS: usize = 500;

fn main() {
    let log = conversation();
    let json: Rc<[u8]> = json(&log).into_bytes().into();
    println!("{:.1} MB of JSON", json.len() as f64 / 1e6);
    for preset in ["steady", "refs", "checkpoint", "turns", "archive"] {
        let mut projection = Projection::new(NormaliseOptions::default());
        for message in &log {
            projection.admit(message.clone());
        }
        projection.window().expect("a valid log");
        let projection = Rc::new(RefCell::new(projection));
        let policy = Policy::preset(preset).expect("a preset");
        let (parsed, planned) = (Rc::clone(&json), Rc::clone(&projection));
        BenchComparison::new(format!("a million tokens under {preset}"), 15)
            .candidate("parse them from JSON", move || {
                let mut conversations = TranscriptReader::new(&parsed[..]);
                let read = conversations.next().expect("one").expect("readable");
                read.messages.len()
            })
            .candidate("plan their compaction", move || {
                plan(&planned.borrow(), &policy)
            })
            .run();
    }
}

fn plan(projection: &Projection, policy: &Policy) -> usize {
    let tokens = |measure: &Measure| measure.tokens();
    let call = CallConditions {
        window: Some(1_000_000),
        max_output: Some(8_000),
        can_retrieve: true,
        ..CallConditions::new(&tokens)
    };
    let conversation = ConversationState::new(projection, policy, &call);
    let asked = CompactionRequest::new(PlanReason::ByHand);
    let draft = decide::draft(&conversation, &asked);
    let draft = draft.expect("something to replace");
    draft.finish(None).plan.edits.len()
}

fn conversation() -> Vec<Message> {
    let mut log = vec![
        Message::system("be brief"),
        Message::user("Port the service to the new API. Never touch the fixtures."),
    ];
    for round in 0..ROUNDS {
        let id = format!("call_{round}");
        let arguments = format!("{{\"path\":\"src/module_{round}/handler.rs\"}}");
        log.push(Message::assistant("next").with_call(Call::new(&id, "read_file", arguments)));
        log.push(Message::output(&id, output(round)));
        if round % 50 == 49 {
            log.push(Message::assistant("that part is done"));
            log.push(Message::user(format!("go on with part {round}")));
        }
    }
    log
}

fn output(round: usize) -> String {
    let mut text = String::new();
    for line in 0..120 {
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "    let item_{line} = registry.lookup(\"key-{round}-{line}\")?; // see line {line}"
        );
    }
    text
}

fn json(log: &[Message]) -> String {
    let messages: Vec<String> = log
        .iter()
        .flat_map(trimtab::wire::chat::write_message)
        .map(|message| message.as_str().to_owned())
        .collect();
    format!("{{\"messages\":[{}]}}", messages.join(","))
}
