use std::time::Duration;

use serde_json::{Value, json};
use trimtab_store::{MemoryStore, Put, SessionId, Store};

use super::*;

const READ: &str = tools::READ;
const GREP: &str = tools::GREP;

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// A store with one output in session `s`, and its ref.
fn with(output: &[u8]) -> (MemoryStore, String) {
    let store = MemoryStore::new();
    let stored = store.put(&session("s"), Put::new("c1", output)).unwrap();
    (store, stored.id().to_owned())
}

fn call(store: &MemoryStore, tool: &str, arguments: &Value) -> RetrievalAnswer {
    Retrieval::new(store, session("s")).call(tool, &arguments.to_string())
}

#[track_caller]
fn refused(answer: &RetrievalAnswer, expected: &str) {
    assert!(answer.is_error, "{answer:?}");
    assert_eq!(answer.text, expected);
}

#[test]
fn an_answer_that_is_full_names_the_calls_that_read_on() {
    let (store, id) = with(format!("one\ntwo\n{}\nfour", "é".repeat(300)).as_bytes());
    let retrieval = Retrieval::new(&store, session("s"));
    let of = |max_bytes| {
        let retrieval = retrieval.clone().limits(AnswerLimits {
            max_bytes,
            max_line_bytes: 11,
        });
        let answer = retrieval.call(READ, &json!({"ref_id": id}).to_string());
        answer.text
    };
    assert_eq!(
        of(30),
        format!(
            "    1  one\n    2  two\n[trimtab: lines 1 to 2 of 4 are shown; next: \
             {READ}({{\"ref_id\":\"{id}\",\"offset\":2}})]"
        )
    );
    let long = format!(
        "\n    3  ééééé [… 590 bytes more in this line: \
         {READ}({{\"ref_id\":\"{id}\",\"offset\":2,\"limit\":1,\"column\":10}})]\n    4  four"
    );
    assert!(of(3_000).ends_with(&long), "{}", of(3_000));
}

#[test]
fn slightly_wrong_arguments_are_accepted() {
    let (store, id) = with(b"alpha\nbeta\ngamma");
    let expected = "    2  beta";
    for arguments in [
        json!({"ref_id": id, "offset": "1", "limit": " 1 "}),
        json!({"ref_id": id, "offset": 1.0, "limit": 1, "column": null}),
        json!({"ref_id": format!("ref:{id}"), "offset": 1, "limit": 1}),
        json!({"ref_id": format!(" `{id}` "), "offset": 1, "limit": 1}),
        // Clients exist that encode the arguments twice.
        Value::from(json!({"ref_id": id, "offset": 1, "limit": 1}).to_string()),
    ] {
        assert_eq!(call(&store, READ, &arguments).text, expected, "{arguments}");
    }
    let arguments = json!({"pattern": "^b", "regex": "true", "ref_id": ""});
    let text = call(&store, GREP, &arguments).text;
    assert_eq!(text, format!("ref:{id}\n    2  beta"));
    let prefixed = format!("mcp__trimtab__{READ}");
    let arguments = json!({"ref_id": id, "limit": 1});
    assert_eq!(call(&store, &prefixed, &arguments).text, "    1  alpha");
}

