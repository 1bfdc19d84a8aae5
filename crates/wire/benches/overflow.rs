//! Judging error bodies against a search for one phrase, and finding a model in the catalogue
//! against parsing it.

use std::hint::black_box;

use serde_json::Value;
use trimtab_testkit::bench::BenchComparison;
use trimtab_wire::catalogue::Catalogue;
use trimtab_wire::overflow::{OverflowRules, ProviderResponse, classify};

const TABLE: &str = include_str!("../tests/data/overflow.json");
const RULES: &str = include_str!("../data/overflow.toml");
const ROUNDS: usize = 30;

fn main() {
    bodies();
    huge();
    rules();
    catalogue();
}

/// Each body of our own table, as sent.
fn table() -> Vec<(u16, Vec<u8>)> {
    let entries: Vec<Value> = serde_json::from_str(TABLE).unwrap_or_default();
    let body = |entry: &Value| match entry.get("body") {
        Some(Value::String(text)) => text.clone().into_bytes(),
        body => body.map(Value::to_string).unwrap_or_default().into_bytes(),
    };
    let status = |entry: &Value| {
        entry
            .get("status")
            .and_then(Value::as_u64)
            .unwrap_or_default()
    };
    let entry = |entry| {
        (
            u16::try_from(status(entry)).unwrap_or_default(),
            body(entry),
        )
    };
    entries.iter().map(entry).collect()
}

fn bodies() {
    let (plain, parsed, judged) = (table(), table(), table());
    BenchComparison::new(format!("{} error bodies", plain.len()), ROUNDS)
        .candidate("search for one phrase", move || {
            plain.iter().filter(|(_, body)| has_phrase(body)).count()
        })
        .candidate("parse with serde_json", move || {
            parsed
                .iter()
                .filter(|(_, body)| serde_json::from_slice::<Value>(body).is_ok())
                .count()
        })
        .candidate("classify", move || {
            let overflow = |(status, body): &&(u16, Vec<u8>)| {
                classify(&ProviderResponse::new(*status, body)).is_overflow()
            };
            judged.iter().filter(overflow).count()
        })
        .run();
}

fn has_phrase(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains("context length")
}

fn huge() {
    let body = format!(
        "{{\"error\": \"{}\"}}",
        "prompt of many words ".repeat(1 << 20)
    );
    let copy = body.clone();
    BenchComparison::new(format!("one body of {} MB", body.len() >> 20), ROUNDS)
        .candidate("search for one phrase", move || has_phrase(copy.as_bytes()))
        .candidate("classify", move || {
            classify(&ProviderResponse::new(400, body.as_bytes()))
        })
        .run();
}

fn rules() {
    BenchComparison::new("start", ROUNDS)
        .candidate("parse and compile the rules", || {
            OverflowRules::parse(black_box(RULES)).is_ok()
        })
        .run();
}

fn catalogue() {
    let text = Catalogue::embedded().snapshot().to_owned();
    BenchComparison::new("catalogue", ROUNDS)
        .candidate("find a model by its id", || {
            Catalogue::embedded().find("claude-opus-5-5")
        })
        .candidate("find a model by its bare name", || {
            Catalogue::embedded().find("glm-4.6")
        })
        .candidate("find a model by its family", || {
            Catalogue::embedded().find("claude-opus-5-5-turbo-x")
        })
        .candidate("name the neighbours of an unknown model", || {
            Catalogue::embedded().find("claude-opsu-9")
        })
        .candidate("check a snapshot of one's own", move || {
            Catalogue::from_snapshot(text.clone()).is_ok()
        })
        .run();
}
