//! Counting and estimating, side by side: `cargo bench -p trimtab-model --bench estimate`.
//!
//! Recorded sessions are used where they lie beside the workspace, generated text otherwise.

use std::path::Path;
use std::rc::Rc;

use tiktoken_rs::CoreBPE;
use trimtab_model::estimate::Measure;
use trimtab_testkit::bench::BenchComparison;

fn main() {
    let reference = tiktoken_rs::o200k_base_singleton();
    let text = recorded().unwrap_or_else(generated);
    counting(reference, &text);
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
