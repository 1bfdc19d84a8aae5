//! Replayed sessions have no fault: not as the engine judges them, not as the bytes that the
//! provider would get.

use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::Dialect;
use trimtab::replay::{ReplayReport, ReplaySettings, parallel, replay};
use trimtab_testkit::is_long;

use super::{Recorded, made, recorded};

fn replayed(session: &Recorded, preset: &str, dialect: Dialect, window: u64) -> ReplayReport {
    let settings = ReplaySettings {
        dialect,
        ..ReplaySettings::new(window)
    };
    let policy = Policy::preset(preset).unwrap();
    replay(&session.log, policy, &settings, &mut |_| {}).unwrap()
}

/// Replays sessions under presets in all dialects; the faults are told with where they are.
fn have_no_fault(sessions: &[Recorded], presets: &[&str], window: u64) {
    let mut jobs = Vec::new();
    for session in sessions {
        for preset in presets {
            jobs.extend(Dialect::ALL.map(|dialect| (session, *preset, dialect)));
        }
    }
    let reports = parallel::map(&jobs, |(session, preset, dialect)| {
        replayed(session, preset, *dialect, window)
    });
    let mut faults = Vec::new();
    for ((session, preset, dialect), report) in jobs.iter().zip(&reports) {
        let told = report.fault_texts.iter().take(1);
        faults.extend(told.map(|text| {
            format!(
                "{preset} {dialect} {}: {} faults, {text}",
                session.id, report.refused
            )
        }));
    }
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
