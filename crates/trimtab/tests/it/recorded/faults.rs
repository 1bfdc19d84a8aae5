//! Replayed sessions have no fault: not as the engine judges them, not as the bytes that the
//! provider would get.

use std::sync::Arc;

use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::{Call, Dialect, Message};
use trimtab::replay::{ReplaySettings, parallel, replay};
use trimtab::wire::scan::BodyScan;
use trimtab::wire::validate::validate;
use trimtab_testkit::is_long;

use super::{Recorded, body_of, made, recorded};

/// The first fault of a window, as the bytes that the provider would get.
fn fault_in(window: &[Arc<Message>], dialect: Dialect) -> Option<String> {
    let body = body_of("\"model\":\"m\"", window, dialect);
    match BodyScan::new(body.as_bytes(), dialect) {
        Ok(scan) => Some(validate(&scan).first()?.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

/// The first fault of a session under a preset.
fn first_fault(session: &Recorded, preset: &str, dialect: Dialect, window: u64) -> Option<String> {
    let settings = ReplaySettings {
        dialect,
        ..ReplaySettings::new(window)
    };
    let policy = Policy::preset(preset).unwrap();
    let (mut first, mut last) = (None, Vec::new());
    // A window that goes on like the one before is checked as part of a later one: whole windows
    // with every call would take the square of the length of the session.
    let report = replay(&session.log, policy, &settings, &mut |step| {
        if !step.messages.starts_with(&last) {
            first = first.take().or_else(|| fault_in(&last, dialect));
        }
        last = step.messages.to_vec();
    });
    let by_session = report.unwrap().fault_texts.into_iter().next();
    by_session.or(first).or_else(|| fault_in(&last, dialect))
}

/// Replays sessions under presets in all dialects; the faults are told with where they are.
fn have_no_fault(sessions: &[Recorded], presets: &[&str], window: u64) {
    let mut jobs = Vec::new();
    for session in sessions {
        for preset in presets {
            jobs.extend(Dialect::ALL.map(|dialect| (session, *preset, dialect)));
        }
    }
    let faults = parallel::map(&jobs, |(session, preset, dialect)| {
        let fault = first_fault(session, preset, *dialect, window)?;
        Some(format!("{preset} {dialect} {}: {fault}", session.id))
    });
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn presets() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

#[test]
fn made_sessions_have_no_fault() {
    let sessions: Vec<Recorded> = (0..2).map(made).collect();
    have_no_fault(&sessions, &presets(), 9_000);
}

#[test]
fn recorded_sessions_have_no_fault() {
    if is_long() {
        have_no_fault(&recorded(u64::MAX), &presets(), 40_000);
    } else {
        let mut sessions = recorded(30_000);
        sessions.retain(|session| session.tokens() > 18_000);
        sessions.truncate(2);
        have_no_fault(&sessions, &presets(), 16_000);
    }
}

#[test]
fn windows_that_a_provider_rejects_are_found_in_every_dialect() {
    let window = [
        Message::system("be brief"),
        Message::user("look"),
        Message::assistant("").with_call(Call::new("c1", "read", "{}")),
        Message::output("c1", "text"),
        Message::user("and?"),
        Message::assistant("that is all"),
    ]
    .map(Arc::new);
    for dialect in Dialect::ALL {
        assert_eq!(fault_in(&window, dialect), None, "{dialect}");
        let fault = fault_in(&window[..3], dialect).unwrap();
        assert!(fault.contains("c1"), "{dialect}: {fault}");
    }
}
