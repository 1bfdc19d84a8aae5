//! What the system says inside a conversation stays there, and providers accept every window.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::Dialect;
use trimtab::request::changes;
use trimtab::session::{Limits, Moment, Recovered, Session, Setup};
use trimtab::store::{MemoryStore, SessionId};
use trimtab::wire::overflow::{Response, Verdict, classify};
use trimtab::wire::scan::Scan;
use trimtab::wire::splice::splice;
use trimtab_testkit::cases;
use trimtab_testkit::upstream::Strict;

/// One step of a conversation.
#[derive(Clone, Debug)]
struct Step {
    /// Lines of the output of its call; none for an answer in words, and a next question.
    lines: Option<usize>,
    /// Whether the system says something before the next answer, and in which form.
    system: Option<bool>,
    /// Whether the provider refuses the next window once.
    overflows: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lines = prop::option::weighted(0.8, 1..120usize);
    let system = prop::option::weighted(0.4, any::<bool>());
    let step = (lines, system, prop::bool::weighted(0.1));
    let step = step.prop_map(|(lines, system, overflows)| Step {
        lines,
        system,
        overflows,
    });
    prop::collection::vec(step, 4..24)
}

/// A conversation as a client sends it.
struct Talk {
    dialect: Dialect,
    entries: Vec<Value>,
    /// What the system said in it.
    notes: Vec<String>,
}

impl Talk {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            entries: vec![json!({"role": "user", "content": "the task"})],
            notes: Vec::new(),
        }
    }

    fn step(&mut self, number: usize, step: &Step) {
        match step.lines {
            Some(lines) => self.round(&format!("c{number}"), lines),
            None => {
                let said = format!("answer {number}");
                self.entries
                    .push(json!({"role": "assistant", "content": said}));
                let asked = format!("question {number}");
                self.entries.push(json!({"role": "user", "content": asked}));
            }
        }
        if let Some(in_list) = step.system {
            self.system(number, in_list);
        }
    }

    fn round(&mut self, id: &str, lines: usize) {
        let line = |at: usize| format!("{id} line {at}: the value is {}\n", at * 7919 % 1000);
        let output: String = (0..lines).map(line).collect();
        let [call, output] = match self.dialect {
            Dialect::Chat => [
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": id,
                    "type": "function", "function": {"name": "read", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": id, "content": output}),
            ],
            Dialect::Messages => [
                json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": id, "name": "read", "input": {}}]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": id, "content": output}]}),
            ],
            Dialect::Responses => [
                json!({"type": "function_call", "call_id": id, "name": "read",
                    "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": id, "output": output}),
            ],
        };
        self.entries.extend([call, output]);
    }

    /// A note of the system, or an item of the developer that nobody knows.
    fn system(&mut self, number: usize, in_list: bool) {
        let note = format!("note-{number}-");
        let kind = if self.dialect == Dialect::Responses {
            "input_text"
        } else {
            "text"
        };
        let content = if in_list {
            json!([{"type": kind, "text": note}])
        } else {
            json!(note)
        };
        self.entries.push(match (self.dialect, in_list) {
            (Dialect::Messages, _) => json!({"role": "system", "content": content}),
            (Dialect::Chat, _) => json!({"role": "developer", "content": content}),
            (Dialect::Responses, true) => json!({"type": "message", "role": "developer",
                "content": content}),
            (Dialect::Responses, false) => json!({"type": "house_item", "role": "developer",
                "data": note}),
        });
        self.notes.push(note);
    }

    fn body(&self) -> Vec<u8> {
        let tool = match self.dialect {
            Dialect::Chat => json!({"type": "function", "function": {"name": "read",
                "parameters": {"type": "object"}}}),
            Dialect::Messages => json!({"name": "read", "input_schema": {"type": "object"}}),
            Dialect::Responses => json!({"type": "function", "name": "read",
                "parameters": {"type": "object"}}),
        };
        let body = match self.dialect {
            Dialect::Responses => json!({"model": "m", "store": false, "tools": [tool],
                "input": self.entries}),
            _ => json!({"model": "m", "max_tokens": 64, "tools": [tool],
                "messages": self.entries}),
        };
        body.to_string().into_bytes()
    }
}

