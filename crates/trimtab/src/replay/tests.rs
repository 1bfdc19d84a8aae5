//! The figures, on conversations made by hand.

use std::sync::Arc;

use trimtab_engine::policy::{PRESETS, Policy};
use trimtab_model::estimate::Measure;
use trimtab_model::{Call, Message};

use super::bill::with_cache;
use super::sizes::larger_count;
use super::{ReplayReport, ReplaySettings, replay, replay_everything};

fn call(id: &str, arguments: &str) -> Message {
    Message::assistant("").with_call(Call::new(id, "read", arguments))
}

fn log(messages: impl IntoIterator<Item = Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}

fn everything(log: &[Arc<Message>], settings: &ReplaySettings) -> ReplayReport {
    replay_everything(log, settings, &mut |_| {}).unwrap()
}

#[test]
fn sending_all_reads_what_was_sent_and_writes_the_rest() {
    let log = log([
        Message::user("a question of many words ".repeat(40)),
        Message::assistant("a short answer"),
        Message::user("another question ".repeat(9)),
        Message::assistant("done"),
    ]);
    let tools = Measure::of_text(&"tool ".repeat(1_000));
    let settings = ReplaySettings {
        tools,
        ..ReplaySettings::new(10_000)
    };
    let report = everything(&log, &settings);
    assert_eq!((report.calls, report.breaks, report.hidden), (2, 0, 0));
    let tokens = |messages: &[Arc<Message>]| -> Measure {
        messages.iter().map(|message| Measure::of(message)).sum()
    };
    let (first, second) = (tokens(&log[..1]), tokens(&log[..3]));
    assert_eq!(report.tokens, first.tokens() + second.tokens());
    assert_eq!(report.largest, larger_count(&second));
    let read = (first + tools).tokens();
    let written = (second + tools).tokens() - read;
    let billed =
        with_cache(&settings.prices, 0, read) + with_cache(&settings.prices, read, written);
    assert_eq!(report.billed, billed);
}

#[test]
fn changed_windows_are_breaks_and_what_they_leave_out_is_hidden() {
    let mut messages = vec![Message::user("tidy up")];
    for round in 0..40 {
        messages.push(call(&round.to_string(), "{}"));
        messages.push(Message::output(
            round.to_string(),
            "many words ".repeat(300),
        ));
    }
    messages.push(Message::assistant("done"));
    let (log, settings) = (log(messages), ReplaySettings::new(12_000));
    let policy = Policy::preset("steady").unwrap();
    let steady = replay(&log, policy, &settings, &mut |_| {}).unwrap();
    assert_eq!((steady.refused, steady.over), (0, 0));
    assert!(steady.breaks > 0 && steady.hidden > 0, "{steady:?}");
    let all = everything(&log, &settings);
    assert!(
        all.over > 0 && all.breaks == 0 && all.hidden == 0,
        "{all:?}"
    );
    assert!(steady.largest < all.largest && steady.billed < all.billed);
}

#[test]
fn windows_over_the_window_are_counted() {
    let log = log([Message::user("x".repeat(4_000)), Message::assistant("done")]);
    let report = everything(&log, &ReplaySettings::new(999));
    assert_eq!((report.over, report.largest >= 1_000), (1, true));
}

#[test]
fn output_that_archive_summarises_is_behind_the_ref_of_its_summary() {
    let lines = (0..400).map(|line| format!("{line} src/parser/lexer_{line}.rs\n"));
    let mut messages = vec![
        Message::user("tidy up"),
        call("0", "{}"),
        Message::output("0", lines.collect::<String>()),
    ];
    for round in 1..=20 {
        messages.push(call(&round.to_string(), "{}"));
        messages.push(Message::output(round.to_string(), "word ".repeat(400)));
    }
    messages.push(Message::assistant("done"));
    let settings = ReplaySettings::new(200_000);
    let policy = Policy::preset("archive").unwrap();
    let mut last = Vec::new();
    replay(&log(messages), policy, &settings, &mut |step| {
        last = step.refs();
    })
    .unwrap();
    assert!(last.iter().any(|shown| shown.position == 2), "{last:?}");
}

/// Rounds whose outputs have far more or far fewer tokens than a quarter of their bytes.
fn dense_and_sparse(rounds: usize) -> Vec<Arc<Message>> {
    let mut messages = vec![Message::user("look")];
    for round in 0..rounds {
        let dense = round % 40 > 20 || round % 3 == 0;
        let output: String = if dense {
            let number = |at: usize| (at * 7_919 + round * 31) % 100_003;
            let line = |at: usize| format!("{:x}-{}\n", number(at), number(at + 1));
            (0..100).map(line).collect::<Vec<_>>().concat()
        } else {
            let words = "international administration responsibilities notwithstanding\n";
            words.repeat(60 + round % 5 * 30)
        };
        messages.push(call(&round.to_string(), "{}"));
        messages.push(Message::output(round.to_string(), output));
        if round % 6 == 5 {
            messages.push(Message::assistant("seen"));
            messages.push(Message::user("go on"));
        }
    }
    messages.push(Message::assistant("that is all"));
    log(messages)
}

#[test]
fn no_preset_sends_more_than_the_window_by_either_count() {
    let log = dense_and_sparse(120);
    let settings = ReplaySettings::new(20_000);
    let policies = PRESETS
        .iter()
        .map(|preset| Policy::preset(preset.name).unwrap());
    for policy in policies.filter(|policy| policy.fit) {
        let name = policy.preset.clone();
        let report = replay(&log, policy, &settings, &mut |_| {}).unwrap();
        let texts = &report.fault_texts;
        assert_eq!((report.over, report.refused), (0, 0), "{name}: {texts:?}");
    }
}
