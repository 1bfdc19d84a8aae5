//! Counting and estimating, side by side: `cargo bench -p trimtab-model --bench estimate`.
//!
//! Recorded sessions are used where they lie beside the workspace, generated text otherwise.

use std::path::Path;
use std::rc::Rc;

use tiktoken_rs::CoreBPE;
use trimtab_model::estimate::{Calibration, Measure};
use trimtab_model::{Message, Usage};
use trimtab_testkit::bench::BenchComparison;

fn main() {
    let reference = tiktoken_rs::o200k_base_singleton();
    let text = recorded().unwrap_or_else(generated);
    counting(reference, &text);
    windows(&text);
    hostile(reference);
}

/// The estimate against exact counting. Every round counts another megabyte, as new messages are
/// new text.
fn counting(reference: &'static CoreBPE, text: &str) {
    let (mut theirs, mut estimate, mut bytes) = (slices(text), slices(text), slices(text));
    let title = "1 MB of new text (o200k)";
    BenchComparison::new(title, 5)
        .candidate("tiktoken-rs", move || {
            reference.encode_ordinary(&theirs()).len()
        })
        .candidate("estimate", move || Measure::of_text(&estimate()).tokens())
        .candidate("bytes/4", move || bytes().len().div_ceil(4))
        .run();
}

/// One megabyte after the other, round and round.
fn slices(text: &str) -> impl FnMut() -> Rc<str> + use<> {
    let megabytes: Vec<Rc<str>> = text
        .as_bytes()
        .chunks(1 << 20)
        .map(|bytes| Rc::from(String::from_utf8_lossy(bytes)))
        .collect();
    let mut next = 0;
    move || {
        next += 1;
        megabytes
            .get(next % megabytes.len())
            .cloned()
            .unwrap_or_else(|| Rc::from(""))
    }
}

/// The estimate of a whole window: measured again, or as a running sum.
fn windows(text: &str) {
    let messages: Vec<Message> = text
        .as_bytes()
        .chunks(1000)
        .take(5000)
        .map(|bytes| Message::user(String::from_utf8_lossy(bytes)))
        .collect();
    let running: Measure = messages.iter().map(Measure::of).sum();
    let newest = messages
        .first()
        .cloned()
        .unwrap_or_else(|| Message::user(""));
    let model = Calibration::default();
    let same = model.clone();
    let usage = Usage::default().total();
    BenchComparison::new("a window of 5,000 messages gets one more", 5)
        .candidate("measure all again", move || {
            usage + model.tokens(&messages.iter().map(Measure::of).sum())
        })
        .candidate("running sum", move || {
            same.tokens(&(running + Measure::of(&newest)))
        })
        .run();
}

/// A megabyte that is one piece to the vocabulary.
fn hostile(reference: &'static CoreBPE) {
    let random = |alphabet: &str| -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut state = 7_usize;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            letters
                .get((state >> 33) % letters.len())
                .copied()
                .unwrap_or('a')
        };
        (0..1 << 20).map(|_| next()).collect()
    };
    let inputs = [
        ("one letter", "a".repeat(1 << 20)),
        ("spaces", " ".repeat(1 << 20)),
        ("dashes", "-".repeat(1 << 20)),
        ("random letters", random("abcdefghijklmnopqrstuvwxyz")),
        ("ACGT", random("ACGT")),
        ("random punctuation", random("-=+*/#_.,:;!?()[]{}")),
        ("a word repeated", "counterrevolutionary".repeat(52_429)),
        ("Han", random("的一是不了人我在有他")),
        ("emoji", "😀".repeat(1 << 18)),
        ("blank and newline", " \n".repeat(1 << 19)),
    ];
    for (name, text) in inputs {
        let (theirs, estimated) = (text.clone(), text);
        let comparison = BenchComparison::new(format!("1 MB of {name}"), 3);
        // The usual crate panics on a megabyte of spaces.
        let comparison = if name == "spaces" {
            comparison
        } else {
            comparison.candidate("tiktoken-rs", move || {
                reference.encode_ordinary(&theirs).len()
            })
        };
        comparison
            .candidate("estimate", move || Measure::of_text(&estimated).tokens())
            .run();
    }
}

#[expect(clippy::disallowed_methods, reason = "benchmark data")]
fn recorded() -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/public");
    let file = folder.join("coding_claude_code.jsonl");
    let lines = std::fs::read_to_string(file).ok()?;
    Some(
        lines
            .replace("\\n", "\n")
            .replace("\\\"", "\"")
            .replace("\\t", "\t"),
    )
}

fn generated() -> String {
    let line = |n: u64| {
        let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match n % 4 {
            0 => format!(
                "    let value_{} = compute(&input.field{}, \"text\")?;\n",
                n % 977,
                n % 5
            ),
            1 => format!(
                "2026-01-{:02} {:>7} ERROR 0x{hash:016x} retry in {} ms\n",
                n % 28,
                n,
                n % 1013
            ),
            2 => format!(
                "{{\"id\":{n},\"name\":\"item {}\",\"price\":{}.{:02}}}\n",
                n % 97,
                n % 500,
                n % 100
            ),
            _ => format!(
                "The {} run of module {} was moved to another place.\n",
                n % 13,
                n % 700
            ),
        }
    };
    (0..60_000).map(line).collect()
}
