//! What is done when the provider says that the window was too large.

use serde_json::{Value, json};
use trimtab::engine::compaction::recovery;
use trimtab::engine::policy::Policy;
use trimtab::model::{Message, Usage};
use trimtab::session::{Limits, RecoveryOutcome, SessionEventKind, SummariserAnswer};
use trimtab::wire::overflow::{ErrorSizes, OverflowKind, OverflowVerdict};

use super::{messages, written};
use crate::front::{Framed, Question, in_words, preset, says, window};

/// What a provider says that refuses a prompt for a token too many.
fn refused() -> OverflowVerdict {
    OverflowVerdict {
        kind: OverflowKind::Prompt,
        sizes: ErrorSizes {
            excess: Some(1),
            ..ErrorSizes::default()
        },
        ..OverflowVerdict::default()
    }
}

/// The case after the answer of its frame was dropped, so that the case has the oldest message
/// that may go.
fn case_is_oldest(policy: Policy, case: Vec<Message>) -> Framed {
    let mut framed = Framed::new(policy, Limits::default(), case, &Question::Free);
    framed.session.ready().unwrap();
    framed.session.recover(&refused()).unwrap();
    framed.session.ready().unwrap();
    framed.session.record(&Usage::default()).unwrap();
    framed.session.events();
    framed
}

pub(super) fn remove_oldest(input: &Value) -> Value {
    let case = messages(&input["messages"]);
    let before = written(&case);
    let mut framed = case_is_oldest(preset("checkpoint"), case);
    framed.session.recover(&refused()).unwrap();
    let after = in_words(&window(&mut framed.session));
    let mut list = before.as_array().into_iter().flatten();
    let removed = list.find(|message| !after.as_array().unwrap().contains(message));
    json!({"removed": removed, "messages": after})
}

/// The first call and its retries, as an agent makes them.
pub(super) fn dropping(input: &Value) -> Value {
    let mut policy = preset("checkpoint");
    policy.recovery.retries = u32::try_from(input["max_retries"].as_u64().unwrap()).unwrap();
    let mut framed = case_is_oldest(policy, messages(&input["messages"]));
    let (ok, calls) = calls(&mut framed, input, &says(""));
    let dropped = framed.events.iter();
    let removals = dropped.filter(|event| event.kind == SessionEventKind::Dropped);
    json!({
        "ok": ok, "llm_calls": calls, "removals": removals.count(),
        "messages": in_words(&window(&mut framed.session)),
    })
}

pub(super) fn compacting(input: &Value) -> Value {
    let mut policy = preset("archive");
    policy.compaction.auto = !input["compactor"].is_null();
    let case = vec![Message::user("a question"), Message::assistant("an answer")];
    let mut framed = Framed::new(policy, Limits::default(), case, &Question::Free);
    let answer = match input["compactor"].as_str() {
        Some("ok") => says("S"),
        _ => SummariserAnswer::Failed("no answer".to_owned()),
    };
    let (ok, calls) = calls(&mut framed, input, &answer);
    let asked = framed.asked;
    let done = framed.events.iter();
    let done = done
        .filter(|event| event.kind == SessionEventKind::Compacted)
        .count();
    // It starts when the summariser is asked, and ends when its plan is carried out.
    let starts = std::iter::repeat_n("compaction_start", asked);
    let ends = std::iter::repeat_n("compaction_end", done);
    let events: Vec<_> = starts.chain(ends).collect();
    json!({"ok": ok, "llm_calls": calls, "compactions": asked, "events": events})
}

/// Calls a model that refuses some prompts, as an agent does: whether one was taken, and how
/// many calls there were.
fn calls(framed: &mut Framed, input: &Value, summary: &SummariserAnswer) -> (bool, u64) {
    let failures = input["overflow_failures"].as_u64().unwrap();
    let mut calls = 0;
    loop {
        framed.session.ready().unwrap();
        calls += 1;
        if calls > failures {
            return (true, calls);
        }
        let recovered = framed.session.recover(&refused()).unwrap();
        framed.events.extend(framed.session.events());
        match recovered {
            RecoveryOutcome::Retry => {}
            RecoveryOutcome::Summarise(pending) => {
                framed.finish(pending, summary);
            }
            RecoveryOutcome::GiveUp => return (false, calls),
        }
    }
}

pub(super) fn half_of_turns(input: &Value) -> Value {
    let history = messages(&input["history"]);
    let summary = input["summary"].as_str().unwrap_or_default();
    match recovery::half_of_turns(&history) {
        Some(cut) => json!({
            "compressed": true, "dropped": cut, "history": written(&history[cut..]),
            "summary": recovery::with_note(summary, cut),
        }),
        None => json!({
            "compressed": false, "dropped": 0, "history": written(&history), "summary": summary,
        }),
    }
}
