//! Reasoning that is bound to what came before it: a provider that signs it refuses no window.

use trimtab::model::{Dialect, Message, Part, Reasoning, Role};
use trimtab::replay::parallel;
use trimtab::session::{Moment, Session, Setup};
use trimtab_testkit::is_long;
use trimtab_testkit::upstream::StrictProvider;

use super::{Recorded, body_of, is_asked, made, recorded};
use crate::common::{self, limits, managed, messages, usage};

/// The dialects that have sealed reasoning.
const SEALED: [Dialect; 2] = [Dialect::Messages, Dialect::Responses];

/// What became of a session.
#[derive(Default)]
struct Outcome {
    calls: usize,
    without_window: usize,
    rewrites: usize,
    refused: Vec<String>,
}

fn open(preset: &str, dialect: Dialect, window: u64) -> Session {
    let setup = common::setup(preset, limits(window, 1));
    common::open(Setup { dialect, ..setup })
}

/// The request for a call, and the tokens of its window; none if there is no window.
fn request(session: &mut Session, dialect: Dialect) -> Option<(Vec<u8>, u64)> {
    for moment in [Moment::AfterOutputs, Moment::BeforeCall] {
        if let Some(pending) = session.check(moment).unwrap() {
            session.finish(pending).unwrap();
        }
    }
    let tokens = session.ready().ok()?.tokens;
    let body = body_of(
        "\"model\":\"m\",\"max_tokens\":64",
        &messages(session),
        dialect,
    );
    Some((body.into_bytes(), tokens))
}

/// The message with a sealed thought before what it says, in place of those it was recorded with.
fn thinking(message: &Message, thought: &str, seal: Option<String>) -> Message {
    let mut message = message.clone();
    message
        .parts
        .retain(|part| !matches!(part, Part::Reasoning(_)));
    if seal.is_some() {
        let thought = Reasoning {
            text: thought.to_owned(),
            seal,
            ..Reasoning::default()
        };
        message.parts.insert(0, Part::Reasoning(thought));
    }
    message
}

/// The message as a client of the dialect would have sent it: ids that every provider takes, and
/// nobody but the system speaks for the system, at the front.
fn as_client(recorded: &Recorded, at: usize) -> Message {
    let mut message = Message::clone(&recorded.log[at]);
    message.meta = trimtab::model::MessageMetadata::default();
    let began = recorded.log[..at].iter();
    if message.role == Role::System && began.clone().any(|said| said.role != Role::System) {
        message.role = Role::User;
    }
    message
}

fn drive(recorded: &Recorded, preset: &str, dialect: Dialect, window: u64) -> Outcome {
    let mut session = open(preset, dialect, window);
    let mut strict = StrictProvider::new(dialect);
    let mut outcome = Outcome::default();
    for at in 0..recorded.log.len() {
        let mut message = as_client(recorded, at);
        if message.role == Role::Assistant {
            let thought = format!("thought number {at}");
            let mut seal = None;
            if is_asked(&recorded.log, at) {
                outcome.calls += 1;
                match request(&mut session, dialect) {
                    None => outcome.without_window += 1,
                    Some((body, tokens)) => {
                        let refused = strict.refuses(&body).into_iter();
                        outcome.refused.extend(
                            refused.map(|rule| format!("{} call {at}: {rule}", recorded.id)),
                        );
                        let calls = message.calls().map(|call| call.id.clone());
                        seal = strict.signs(&body, &thought, calls);
                        session.record(&usage(tokens)).unwrap();
                    }
                }
            }
            message = thinking(&message, &thought, seal);
        }
        session.admit(message).unwrap();
    }
    outcome.rewrites = session.projection().journal().undoable();
    outcome
}

/// Drives sessions through presets; none of their windows may be refused.
fn none_is_refused(sessions: &[Recorded], presets: &[&str], windows: &[u64]) {
    let mut jobs = Vec::new();
    for session in sessions {
        for preset in presets {
            for dialect in SEALED {
                let each = windows
                    .iter()
                    .map(|window| (session, *preset, dialect, *window));
                jobs.extend(each);
            }
        }
    }
    let outcomes = parallel::map(&jobs, |(session, preset, dialect, window)| {
        drive(session, preset, *dialect, *window)
    });
    let mut sum = Outcome::default();
    for ((_, preset, dialect, window), outcome) in jobs.iter().zip(outcomes) {
        sum.calls += outcome.calls;
        sum.rewrites += outcome.rewrites;
        sum.without_window += outcome.without_window;
        let told = outcome.refused.into_iter().take(3);
        sum.refused
            .extend(told.map(|text| format!("{preset} {dialect} {window}: {text}")));
    }
    eprintln!(
        "{} calls, {} plans, {} calls without a window",
        sum.calls, sum.rewrites, sum.without_window
    );
    assert!(sum.refused.is_empty(), "{}", sum.refused.join("\n"));
    assert!(sessions.is_empty() || sum.rewrites > 0);
}

#[test]
fn no_window_of_a_made_session_is_refused() {
    let sessions: Vec<Recorded> = (0..if is_long() { 40 } else { 2 }).map(made).collect();
    none_is_refused(&sessions, &managed().collect::<Vec<_>>(), &[9_000]);
}

#[test]
fn no_window_of_a_recorded_session_is_refused() {
    if is_long() {
        none_is_refused(
            &recorded(260_000),
            &managed().collect::<Vec<_>>(),
            &[20_000, 40_000],
        );
    } else {
        let mut sessions = recorded(60_000);
        sessions.retain(|session| session.tokens() > 30_000);
        none_is_refused(&sessions, &managed().collect::<Vec<_>>(), &[20_000]);
    }
}
