//! Windows carried out on request bodies.

use std::sync::Arc;

use proptest::prelude::*;
use trimtab::engine::journal::Journal;
use trimtab::engine::log::Log;
use trimtab::engine::normalise::NormaliseOptions;
use trimtab::engine::plan::{Edit, Plan, PlanReason};
use trimtab::engine::window::Projection;
use trimtab::model::{Dialect, Message, MessageKind, Part, Role, turns};
use trimtab::request::changes;
use trimtab::wire::scan::BodyScan;
use trimtab::wire::splice::splice;
use trimtab::wire::validate::validate;
use trimtab::wire::{chat, messages, responses};
use trimtab_testkit::bodies::{JsonStyle, talk};
use trimtab_testkit::{cases, history::any_history};

fn dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.to_vec())
}

fn scanned(scan: &BodyScan<'_>) -> Log {
    (0..scan.len()).filter_map(|at| scan.message(at)).collect()
}

fn projected(log: &Log, dialect: Dialect) -> Projection {
    Projection::restore(
        NormaliseOptions::for_dialect(dialect),
        log.clone(),
        Journal::new(),
    )
}

/// Long outputs become short, and the oldest turn becomes a summary.
fn plan(log: &Log) -> Plan {
    let mut edits = Vec::new();
    for (message, said) in log.messages().iter().enumerate() {
        for (part, found) in said.parts.iter().enumerate() {
            let Some(output) = found.as_output().filter(|output| output.text().len() > 20) else {
                continue;
            };
            let mut output = output.clone();
            output.content = vec![Part::text("[trimmed]")];
            edits.push(Edit::Show {
                message,
                part,
                output,
            });
        }
    }
    if let [first, second, ..] = turns::boundaries(log.messages())[..] {
        edits.push(Edit::Hide {
            from: first,
            to: second,
        });
        let summary = Message::user("summary of it").with_kind(MessageKind::Summary);
        edits.push(Edit::Insert {
            before: second,
            message: Arc::new(summary),
        });
    }
    Plan::new(PlanReason::ByHand, edits)
}

fn texts<'m>(messages: impl Iterator<Item = &'m Arc<Message>>) -> String {
    messages
        .map(|message| message.text().into_owned())
        .collect::<Vec<_>>()
        .concat()
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn a_window_without_edits_changes_no_byte(talk in talk(8), style in any::<u64>(), dialect in dialect()) {
        let body = talk.body(dialect, JsonStyle(style));
        let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
        let log = scanned(&scan);
        let mut projection = projected(&log, dialect);
        let changes = changes(&log, projection.window().unwrap(), dialect);
        prop_assert_eq!(&changes, &vec![]);
        let spliced = splice(&scan, &changes).unwrap();
        prop_assert_eq!(spliced.body.as_ref(), body.as_bytes());
    }

    #[test]
    fn a_plan_is_carried_out_on_the_bytes(talk in talk(10), style in any::<u64>(), dialect in dialect()) {
        let body = talk.body(dialect, JsonStyle(style));
        let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
        let log = scanned(&scan);
        let mut projection = projected(&log, dialect);
        projection.carry_out(plan(&log));
        let window = projection.window().unwrap();
        let spliced = splice(&scan, &changes(&log, window, dialect)).unwrap();
        let after = BodyScan::new(&spliced.body, dialect).unwrap();
        prop_assert_eq!(validate(&after), vec![]);
        if spliced.skipped.is_empty() {
            prop_assert_eq!(texts(scanned(&after).messages().iter()), texts(window.messages()));
        }
    }

    #[test]
    fn a_body_that_a_provider_would_refuse_is_repaired(history in any_history(16), dialect in dialect()) {
        // No client writes an output into an answer, and the model has no place for that.
        prop_assume!(!history.iter().any(|m| m.role == Role::Assistant && m.outputs().next().is_some()));
        let body = written(&history, dialect);
        let Ok(scan) = BodyScan::new(body.as_bytes(), dialect) else { return Ok(()) };
        let log = scanned(&scan);
        let mut projection = projected(&log, dialect);
        let window = projection.window().unwrap();
        // What cannot be spliced goes through as it came.
        let Ok(spliced) = splice(&scan, &changes(&log, window, dialect)) else { return Ok(()) };
        let after = BodyScan::new(&spliced.body, dialect).unwrap();
        prop_assert_eq!(validate(&after), vec![], "{}", String::from_utf8_lossy(&spliced.body));
    }
}

/// A body with these messages, as the dialect's writer gives them.
fn written(history: &[Message], dialect: Dialect) -> String {
    let list = |items: Vec<trimtab::model::RawJson>| {
        let items: Vec<&str> = items.iter().map(trimtab::model::RawJson::as_str).collect();
        items.join(",")
    };
    match dialect {
        Dialect::Chat => {
            let items = history.iter().flat_map(chat::write_message).collect();
            format!(r#"{{"messages":[{}]}}"#, list(items))
        }
        Dialect::Responses => format!(r#"{{"input":[{}]}}"#, list(responses::write_input(history))),
        Dialect::Messages => {
            let request = messages::write_request(history);
            format!(r#"{{"messages":[{}]}}"#, list(request.messages))
        }
    }
}

#[test]
fn calls_of_responses_keep_their_ids_in_other_dialects() {
    let body = br#"{"input":[{"role":"user","content":"look"},
        {"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":"{}"},
        {"type":"function_call_output","call_id":"call_1","output":"text"}]}"#;
    let log = scanned(&BodyScan::new(body, Dialect::Responses).unwrap());
    let history: Vec<Message> = log
        .messages()
        .iter()
        .map(|one| Message::clone(one))
        .collect();
    for dialect in Dialect::ALL {
        let body = written(&history, dialect);
        let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
        assert_eq!(validate(&scan), vec![], "{body}");
    }
}