/// Calls that fail: tool, arguments and answer.
const WRONG: [(&str, &str, &str); 11] = [
    (
        READ,
        "",
        "ref_id is missing: copy it from the shortened or trimmed output that you want to \
             read.",
    ),
    (
        READ,
        r#"{"ref_id":"x","offset":-5}"#,
        "offset must be a whole number of at least 0, not -5.",
    ),
    (
        READ,
        r#"{"ref_id":"x","limit":0}"#,
        "limit must be a whole number of at least 1, not 0.",
    ),
    (
        READ,
        r#"{"ref_id":"x","offset":"ten"}"#,
        "offset must be a whole number of at least 0, not \"ten\".",
    ),
    (
        READ,
        r#"{"ref_id":["x"]}"#,
        "ref_id must be a string, not [\"x\"].",
    ),
    (
        READ,
        "[1]",
        "The arguments must be a JSON object such as {\"ref_id\":\"...\"}, not [1].",
    ),
    (
        GREP,
        r#"{"ref":"x","pattern":"a"}"#,
        "tool_output_cache_grep has no argument \"ref\". Its arguments are: after, before, \
             max, pattern, ref_id, regex, skip.",
    ),
    (
        READ,
        r#"{"ref_id":"x","from":1,"to":2}"#,
        "tool_output_cache has no arguments \"from\", \"to\". Its arguments are: column, \
             limit, offset, ref_id.",
    ),
    (
        GREP,
        r#"{"regex":true}"#,
        "pattern is missing: give the text to look for.",
    ),
    (
        GREP,
        r#"{"pattern":"a","regex":"perhaps"}"#,
        "regex must be true or false, not \"perhaps\".",
    ),
    (
        "read_file",
        "{}",
        "There is no tool \"read_file\" here: use tool_output_cache or \
             tool_output_cache_grep.",
    ),
];

