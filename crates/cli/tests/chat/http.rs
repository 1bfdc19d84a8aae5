//! `trimtab chat` over HTTP: a strict provider on loopback plays the script.

use tokio::runtime::Runtime;
use trimtab_testkit::script::Script;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::{Outcome, Place, READS, finish};

/// The key that the provider takes.
const KEY: &str = "sk-the-right-key";

/// Runs `trimtab chat` with `args` against a provider.
fn chat(place: &Place, args: &[&str], key: &str) -> (Outcome, Vec<String>) {
    let runtime = Runtime::new().unwrap();
    let script = Script::parse(READS).unwrap();
    let upstream = runtime.block_on(Upstream::start(UpstreamOptions {
        key: Some(KEY.to_owned()),
        window: Some(200_000),
        ..UpstreamOptions::new(ReplySource::script(script))
    }));
    let upstream = upstream.unwrap();
    let base = format!("{}/v1", upstream.url().trim_end_matches('/'));
    let mut command = place.command(&[args, &["--base-url", &base]].concat());
    command
        .env("OPENAI_API_KEY", key)
        .env("ANTHROPIC_API_KEY", key);
    let outcome = finish(command, "");
    (outcome, upstream.violations())
}

#[test]
fn chat_works_in_every_dialect() {
    for dialect in ["chat", "responses", "messages"] {
        let place = Place::new();
        let args = [
            "--model",
            "gpt-5",
            "--dialect",
            dialect,
            "--print",
            "what is 42?",
        ];
        let (outcome, violations) = chat(&place, &args, KEY);
        assert_eq!(
            outcome.stdout, "The answer to question 42 is 294.\n",
            "{}",
            outcome.stderr
        );
        assert_eq!((outcome.code, violations.len()), (0, 0), "{violations:?}");
    }
}

#[test]
fn a_model_of_unknown_window_is_talked_to_and_its_window_is_learned() {
    let place = Place::new();
    let runtime = Runtime::new().unwrap();
    let reads: Vec<String> = (0..4)
        .map(|_| {
            r#"{"calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]}"#.to_owned()
        })
        .collect();
    let script = format!(
        r#"[{}, {{"text": "done reading"}}, {{"text": "still here"}}]"#,
        reads.join(",")
    );
    let upstream = runtime.block_on(Upstream::start(UpstreamOptions {
        window: Some(9_000),
        ..UpstreamOptions::new(ReplySource::script(Script::parse(&script).unwrap()))
    }));
    let upstream = upstream.unwrap();
    let base = format!("{}/v1", upstream.url().trim_end_matches('/'));
    let args = [
        "--model",
        "my-local-llama",
        "--base-url",
        &base,
        "--print",
        "read the notes",
        "--json",
    ];
    let outcome = place.chat(&args);
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("is unknown until the provider rejects a prompt"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stdout.contains("done reading"),
        "{}",
        outcome.stdout
    );
    assert!(
        upstream
            .violations()
            .iter()
            .all(|one| !one.contains("role"))
    );
    // The window that the provider named is remembered.
    let again = place.chat(&[
        "--resume",
        "--base-url",
        &base,
        "--print",
        "are you there?",
        "--json",
    ]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(
        again.stdout.contains(r#""window":9000"#),
        "{}",
        again.stdout
    );
    assert!(!again.stderr.contains("is unknown"), "{}", again.stderr);
}

#[test]
fn wrong_key_is_reported_without_showing_it() {
    let place = Place::new();
    for dialect in ["chat", "responses", "messages"] {
        let args = [
            "--model",
            "gpt-4o",
            "--dialect",
            dialect,
            "--print",
            "hello",
            "--json",
        ];
        let (outcome, _) = chat(&place, &args, "sk-of-somebody-else");
        assert_eq!(outcome.code, 1);
        assert!(
            outcome.stderr.contains("refused the key"),
            "{}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
        let all = outcome.stdout + &outcome.stderr;
        assert!(!all.contains("sk-of-somebody-else"), "{all}");
    }
}

#[test]
fn server_that_is_no_model_api_is_reported() {
    let place = Place::new();
    let args = ["--model", "gpt-4o", "--dialect", "chat", "--print", "hello"];
    let runtime = Runtime::new().unwrap();
    let upstream = runtime
        .block_on(Upstream::start(UpstreamOptions::default()))
        .unwrap();
    let base = format!("{}/no/such/path", upstream.url().trim_end_matches('/'));
    let outcome = place.chat(&[&args[..], &["--base-url", &base]].concat());
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: check"), "{}", outcome.stderr);
}
