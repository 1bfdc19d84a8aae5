//! What is done when the provider says that the window was too large.

use serde_json::{Value, json};
use trimtab::engine::decide::fit;
use trimtab::engine::policy::Policy;
use trimtab::model::Message;
use trimtab::session::{Limits, RecoveryOutcome, SessionEventKind, SummariserAnswer};
use trimtab::wire::overflow::{ErrorSizes, OverflowKind, OverflowVerdict};

use super::{Must, Ran, messages, number, written};
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
fn case_is_oldest(policy: Policy, case: Vec<Message>) -> Ran<Framed> {
    let mut framed = Framed::new(policy, Limits::default(), case, &Question::Free)?;
    framed.session.ready().must("ready")?;
    framed.session.recover(&refused()).must("recover")?;
    framed.session.ready().must("ready")?;
    framed.session.begin_call();
    framed.session.events();
    Ok(framed)
}

pub(super) fn remove_oldest(input: &Value) -> Ran {
    let case = messages(&input["messages"])?;
    let before = written(&case);
    let mut framed = case_is_oldest(preset("checkpoint"), case)?;
    framed.session.recover(&refused()).must("recover")?;
    let after = in_words(&window(&mut framed.session)?);
    let mut list = before.as_array().into_iter().flatten();
    let left = after.as_array().must("messages")?;
    let removed = list.find(|message| !left.contains(message));
    Ok(json!({"removed": removed, "messages": after}))
}

/// The first call and its retries, as an agent makes them.
pub(super) fn dropping(input: &Value) -> Ran {
    let mut policy = preset("checkpoint");
    policy.recovery.retries = number(&input["max_retries"])
        .try_into()
        .must("max_retries")?;
    let mut framed = case_is_oldest(policy, messages(&input["messages"])?)?;
    let (ok, calls) = calls(&mut framed, input, &says(""))?;
    let dropped = framed.events.iter();
    let removals = dropped.filter(|event| event.kind == SessionEventKind::Dropped);
    Ok(json!({
        "ok": ok, "llm_calls": calls, "removals": removals.count(),
        "messages": in_words(&window(&mut framed.session)?),
    }))
}

pub(super) fn compacting(input: &Value) -> Ran {
    let mut policy = preset("archive");
    policy.compaction.auto = !input["compactor"].is_null();
    let case = vec![Message::user("a question"), Message::assistant("an answer")];
    let mut framed = Framed::new(policy, Limits::default(), case, &Question::Free)?;
    let answer = match input["compactor"].as_str() {
        Some("ok") => says("S"),
        _ => SummariserAnswer::Failed("no answer".to_owned()),
    };
    let (ok, calls) = calls(&mut framed, input, &answer)?;
    let asked = framed.asked;
    let done = framed.events.iter();
    let done = done
        .filter(|event| event.kind == SessionEventKind::Compacted)
        .count();
    // It starts when the summariser is asked, and ends when its plan is carried out.
    let starts = std::iter::repeat_n("compaction_start", asked);
    let ends = std::iter::repeat_n("compaction_end", done);
    let events: Vec<_> = starts.chain(ends).collect();
    Ok(json!({"ok": ok, "llm_calls": calls, "compactions": asked, "events": events}))
}

/// Calls a model that refuses some prompts, as an agent does: whether one was taken, and how
/// many calls there were.
fn calls(framed: &mut Framed, input: &Value, summary: &SummariserAnswer) -> Ran<(bool, u64)> {
    let failures = input["overflow_failures"]
        .as_u64()
        .must("overflow_failures")?;
    let mut calls = 0;
    loop {
        framed.session.ready().must("ready")?;
        calls += 1;
        if calls > failures {
            return Ok((true, calls));
        }
        let recovered = framed.session.recover(&refused()).must("recover")?;
        framed.events.extend(framed.session.events());
        match recovered {
            RecoveryOutcome::Retry => {}
            RecoveryOutcome::Summarise(pending) => {
                framed.finish(pending, summary)?;
            }
            RecoveryOutcome::GiveUp => return Ok((false, calls)),
        }
    }
}

pub(super) fn half_of_turns(input: &Value) -> Ran {
    let history = messages(&input["history"])?;
    let summary = input["summary"].as_str().unwrap_or_default();
    Ok(match fit::half_of_turns(&history) {
        Some(cut) => json!({
            "compressed": true, "dropped": cut, "history": written(&history[cut..]),
            "summary": fit::with_note(summary, cut),
        }),
        None => json!({
            "compressed": false, "dropped": 0, "history": written(&history), "summary": summary,
        }),
    })
}
