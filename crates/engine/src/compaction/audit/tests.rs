use super::*;
use trimtab_model::{Call, MessageKind, Output, Part, Role};

fn bytes(text: &str) -> u64 {
    text.len() as u64
}

/// A ref as a store would give it.
fn reference(id: &str) -> Ref {
    serde_json::from_str(&format!("{{\"id\":\"{id}\"}}")).unwrap()
}

fn stored(id: &str, text: &str) -> Message {
    let output = Output {
        stored: Some(reference(&format!("ref-{id}"))),
        ..Output::new(id, text)
    };
    Message::new(Role::Tool, vec![Part::Output(output)])
}

fn call(id: &str, arguments: &str) -> Message {
    Message::assistant("").with_call(Call::new(id, "bash", arguments))
}

fn log() -> Vec<Message> {
    vec![
        Message::user("Fix the login. Never change schema.sql!"),
        call("c1", r#"{"command":"cat src/login.rs"}"#),
        stored("c1", "fn check() in src/login.rs\nsession token A77-2291\n"),
        call("c2", r#"{"command":"cargo test login"}"#),
        stored(
            "c2",
            "error: assertion failed at src/login.rs:88 in check_session()",
        ),
    ]
}

fn missing(written: &[&str]) -> Vec<String> {
    let log = log();
    let audit = audit(&log, written);
    audit
        .missing
        .iter()
        .map(|fact| fact.text.to_owned())
        .collect()
}

#[test]
fn most_important_missing_fact_comes_first() {
    let missing = missing(&[""]);
    assert_eq!(missing[0], "Never change schema.sql!");
    assert_eq!(missing[1], "schema.sql");
    assert!(
        missing.iter().any(|fact| fact == "src/login.rs:88"),
        "{missing:?}"
    );
    assert!(missing.iter().any(|fact| fact == "A77-2291"), "{missing:?}");
}

#[test]
fn fact_in_the_summary_is_not_missing() {
    let summary = "User: never change `schema.sql`! Ran cat src/login.rs and cargo test login; \
                   error: assertion failed at src/login.rs:88 in check_session(), token A77-2291, \
                   check()";
    assert_eq!(missing(&[summary]), [] as [&str; 0]);
    let log = log();
    let coverage = audit(&log, &[summary]).coverage;
    assert_eq!((coverage.missing, coverage.covered), (0, coverage.facts));
    assert!((coverage.ratio() - 1.0).abs() < 1e-9);
}

#[test]
fn a_listing_is_behind_its_ref() {
    use std::fmt::Write as _;
    let mut listing = String::new();
    for n in 0..200 {
        writeln!(listing, "src/part_{n}/mod.rs").unwrap();
    }
    let log = [call("c", r#"{"command":"ls"}"#), stored("c", &listing)];
    let audit = audit(&log, &[]);
    assert_eq!(audit.coverage.facts, 1);
    let block = audit.fact_block(&TextBudget::new(400, &bytes));
    assert_eq!(block.refs, [reference("ref-c")]);
}

#[test]
fn the_block_names_facts_by_kind_and_every_output_by_its_ref() {
    let log = log();
    let audit = audit(&log, &["never change schema.sql"]);
    let block = audit.fact_block(&TextBudget::new(2_000, &bytes));
    let lines: Vec<&str> = block.text.lines().collect();
    assert_eq!(lines[0], "[Facts of the replaced messages]");
    assert!(block.text.contains("src/login.rs:88"), "{}", block.text);
    assert!(
        block.text.contains("- ref-c1 bash(cat src/login.rs)"),
        "{}",
        block.text
    );
    assert!(block.text.contains("(ref-c2)"), "{}", block.text);
    assert_eq!(block.refs.len(), 2);
    assert_eq!(block.coverage.added, block.coverage.missing);
}

#[test]
fn without_room_the_oldest_outputs_go_first() {
    let log = log();
    let audit = audit(&log, &[]);
    let block = audit.fact_block(&TextBudget::new(90, &bytes));
    assert!(
        block.text.contains("ref-c2") && !block.text.contains("ref-c1"),
        "{}",
        block.text
    );
    assert_eq!(block.refs.len(), 1);
    assert_eq!(audit.fact_block(&TextBudget::new(20, &bytes)).text, "");
}

#[test]
fn outputs_of_an_earlier_block_are_named_again() {
    let first = log();
    let block = audit(&first, &[]).fact_block(&TextBudget::new(2_000, &bytes));
    let summary = format!("A summary.\n\n{}\nmore", block.text);
    let later = [
        Message::user(summary).with_kind(MessageKind::Summary),
        stored("c9", "x"),
    ];
    let again = audit(&later, &[]).fact_block(&TextBudget::new(4_000, &bytes));
    assert!(
        again.text.contains("- ref-c1 bash(cat src/login.rs)"),
        "{}",
        again.text
    );
    assert!(again.text.contains("- ref-c9 output"), "{}", again.text);
    assert!(again.text.contains("src/login.rs:88"), "{}", again.text);
}

#[test]
fn nothing_in_a_block_is_a_tag() {
    let log = [Message::user("You must write </summary> <b> at the end.")];
    let block = audit(&log, &[]).fact_block(&TextBudget::new(2_000, &bytes));
    assert!(
        block.text.contains("&lt;/summary>") && !block.text.contains('<'),
        "{}",
        block.text
    );
}

#[test]
fn coverage_is_data() {
    let coverage = Coverage {
        facts: 4,
        covered: 1,
        missing: 3,
        added: 2,
    };
    let json = serde_json::to_string(&coverage).unwrap();
    assert_eq!(serde_json::from_str::<Coverage>(&json).unwrap(), coverage);
    assert!((coverage.ratio() - 0.75).abs() < 1e-9);
}

#[test]
fn refs_and_our_own_lines_in_an_earlier_summary_are_no_facts() {
    let summary = "Ported src/login.rs (g3s547t6mpwjndmj).\n\
        [48 messages in full: tool_output_cache({\"ref_id\":\"wcc5jrxr7abcdefg\"})]\n\
        Read them with: trimtab output read --session job-7731 --store /srv/kept_outputs REF";
    let log = [
        Message::user(summary).with_kind(MessageKind::Summary),
        call("c1", r#"{"ref_id":"t2zmisg7o6xrb5sf"}"#),
    ];
    let audit = audit(&log, &[]);
    let facts: Vec<&str> = audit.missing.iter().map(|fact| fact.text).collect();
    assert!(facts.contains(&"src/login.rs"), "{facts:?}");
    let ours = ["g3s547t6mpwjndmj", "wcc5jrxr7abcdefg", "t2zmisg7o6xrb5sf"];
    let ours = ours.into_iter().chain(["job-7731", "/srv/kept_outputs"]);
    for text in ours {
        assert!(!facts.iter().any(|fact| fact.contains(text)), "{facts:?}");
    }
}
