//! The measures, on conversations made by hand.

use std::sync::Arc;

use trimtab_engine::policy::{PRESETS, Policy};
use trimtab_model::estimate::Measure;
use trimtab_model::{Call, Message, Role};

use super::bill::{self, USUAL};
use super::managed::ManagedSession;
use super::manager::{ManagerError, SentWindow, ShownRef, WindowManager};
use super::needs::{NeedKind, identifiers, needs};
use super::plain_rules::SendAll;
use super::{ReplaySettings, replay};

fn call(id: &str, arguments: &str) -> Message {
    Message::assistant("").with_call(Call::new(id, "read", arguments))
}

fn log(messages: impl IntoIterator<Item = Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}

/// A listing, `between` rounds of nothing, and a call that uses a path of the listing.
fn listing_then_use(between: usize) -> Vec<Arc<Message>> {
    let mut messages = vec![
        Message::user("tidy up"),
        call("0", "{}"),
        Message::output("0", "src/parser/lexer.rs\nsrc/parser/tokens.rs\n"),
    ];
    for round in 1..=between {
        messages.push(call(&round.to_string(), "{}"));
        messages.push(Message::output(round.to_string(), "nothing"));
    }
    messages.push(call("last", r#"{"path": "src/parser/lexer.rs"}"#));
    log(messages)
}

#[test]
fn identifiers_are_long_and_joined() {
    let text = "see `src/parser/lexer.rs`, max_retries=3; tokenizer, a.b, /leading";
    let found: Vec<&str> = identifiers(text).collect();
    assert_eq!(found, ["src/parser/lexer.rs", "max_retries"]);
}

#[test]
fn a_name_from_an_old_output_is_needed() {
    let found = needs(&listing_then_use(2));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].text, "src/parser/lexer.rs");
    assert_eq!((found[0].call, found[0].source), (7, 2));
    assert_eq!(found[0].kind, NeedKind::OldName);
}

#[test]
fn a_name_from_the_two_newest_outputs_is_fresh() {
    let found = needs(&listing_then_use(1));
    assert_eq!((found.len(), found[0].kind), (1, NeedKind::FreshName));
}

#[test]
fn a_name_that_somebody_said_is_not() {
    let mut said = listing_then_use(2);
    said[0] = Arc::new(Message::user("tidy up src/parser/lexer.rs"));
    assert_eq!(needs(&said), []);
}

#[test]
fn a_name_is_needed_once() {
    let mut twice = listing_then_use(2);
    twice.push(Arc::new(Message::output("last", "text")));
    twice.push(Arc::new(call(
        "again",
        r#"{"path": "src/parser/lexer.rs"}"#,
    )));
    assert_eq!(needs(&twice).len(), 1);
}

/// Shows the last message only, and names a ref or does not.
struct Forgetful {
    refs: Vec<ShownRef>,
    text: String,
}

impl WindowManager for Forgetful {
    fn admit(&mut self, _: &Arc<Message>) -> Result<(), ManagerError> {
        Ok(())
    }

    fn send(&mut self) -> Result<SentWindow, ManagerError> {
        Ok(SentWindow {
            messages: log([Message::user(&self.text)]),
            refs: self.refs.clone(),
            ..SentWindow::default()
        })
    }
}

fn recalled(text: &str, position: usize) -> (u64, u64, u64) {
    let stored = trimtab_testkit::made_ref("abcdefghijklmnop", None, None);
    let mut manager = Forgetful {
        refs: vec![ShownRef {
            position,
            call_id: "0".to_owned(),
            stored,
        }],
        text: text.to_owned(),
    };
    let log = listing_then_use(2);
    let report = replay(&log, &mut manager, &ReplaySettings::new(1_000), &mut |_| {});
    let names = report.recall.old_names;
    assert_eq!((names.needed, report.needing), (1, 1));
    assert_eq!(report.ready, names.shown);
    assert_eq!(report.fetches, 1 - names.shown);
    (names.shown, names.behind, names.lost)
}

