//! What was run.

use std::borrow::Borrow;

use trimtab_model::rounds::{self, CallPlace};
use trimtab_model::{Call, Message, Output};

use super::carried::Carried;
use super::outcome::CallOutcome;
use super::section::{Section, Title};
use crate::compaction::room::Room;
use crate::compaction::text::{clipped, short_arguments};

/// Characters of the arguments of a call.
const ARGUMENTS: usize = 80;
/// Characters of an item that an earlier summary had.
const CARRIED: usize = 140;
/// More runs than this are not looked at.
const MOST: usize = 400;

/// A call, how it ended, and how often it was made in a row.
struct Run<'m> {
    call: &'m Call,
    outcome: CallOutcome,
    times: usize,
}

/// The calls, equal ones in a row as one.
pub(super) fn runs<M: Borrow<Message>>(
    replaced: &[M],
    carried: &Carried<'_>,
    room: &Room<'_>,
) -> Section {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let rounds = rounds::pair(replaced).rounds;
    let calls = rounds.iter().flat_map(|round| &round.calls).rev();
    for place in calls {
        let Some(call) = call_at(replaced, place) else {
            continue;
        };
        let outcome = CallOutcome::of(call, output_at(replaced, place));
        let full = runs.len() == MOST;
        match runs.last_mut() {
            Some(last) if is_same(last, call, outcome) => last.times += 1,
            _ if full => break,
            _ => runs.push(Run {
                call,
                outcome,
                times: 1,
            }),
        }
    }
    let before = carried
        .items(Title::Runs)
        .map(|item| clipped(&item, CARRIED));
    let shown = before.chain(runs.iter().rev().map(line));
    Section::newest(Title::Runs, shown, room)
}

fn is_same(run: &Run<'_>, call: &Call, outcome: CallOutcome) -> bool {
    run.call.name == call.name && run.call.arguments == call.arguments && run.outcome == outcome
}

fn line(run: &Run<'_>) -> String {
    let call = short_arguments(run.call, ARGUMENTS);
    let outcome = run.outcome.text();
    match run.times {
        1 => format!("{call}: {outcome}"),
        times => format!("{call} x{times}: {outcome}"),
    }
}

/// The call that stands at `place`.
pub(super) fn call_at<'m, M: Borrow<Message>>(
    messages: &'m [M],
    place: &CallPlace,
) -> Option<&'m Call> {
    let message = messages.get(place.call.message)?.borrow();
    message.parts.get(place.call.part)?.as_call()
}

/// The output of the call that stands at `place`.
pub(super) fn output_at<'m, M: Borrow<Message>>(
    messages: &'m [M],
    place: &CallPlace,
) -> Option<&'m Output> {
    let place = place.output?;
    let message = messages.get(place.message)?.borrow();
    message.parts.get(place.part)?.as_output()
}
