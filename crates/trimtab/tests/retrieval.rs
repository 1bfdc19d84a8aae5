//! What the model is given back is what was stored.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};
use trimtab::engine::view::retrieval::AnswerLimits;
use trimtab::engine::view::tools::{GREP, READ};
use trimtab::retrieval::Retrieval;
use trimtab::store::{MemoryStore, Put, SessionId, Store};

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

/// Text as tools print it: short and long lines, empty ones, other scripts, carriage returns.
fn output() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[ -~]{0,40}",
        2 => "[a-zéß€𝄞 \t\r]{0,30}",
        1 => Just(String::new()),
        1 => "[a-zé𝄞]{1,9}".prop_flat_map(|piece| (1_usize..60).prop_map(move |n| piece.repeat(n))),
    ];
    prop::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

fn limits() -> impl Strategy<Value = AnswerLimits> {
    let small = (40_usize..400, 4_usize..64);
    prop_oneof![
        small.prop_map(|(max_bytes, max_line_bytes)| AnswerLimits {
            max_bytes,
            max_line_bytes
        }),
        Just(AnswerLimits::default()),
    ]
}

/// A line of an answer: its number, its text, and the call that gives the rest of it.
fn numbered(line: &str) -> (usize, &str, Option<Value>) {
    let digits = line.trim_start_matches(' ');
    let (number, text) = digits.split_once("  ").unwrap_or((digits.trim(), ""));
    let number = number.trim().parse().unwrap();
    let Some((shown, hint)) = text.rsplit_once(" [… ") else {
        return (number, text, None);
    };
    let call = hint
        .split_once(" bytes more in this line: ")
        .and_then(|(_, call)| arguments(call.strip_suffix(']')?));
    match call {
        Some(call) => (number, shown, Some(call)),
        None => (number, text, None),
    }
}

/// The arguments of a call as a hint spells it.
fn arguments(call: &str) -> Option<Value> {
    let inner = call
        .strip_prefix(READ)?
        .strip_prefix('(')?
        .strip_suffix(')')?;
    serde_json::from_str(inner).ok()
}

fn read(retrieval: &Retrieval<'_>, arguments: &Value) -> String {
    let answer = retrieval.call(READ, &arguments.to_string());
    assert!(!answer.is_error, "{}", answer.text);
    answer.text
}

/// The rest of a long line, by the calls that the answers spell out.
fn rest_of_line(retrieval: &Retrieval<'_>, mut call: Value, line: &mut String) {
    loop {
        let answer = read(retrieval, &call);
        let (_, text, more) = numbered(&answer);
        assert!(!text.is_empty(), "no progress: {call}");
        line.push_str(text);
        match more {
            Some(next) => call = next,
            None => return,
        }
    }
}

/// Reads an output whole, by nothing but the calls that the answers spell out.
fn page_through(retrieval: &Retrieval<'_>, id: &str) -> String {
    let mut call = json!({"ref_id": id});
    let mut lines: Vec<String> = Vec::new();
    loop {
        let answer = read(retrieval, &call);
        let note = answer.rsplit_once("\n[trimtab: lines ");
        let (shown, next) = match note.filter(|(_, note)| note.contains(" are shown; next: ")) {
            Some((shown, note)) => {
                let (_, next) = note.split_once("next: ").unwrap();
                (shown, arguments(next.strip_suffix(']').unwrap()))
            }
            None => (answer.as_str(), None),
        };
        for line in shown.split('\n') {
            let (number, text, more) = numbered(line);
            assert_eq!(number, lines.len() + 1);
            let mut whole = text.to_owned();
            if let Some(more) = more {
                rest_of_line(retrieval, more, &mut whole);
            }
            lines.push(whole);
        }
        match next {
            Some(next) => call = next,
            None => return lines.join("\n"),
        }
    }
}

fn cases() -> ProptestConfig {
    let long = std::env::var_os("TRIMTAB_LONG").is_some();
    ProptestConfig {
        cases: if long { 200_000 } else { 2_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn following_the_hints_gives_an_output_back_byte_for_byte(
        output in output(),
        limits in limits(),
    ) {
        let store = MemoryStore::new();
        let stored = store.put(&session(), Put::new("c", &output)).unwrap();
        let retrieval = Retrieval::new(&store, session()).limits(limits);
        prop_assert_eq!(page_through(&retrieval, stored.id()), output);
    }

    #[test]
    fn a_range_gives_the_stored_lines(
        output in output(),
        offset in 0_usize..45,
        limit in 1_usize..45,
    ) {
        let store = MemoryStore::new();
        let stored = store.put(&session(), Put::new("c", &output)).unwrap();
        let retrieval = Retrieval::new(&store, session());
        let call = json!({"ref_id": stored.id(), "offset": offset, "limit": limit});
        let answer = read(&retrieval, &call);
        let all: Vec<&str> = output.split('\n').collect();
        if offset >= all.len() {
            prop_assert_eq!(answer, "Offset exceeds output length.");
            return Ok(());
        }
        let wanted = all.iter().enumerate().skip(offset).take(limit);
        let wanted: Vec<String> = wanted.map(|(at, line)| format!("{:>5}  {line}", at + 1)).collect();
        prop_assert_eq!(answer, wanted.join("\n"));
    }

    #[test]
    fn every_line_that_a_search_shows_is_the_stored_line(
        output in output(),
        pattern in "[a-e é]{1,2}",
        before in 0_usize..3,
        after in 0_usize..3,
    ) {
        let store = MemoryStore::new();
        let stored = store.put(&session(), Put::new("c", &output)).unwrap();
        let retrieval = Retrieval::new(&store, session());
        let call = json!({"pattern": pattern, "before": before, "after": after, "max": 1000});
        let answer = retrieval.call(GREP, &call.to_string()).text;
        let all: Vec<&str> = output.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)).collect();
        let hits: Vec<usize> = (0..all.len()).filter(|at| all[*at].contains(&pattern)).collect();
        // Nothing behind a final newline is no line to be searched, nor to be shown.
        let end = all.len() - usize::from(output.ends_with('\n') || output.is_empty());
        // The ref comes once, and so does every line.
        let mut shown = format!("ref:{stored}");
        let mut next = 0;
        for hit in &hits {
            let (from, to) = (hit.saturating_sub(before).max(next), (hit + after + 1).min(end));
            for (at, line) in all.iter().enumerate().take(to).skip(from) {
                let _ = write!(shown, "\n{:>5}  {line}", at + 1);
            }
            next = next.max(to);
        }
        let expected = if hits.is_empty() {
            format!("No matches for: {pattern}")
        } else {
            shown
        };
        prop_assert_eq!(answer, expected);
    }
}