#[test]
fn needed_text_counts_as_shown_retrievable_or_lost() {
    assert_eq!(recalled("see src/parser/lexer.rs", 2), (1, 0, 0));
    assert_eq!(recalled("an excerpt: abcdefghijklmnop", 2), (0, 1, 0));
    assert_eq!(recalled("the ref is not in the window", 2), (0, 0, 1));
    assert_eq!(
        recalled("the ref of another output: abcdefghijklmnop", 4),
        (0, 0, 1)
    );
}

#[test]
fn a_line_that_an_edit_repeats_is_needed_and_costs_a_call_where_it_is_missing() {
    let line = "let total = items.iter().map(price).sum();";
    let mut messages = vec![Message::user("fix it"), call("0", "{}")];
    messages.push(Message::output(
        "0",
        format!("fn total() {{\n    {line}\n}}"),
    ));
    for round in 1..=2 {
        messages.push(call(&round.to_string(), "{}"));
        messages.push(Message::output(round.to_string(), "nothing"));
    }
    let edit = serde_json::json!({"old": format!("    {line}\n}}"), "new": "0"}).to_string();
    messages.push(call("edit", &edit));
    let log = log(messages);
    let settings = ReplaySettings::new(10_000);
    let all = replay(&log, &mut SendAll::default(), &settings, &mut |_| {});
    assert_eq!(
        (all.recall.old_lines.needed, all.recall.old_lines.shown),
        (1, 1)
    );
    assert_eq!((all.ready, all.fetches), (1, 0));
    assert_eq!(all.effective(), all.billed);
    let mut cleared = Archiving::all_but(2);
    let cleared = replay(&log, &mut cleared, &settings, &mut |_| {});
    assert_eq!((cleared.ready, cleared.fetches), (0, 1));
    assert!(cleared.effective() > cleared.billed);
}

#[test]
fn an_output_that_is_cut_when_it_comes_in_is_counted_as_unseen() {
    let mut messages = vec![Message::user("look"), call("0", "{}")];
    messages.push(Message::output("0", "one line of many\n".repeat(2_000)));
    messages.push(Message::assistant("done"));
    let mut middle = Archiving::all_but(0);
    let report = replay(
        &log(messages),
        &mut middle,
        &ReplaySettings::new(50_000),
        &mut |_| {},
    );
    assert_eq!((report.arrived, report.cut_unseen), (1, 1));
    assert!(report.arrived_shown < report.arrived_tokens / 10);
    assert!(report.effective() > report.billed);
}

#[test]
fn sending_all_reads_what_was_sent_and_writes_the_rest() {
    // 400 bytes, then an answer and a question of 40 and 80.
    let log = log([
        Message::user("x".repeat(400)),
        Message::assistant("y".repeat(40)),
        Message::user("z".repeat(80)),
        Message::assistant("done"),
    ]);
    let report = replay(
        &log,
        &mut SendAll::default(),
        &ReplaySettings::new(1_000),
        &mut |_| {},
    );
    assert_eq!(
        (report.calls, report.extended, report.breaks.len()),
        (2, 2, 0)
    );
    // 100 tokens, then 130 of which 100 are read.
    assert_eq!(report.tokens, 230);
    let dollars = (100.0 * 1.25 + 100.0 * 0.1 + 30.0 * 1.25) / 1e6;
    assert!((report.billed.dollars() - dollars).abs() < 1e-12);
    assert_eq!(report.cold, USUAL.input.of(230));
}

/// Shows all but a few of the newest outputs as a word.
struct Archiving {
    log: Vec<Arc<Message>>,
    newest: usize,
}

impl Archiving {
    fn all_but(newest: usize) -> Self {
        let log = Vec::new();
        Self { log, newest }
    }
}

impl WindowManager for Archiving {
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), ManagerError> {
        self.log.push(Arc::clone(message));
        Ok(())
    }

    fn send(&mut self) -> Result<SentWindow, ManagerError> {
        let mut messages = self.log.clone();
        let outputs = messages.iter_mut().rev();
        let outputs = outputs.filter(|message| message.role == Role::Tool);
        for message in outputs.skip(self.newest) {
            let id = message.outputs().next().unwrap().call_id.clone();
            *message = Arc::new(Message::output(id, "[archived]"));
        }
        Ok(SentWindow {
            messages,
            ..SentWindow::default()
        })
    }
}