#[test]
fn wrong_arguments_are_answered_with_what_to_do() {
    let (store, id) = with(b"alpha");
    let retrieval = Retrieval::new(&store, session("s"));
    for (tool, arguments, expected) in WRONG {
        refused(&retrieval.call(tool, arguments), expected);
    }
    let broken = retrieval.call(READ, r#"{"ref_id":"#);
    assert!(
        broken.is_error
            && broken
                .text
                .starts_with("The arguments are not valid JSON: ")
    );
    let arguments = json!({"ref_id": id, "column": 5});
    refused(
        &call(&store, READ, &arguments),
        "column 5 is past the end of this line, which has 5 bytes. Leave column out to read it \
         from its start.",
    );
}

#[test]
fn a_bad_pattern_is_explained() {
    let (store, _) = with(b"alpha");
    let answer = call(&store, GREP, &json!({"pattern": "a(", "regex": true}));
    assert!(answer.is_error);
    assert!(
        answer.text.starts_with("The pattern cannot be used: "),
        "{}",
        answer.text
    );
    assert!(answer.text.contains("unclosed group"), "{}", answer.text);
    assert!(answer.text.contains("leave regex out"), "{}", answer.text);
    // The same text is fine as it stands.
    let answer = call(&store, GREP, &json!({"pattern": "a("}));
    assert_eq!(answer.text, "No matches for: a(");
}

#[test]
fn every_ref_that_may_not_be_read_gets_the_same_answer() {
    let (store, own) = with(b"mine");
    let foreign = store
        .put(&session("other"), Put::new("c1", "theirs"))
        .unwrap();
    let flipped: String = own.chars().rev().collect();
    for id in [foreign.id(), &flipped, "c1", "../../etc/passwd", "\0", "7"] {
        for (tool, arguments) in [
            (READ, json!({"ref_id": id})),
            (GREP, json!({"ref_id": id, "pattern": "e"})),
        ] {
            refused(&call(&store, tool, &arguments), NOT_FOUND);
        }
    }
    let text = call(&store, GREP, &json!({"pattern": "theirs"})).text;
    assert_eq!(text, "No matches for: theirs");
}

#[test]
fn binary_outputs_are_named_not_shown_and_not_searched() {
    let (store, id) = with(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0");
    let expected =
        "This output is binary (text/plain, 20 bytes): it has no lines to show or to search.";
    refused(&call(&store, READ, &json!({"ref_id": id})), expected);
    let arguments = json!({"ref_id": id, "pattern": "IHDR"});
    refused(&call(&store, GREP, &arguments), expected);
    let text = store
        .put(&session("s"), Put::new("c2", "see IHDR"))
        .unwrap();
    let found = call(&store, GREP, &json!({"pattern": "IHDR"}));
    assert_eq!(
        found.text,
        format!("ref:{text}\n    1  see IHDR\n[trimtab: 1 binary output not searched]")
    );
}

#[test]
fn a_search_with_many_matches_is_read_on_by_the_calls_that_it_names() {
    let lines: Vec<String> = (1..=120).map(|n| format!("hit {n}")).collect();
    let (store, id) = with(lines.join("\n").as_bytes());
    let mut arguments = json!({"pattern": "hit", "ref_id": id});
    let mut seen = 0;
    for (first, last) in [(1, 50), (51, 100), (101, 120)] {
        let answer = call(&store, GREP, &arguments).text;
        seen += answer.matches("  hit ").count();
        assert_eq!(answer.matches("ref:").count(), 1, "{answer}");
        let Some((_, next)) = answer.split_once("; next: tool_output_cache_grep(") else {
            assert_eq!((last, seen), (120, 120), "{answer}");
            return;
        };
        let told = format!("[trimtab: matches {first} to {last} are shown, there are more");
        assert!(answer.contains(&told), "{answer}");
        arguments = serde_json::from_str(next.strip_suffix(")]").unwrap()).unwrap();
    }
    panic!("the last answer names a next one");
}

#[test]
fn text_in_another_encoding_is_shown_and_said_so() {
    let (store, id) = with(b"a caf\xe9 in Paris\nsecond");
    let answer = call(&store, READ, &json!({"ref_id": id}));
    assert_eq!(
        answer.text,
        "    1  a caf? in Paris\n    2  second\n\
         [trimtab: bytes that are not UTF-8 are shown as ?]"
    );
}

#[test]
fn a_match_deep_in_a_long_line_says_where_it_is() {
    let line = format!("{}needle{}", "é".repeat(40_000), "y".repeat(50_000));
    let (store, id) = with(format!("first\n{line}\nlast").as_bytes());
    let answer = call(&store, GREP, &json!({"pattern": "needle", "after": 1}));
    let shown = answer.text.lines().nth(1).unwrap();
    let (column, text) = shown
        .strip_prefix("    2  [… column ")
        .and_then(|rest| rest.split_once("] "))
        .unwrap();
    let (text, more) = text.split_once(" [… ").unwrap();
    let column: usize = column.parse().unwrap();
    assert_eq!(line.get(column..column + text.len()), Some(text));
    assert!(text.contains("needle"));
    let more: usize = more
        .strip_suffix(" bytes more in this line]")
        .map(|number| number.replace(',', "").parse().unwrap())
        .unwrap();
    assert_eq!(column + text.len() + more, line.len());
    // And the column can be read on from.
    let arguments = json!({"ref_id": id, "offset": 1, "limit": 1, "column": column});
    let read = call(&store, READ, &arguments).text;
    assert!(read.starts_with(&format!("    2  {text}")), "{read}");
}

#[test]
fn a_search_that_runs_out_of_time_says_so() {
    let (store, id) = with("line\n".repeat(100_000).as_bytes());
    let retrieval = Retrieval {
        grep_time: Duration::ZERO,
        ..Retrieval::new(&store, session("s"))
    };
    let answer = retrieval.call(GREP, &json!({"pattern": "absent"}).to_string());
    assert_eq!(
        answer.text,
        "No matches for: absent\n[trimtab: not everything was searched: time was up after 0 s; \
         give a ref_id to search one output]"
    );
    assert!(!id.is_empty() && !answer.is_error);
}

#[test]
fn answers_are_bounded_whatever_is_asked() {
    let text = format!("{}\n", "x".repeat(3_000)).repeat(500);
    let (store, id) = with(text.as_bytes());
    for (tool, arguments) in [
        (READ, json!({"ref_id": id, "limit": 1_000_000_000})),
        (
            GREP,
            json!({"pattern": "x", "before": 99, "after": 99, "max": 1_000_000}),
        ),
        (GREP, json!({"pattern": "x", "max": 1_000_000})),
    ] {
        let answer = call(&store, tool, &arguments);
        let bound = AnswerLimits::default().max_bytes + 200;
        assert!(answer.text.len() < bound, "{tool}: {}", answer.text.len());
        assert!(answer.text.len() > 20_000, "{tool}: {}", answer.text.len());
    }
}
