//! What it costs to let in an output of one megabyte, by its kind and under every preset, beside
//! the steps that all presets share.
//!
//! Names of presets and kinds as arguments choose among them.

#![expect(
    clippy::expect_used,
    reason = "a benchmark may stop where a test would"
)]

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::engine::view::structure::{CutRequest, cut};
use trimtab::model::estimate::Measure;
use trimtab::model::{Call, Message};
use trimtab::session::{Limits, Session, Setup};
use trimtab::store::{FolderStore, Put, SessionId, Store};
use trimtab_testkit::bench::BenchComparison;

const SIZE: usize = 1 << 20;
const ROUNDS: usize = 9;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let log = grow(|n| {
        let level = if n % 500 == 0 { "ERROR" } else { "INFO" };
        format!(
            "2026-11-15T04:{:02}:{:02} {level} worker-{} handled request {n} for /api/items/{}\n",
            n / 60 % 60,
            n % 60,
            n % 7,
            n * 31 % 9_973
        )
    });
    let rows = grow(|n| format!("{{\"id\":{n},\"name\":\"item {n}\",\"tags\":[\"a\",\"b\"]}},"));
    let source = grow(|n| {
        format!(
            "pub fn replace_{n}(&self, messages: &[Message], kept: &Kept) -> Option<Window> {{\n    \
             // Nothing is counted twice.\n    \
             let found = messages.iter().filter(|message| message.is_empty()).count();\n    \
             self.rebuild(found.checked_sub(kept.behind.len())?, Placement::default())\n}}\n\n"
        )
    });
    let html = grow(|n| {
        format!(
            "<div class=\"row item-{n}\"><a href=\"/items/{n}?page={}\">Item {n}</a>\
             <span style=\"color: #{:06x}\">in stock</span></div>\n",
            n % 40,
            n * 7_919 % 0xff_ffff
        )
    });
    let line = log.replace('\n', " ");
    let kinds = [
        ("log lines", log),
        ("JSON", format!("[{rows}0]")),
        ("source", source),
        ("HTML", html),
        ("one line", line),
    ];
    let names = kinds.iter().map(|(kind, _)| *kind);
    let chosen_kinds: Vec<&str> = names.filter(|kind| is_chosen(&chosen, kind)).collect();
    for (kind, text) in kinds {
        if chosen_kinds.is_empty() || chosen_kinds.contains(&kind) {
            compare(kind, &text.into(), folder.path(), &chosen);
        }
    }
}

fn is_chosen(chosen: &[String], name: &str) -> bool {
    chosen.iter().any(|chosen| chosen == name)
}

fn grow(line: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(SIZE + 400);
    for n in 0.. {
        if text.len() >= SIZE {
            break;
        }
        text.push_str(&line(n));
    }
    text
}

fn compare(kind: &str, text: &Rc<str>, folder: &Path, chosen: &[String]) {
    let (measured, viewed, stored) = (Rc::clone(text), Rc::clone(text), Rc::clone(text));
    let bytes = |text: &str| text.len() as u64;
    let shared = store(folder, kind, "shared");
    let mut puts = 0;
    let mut comparison = BenchComparison::new(format!("1 MB of {kind}"), ROUNDS)
        .by_processor_time()
        .candidate("measure it", move || Measure::of_text(&measured).tokens())
        .candidate("cut it to 24,000 bytes", move || {
            let how = CutRequest {
                cap: 24_000,
                measure: &bytes,
                stored: None,
            };
            cut(&viewed, &how).len()
        })
        .candidate("store it", move || {
            puts += 1;
            let id = SessionId::new("puts").expect("a name");
            let put = numbered(&stored, puts);
            shared.put(&id, Put::new("c", &put)).expect("it is stored")
        });
    let any_preset = PRESETS.iter().any(|preset| is_chosen(chosen, preset.name));
    for preset in PRESETS {
        if !any_preset || is_chosen(chosen, preset.name) {
            let mut session = session(store(folder, kind, preset.name), preset.name);
            let text = Rc::clone(text);
            let mut outputs = 0;
            comparison = comparison.candidate(preset.name, move || {
                outputs += 1;
                let id = format!("call_{outputs}");
                let asks = Message::assistant("").with_call(Call::new(&id, "run", "{}"));
                session.admit(asks).expect("it is let in");
                let output = Message::output(&id, numbered(&text, outputs));
                session.admit(output).expect("it is let in")
            });
        }
    }
    comparison.run();
}

/// The text with a number in it, so that no two outputs are the same.
fn numbered(text: &str, number: usize) -> String {
    // JSON ends with `0]`: a digit before that leaves it what it is.
    let (start, last) = text.split_at(text.len() - 2);
    format!("{start}{number}{last}")
}

fn store(folder: &Path, kind: &str, name: &str) -> Arc<dyn Store> {
    let place = folder.join(kind.replace(' ', "-")).join(name);
    Arc::new(FolderStore::open(place).expect("a store"))
}

fn session(store: Arc<dyn Store>, preset: &str) -> Session {
    let setup = Setup {
        limits: Limits {
            window: Some(200_000),
            max_output: Some(8_000),
            bytes: None,
        },
        ..Setup::new(Policy::preset(preset).expect("a preset"))
    };
    let id = SessionId::new("admission").expect("a name");
    let mut session = Session::open(store, id, setup).expect("a session");
    session
        .admit(Message::user("Find out why it fails."))
        .expect("it is let in");
    session
}