fn open(preset: &str, dialect: Dialect) -> Session {
    let setup = Setup {
        dialect,
        limits: Limits {
            window: Some(6_000),
            max_output: Some(64),
            ..Limits::default()
        },
        ..Setup::new(Policy::preset(preset).unwrap())
    };
    let id = SessionId::new("places").unwrap();
    Session::open(Arc::new(MemoryStore::new()), id, setup).unwrap()
}

fn overflow() -> Verdict {
    let text = br#"{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}"#;
    classify(&Response::new(400, text))
}

/// The body of the next request.
fn sent(session: &mut Session, talk: &Talk) -> Option<Vec<u8>> {
    let came = talk.body();
    let scan = Scan::new(&came, talk.dialect).unwrap();
    for at in session.projection().log().len()..scan.len() {
        session.admit(scan.message(at).unwrap()).unwrap();
    }
    for moment in [Moment::AfterOutputs, Moment::BeforeCall] {
        if let Some(pending) = session.check(moment).unwrap() {
            session.finish(pending).unwrap();
        }
    }
    session.ready().ok()?;
    let window = session.window().unwrap().clone();
    let changes = changes(session.projection().log(), &window, talk.dialect);
    Some(splice(&scan, &changes).unwrap().body.into_owned())
}

/// The roles of the entries of a Messages body, and the rules for the system's among them.
fn is_placed_as_documented(body: &[u8]) -> Result<(), TestCaseError> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let entries = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry["role"].as_str())
        .collect();
    prop_assert_eq!(roles[0], "user");
    for (at, _) in roles
        .iter()
        .enumerate()
        .filter(|(_, role)| **role == "system")
    {
        prop_assert_eq!(roles[at - 1], "user", "{:?}", roles);
        let next = roles.get(at + 1).copied().unwrap_or("assistant");
        prop_assert_eq!(next, "assistant", "{:?}", roles);
    }
    Ok(())
}

fn judge(body: &[u8], talk: &Talk, context: &str) -> Result<(), TestCaseError> {
    let refused = Strict::new(talk.dialect).refuses(body);
    let text = String::from_utf8_lossy(body).into_owned();
    prop_assert!(refused.is_empty(), "{}: {:?}\n{}", context, refused, text);
    let mut from = 0;
    for note in &talk.notes {
        let rest = text.get(from..).unwrap_or_default();
        let at = rest.find(note.as_str());
        prop_assert!(
            at.is_some(),
            "{}: {} is lost or moved\n{}",
            context,
            note,
            text
        );
        from += at.unwrap_or_default();
    }
    if talk.dialect == Dialect::Messages {
        is_placed_as_documented(body)?;
    }
    Ok(())
}

fn drive(preset: &str, dialect: Dialect, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut session = open(preset, dialect);
    let mut talk = Talk::new(dialect);
    for (number, step) in steps.iter().enumerate() {
        talk.step(number, step);
        let context = format!("{preset} {dialect} step {number}");
        if let Some(body) = sent(&mut session, &talk) {
            judge(&body, &talk, &context)?;
        }
        if !step.overflows {
            continue;
        }
        match session.recover(&overflow()).unwrap() {
            Recovered::GiveUp => continue,
            Recovered::Retry => {}
            Recovered::Summarise(pending) => {
                session.finish(pending).unwrap();
            }
        }
        if let Some(body) = sent(&mut session, &talk) {
            judge(&body, &talk, &format!("{context}, recovered"))?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn every_window_is_accepted_and_keeps_what_the_system_said(steps in steps()) {
        for preset in PRESETS.iter().filter(|preset| preset.name != "none") {
            for dialect in Dialect::ALL {
                drive(preset.name, dialect, &steps)?;
            }
        }
    }
}
