//! What one more call of a session costs, early and late, under every preset.
//!
//! `TRIMTAB_QUICK=1` takes a minute: one dialect, and no session of 50,000 messages. Names of
//! presets as arguments choose among them.

#![expect(
    clippy::expect_used,
    reason = "a benchmark may stop where a test would"
)]

#[path = "../tests/it/growth/talk.rs"]
mod talk;

use trimtab::engine::policy::PRESETS;
use trimtab::model::Dialect;
use trimtab_testkit::bench::BenchComparison;

use talk::{Room, Talk};

fn main() {
    let quick = std::env::var_os("TRIMTAB_QUICK").is_some();
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let is_chosen = |name: &str| {
        let mut names = chosen
            .iter()
            .filter(|name| !name.starts_with('-'))
            .peekable();
        names.peek().is_none() || names.any(|chosen| chosen == name)
    };
    let dialects = if quick {
        &Dialect::ALL[..1]
    } else {
        &Dialect::ALL[..]
    };
    for preset in PRESETS
        .iter()
        .filter(|preset| preset.fit() && is_chosen(preset.name))
    {
        for room in Room::ALL {
            for dialect in dialects {
                compare(preset.name, room, *dialect, quick);
            }
        }
    }
}

fn compare(preset: &'static str, room: Room, dialect: Dialect, quick: bool) {
    let talk = || Talk::new(preset, dialect, room);
    let window = match room {
        Room::Compacts => "a window that compacts",
        Room::NeverFills => "a window that never fills",
    };
    // A compaction comes once in 6 to 70 calls: fewer calls would make the mean depend on how many
    // compactions happen to be among them.
    let calls = 600;
    let title = |what: &str| format!("{preset}, {window}, {dialect}: one more call {what}");
    let mut rounds = BenchComparison::new(title("by rounds"), calls).by_processor_time();
    for at in [100, 5_000] {
        let mut talk = talk().at_round(at);
        rounds = rounds.candidate(format!("at round {at}"), move || talk.call());
    }
    rounds.run();
    let mut messages = BenchComparison::new(title("by messages"), calls).by_processor_time();
    let sizes: &[usize] = if quick {
        &[500, 5_000]
    } else {
        &[500, 5_000, 50_000]
    };
    for at in sizes {
        let mut talk = talk().with_messages(*at);
        messages = messages.candidate(format!("at {at} messages"), move || talk.call());
    }
    messages.run();
}
