//! What the operator can do to a session: compact it, take that back, pin a message, choose
//! another preset.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use trimtab::session::{ManualCompaction, Session, SessionError, SessionEvent};
use trimtab_engine::plan::{Edit, Plan};

use super::api::{ApiProblem, ApiRequest, json as to_json};
use super::message_data::{LONGEST_TEXT, plain_text, shortened};
use super::session_access::SessionAccess;

/// The session that an order names.
fn ordered<'a>(request: &'a ApiRequest, order: &Value) -> Result<SessionAccess<'a>, ApiProblem> {
    let id = order.get("id").and_then(Value::as_str).unwrap_or_default();
    SessionAccess::new(request, id)
}

fn manual_compaction(order: &Value) -> ManualCompaction {
    let instructions = order.get("instructions").and_then(Value::as_str);
    let turns = order.get("keep_turns").and_then(Value::as_u64);
    ManualCompaction {
        instructions: shortened(instructions.unwrap_or_default(), 4_000),
        keep_turns: turns.and_then(|turns| usize::try_from(turns).ok()),
        ..ManualCompaction::default()
    }
}

/// `POST preview`: what a compaction would do. Nothing is done.
pub(super) fn preview(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let order = request.order()?;
    let mut session = ordered(request, &order)?.scratch()?;
    let shown = shown_messages(&session);
    let done = carry_out(&mut session, &manual_compaction(&order))?;
    let plan = done
        .0
        .then(|| session.projection().journal().newest_compaction());
    let hidden = no_longer_shown(&shown, &shown_messages(&session));
    to_json(&json!({
        "done": done.0,
        "events": done.1,
        "plan": plan.flatten().map(|plan| plan_json(plan, &hidden)),
    }))
}

/// `POST compact`: replaces old rounds by a summary that is written without a model.
pub(super) fn compact(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let order = request.order()?;
    let access = ordered(request, &order)?;
    let (done, events) = access.change(|session| carry_out(session, &manual_compaction(&order)))?;
    request.shared.history.tell("changed", access.id.as_str());
    to_json(&json!({"done": done, "events": events}))
}

fn carry_out(
    session: &mut Session,
    wanted: &ManualCompaction,
) -> Result<(bool, Vec<SessionEvent>), SessionError> {
    let done = match session.compact(wanted)? {
        Some(pending) => session.finish(pending)?,
        None => false,
    };
    Ok((done, session.events()))
}

/// For each message of the log, whether it is in the window.
fn shown_messages(session: &Session) -> Vec<bool> {
    let projection = session.projection();
    let positions = 0..projection.log().len();
    positions
        .map(|at| projection.slot_of(at).is_some())
        .collect()
}

/// The ranges of messages that were in the window before and are not in it after. The edits of a
/// plan do not tell: they can name messages that were hidden before, and instructions, which stay.
fn no_longer_shown(before: &[bool], after: &[bool]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        if !before || *after {
            continue;
        }
        match ranges.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => ranges.push((at, at + 1)),
        }
    }
    ranges
}

/// What a plan hides and what it puts there.
fn plan_json(plan: &Plan, hidden: &[(usize, usize)]) -> Value {
    let texts = plan.edits.iter().filter_map(|edit| match edit {
        Edit::Insert { message, .. } => Some(shortened(&plain_text(message), LONGEST_TEXT)),
        _ => None,
    });
    json!({
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "hidden": hidden,
        "texts": texts.collect::<Vec<String>>(),
    })
}

/// `POST undo`: takes the newest plan back.
pub(super) fn undo(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let order = request.order()?;
    let access = ordered(request, &order)?;
    let (done, events) = access.change(|session| Ok((session.undo()?, session.events())))?;
    request.shared.history.tell("changed", access.id.as_str());
    to_json(&json!({"done": done, "events": events}))
}

/// `POST pin`: keeps a message in the window, or lets go of it.
pub(super) fn pin(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let order = request.order()?;
    let access = ordered(request, &order)?;
    let at = order.get("message").and_then(Value::as_u64);
    let at = at.and_then(|at| usize::try_from(at).ok());
    let at = at.ok_or_else(|| ApiProblem::bad("the order names no message"))?;
    let is_pinned = order.get("pinned").and_then(Value::as_bool).unwrap_or(true);
    let done = access.change(|session| session.pin(at, is_pinned))?;
    request.shared.history.tell("changed", access.id.as_str());
    to_json(&json!({"done": done}))
}

/// `POST preset`: lets another preset decide from now on.
pub(super) fn preset(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let order = request.order()?;
    let access = ordered(request, &order)?;
    let name = order
        .get("preset")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let unknown = || ApiProblem::bad(format!("there is no preset {name:?}"));
    let policy = request.settings.policy(name).ok_or_else(unknown)?;
    let set = access.with_branch(|branch| branch.set_policy(policy, true));
    match set {
        Some(Ok(())) => {
            request.shared.history.tell("changed", access.id.as_str());
            to_json(&json!({"done": true}))
        }
        Some(Err(error)) => Err(ApiProblem::new(StatusCode::CONFLICT, error.to_string())),
        None => Err(ApiProblem::new(
            StatusCode::CONFLICT,
            "the session is not in memory\nhint: a preset can be chosen once its client has sent \
             a request since the proxy started",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::no_longer_shown;

    #[test]
    fn only_messages_that_were_shown_before_are_listed_as_hidden() {
        let before = [true, true, true, false, true, true];
        let after = [true, false, false, false, false, true];
        assert_eq!(no_longer_shown(&before, &after), [(1, 3), (4, 5)]);
    }
}