/// Sends everything, and tools of its own from the third call on.
#[derive(Default)]
struct LateTools {
    log: Vec<Arc<Message>>,
    sends: usize,
    tools: Measure,
}

impl WindowManager for LateTools {
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), ManagerError> {
        self.log.push(Arc::clone(message));
        Ok(())
    }

    fn send(&mut self) -> Result<SentWindow, ManagerError> {
        self.sends += 1;
        Ok(SentWindow {
            messages: self.log.clone(),
            added_tools: if self.sends < 3 {
                Measure::default()
            } else {
                self.tools
            },
            ..SentWindow::default()
        })
    }
}

#[test]
fn tools_are_the_front_of_the_bill_and_a_change_of_them_writes_all_again() {
    let mut messages = vec![Message::user("word ".repeat(2_000))];
    for _ in 0..4 {
        messages.push(Message::assistant("yes"));
        messages.push(Message::user("more"));
    }
    let log = log(messages);
    let measure = |text: &str| Measure::of_text(&text.repeat(1_000));
    let settings = ReplaySettings::new(200_000);
    let with_tools = ReplaySettings {
        tools: measure("tool "),
        ..settings.clone()
    };
    let billed = |settings: &ReplaySettings, added: Measure| {
        let mut manager = LateTools {
            tools: added,
            ..LateTools::default()
        };
        replay(&log, &mut manager, settings, &mut |_| {})
    };
    let plain = billed(&settings, Measure::default());
    let stable = billed(&with_tools, Measure::default());
    let tools = with_tools.count.tokens(&with_tools.tools);
    // Written once and read three times.
    let expected = bill::with_cache(&settings.prices, 3 * tools, tools).pico();
    let found = stable.billed.pico() - plain.billed.pico();
    assert!(
        found.abs_diff(expected) < expected / 50,
        "{found} {expected}"
    );
    assert_eq!(stable.breaks.len(), 0);
    let late = billed(&with_tools, measure("more "));
    assert_eq!(late.breaks.len(), 1);
    let again = late.breaks.first().unwrap();
    assert_eq!((again.number, again.message), (3, 0));
    assert!(again.tokens > tools + 1_900, "{}", again.tokens);
    assert!(late.billed.pico() > stable.billed.pico() + again.cost.pico());
}

#[test]
fn a_break_is_found_where_it_is_and_costs_what_is_written_again() {
    let mut messages = vec![Message::user("q".repeat(40))];
    for round in 0..6 {
        messages.push(call(&round.to_string(), "{}"));
        messages.push(Message::output(round.to_string(), "o".repeat(400)));
    }
    messages.push(Message::assistant("done"));
    let mut archiving = Archiving::all_but(2);
    let report = replay(
        &log(messages),
        &mut archiving,
        &ReplaySettings::new(10_000),
        &mut |_| {},
    );
    // From the third output on, every new one archives an older one.
    assert_eq!(report.breaks.len(), 4);
    assert_eq!(report.breaks[0].message, 2);
    assert!(report.breaks.iter().all(|found| found.tokens > 100));
    assert_eq!(report.faults, 0);
}

#[test]
fn windows_over_the_window_are_counted() {
    let log = log([Message::user("x".repeat(4_000)), Message::assistant("done")]);
    let report = replay(
        &log,
        &mut SendAll::default(),
        &ReplaySettings::new(999),
        &mut |_| {},
    );
    assert_eq!((report.over, report.largest >= 1_000), (1, true));
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
fn an_output_that_archive_summarises_is_behind_the_ref_of_its_summary() {
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
    messages.push(call("last", r#"{"path": "src/parser/lexer_200.rs"}"#));
    let settings = ReplaySettings::new(200_000);
    let policy = Policy::preset("archive").unwrap();
    let mut managed = ManagedSession::new(policy, &settings).unwrap();
    let report = replay(&log(messages), &mut managed, &settings, &mut |_| {});
    let names = report.recall.old_names;
    assert_eq!((names.shown, names.behind, names.lost), (0, 1, 0));
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
        let mut managed = ManagedSession::new(policy, &settings).unwrap();
        let report = replay(&log, &mut managed, &settings, &mut |_| {});
        let texts = &report.fault_texts;
        assert_eq!((report.over, report.faults), (0, 0), "{name}: {texts:?}");
    }
}
