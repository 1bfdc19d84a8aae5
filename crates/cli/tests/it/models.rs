//! `trimtab models`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::run::{Outcome, finish, trimtab};

/// A registry with one model.
const REGISTRY: &str = r#"{"tiny-1": {"mode": "chat", "litellm_provider": "own",
    "max_input_tokens": 4096, "max_output_tokens": 512,
    "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}"#;

#[test]
fn show_prints_one_model() {
    let shown = trimtab(&["models", "show", "gpt-4o"]);
    assert_eq!(shown.code, 0);
    assert!(
        shown.stdout.contains("window             128,000 tokens"),
        "{}",
        shown.stdout
    );
    let json = trimtab(&["models", "show", "gpt-4o", "--json"]);
    assert!(
        json.stdout.contains(r#""window":128000"#),
        "{}",
        json.stdout
    );
}

#[test]
fn models_are_listed_by_a_part_of_their_name() {
    let listed = trimtab(&["models", "list", "gpt-4o"]);
    assert_eq!(listed.code, 0);
    assert!(
        listed
            .stdout
            .lines()
            .skip(1)
            .all(|line| line.contains("gpt-4o")),
        "{}",
        listed.stdout
    );
    let none = trimtab(&["models", "list", "no-such-model"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("no model has \"no-such-model\""),
        "{}",
        none.stderr
    );
}

#[test]
fn unknown_model_error_has_a_hint() {
    let unknown = trimtab(&["models", "show", "gpt-4oo"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("similar names:") && unknown.stderr.contains("gpt-4o"),
        "{}",
        unknown.stderr
    );
}

/// The verb with a catalogue of its own in `folder`.
fn models(folder: &Path, args: &[&str], input: &[u8]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
    command.env("TRIMTAB_MODELS", folder.join("own/models.tsv"));
    finish(command.arg("models").args(args), input)
}

#[test]
fn update_extends_the_catalogue_and_reset_restores_it() {
    let folder = tempfile::tempdir().unwrap();
    let models = |args: &[&str], input: &[u8]| models(folder.path(), args, input);
    let updated = models(&["update", "-"], REGISTRY.as_bytes());
    assert_eq!(updated.code, 0, "{}", updated.stderr);
    assert!(
        updated.stdout.starts_with("1 model added, 0 changed"),
        "{}",
        updated.stdout
    );
    let shown = models(&["show", "tiny-1"], b"");
    assert!(shown.stdout.contains("4,096 tokens"), "{}", shown.stdout);
    // What was known before is still known.
    assert_eq!(models(&["show", "gpt-4o"], b"").code, 0);

    let larger = REGISTRY.replace("4096", "8192");
    let file = folder.path().join("registry.json");
    std::fs::write(&file, larger).unwrap();
    let updated = models(&["update", file.to_str().unwrap(), "--json"], b"");
    assert!(
        updated.stdout.contains(r#""added":0,"changed":1"#),
        "{}",
        updated.stdout
    );
    let shown = models(&["show", "tiny-1"], b"");
    assert!(shown.stdout.contains("8,192 tokens"), "{}", shown.stdout);

    let refused = models(&["update", "-"], br#"{"tiny-1": {"max_input_tokens": -1}}"#);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    // The one that was there is still used.
    assert_eq!(models(&["show", "tiny-1"], b"").code, 0);

    let reset = models(&["reset"], b"");
    assert_eq!(reset.code, 0, "{}", reset.stderr);
    assert_eq!(models(&["show", "tiny-1"], b"").code, 2);
    assert_eq!(models(&["show", "gpt-4o"], b"").code, 0);
    assert_eq!(models(&["reset"], b"").code, 0);
}

#[test]
fn update_replaces_an_unusable_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("models.tsv"), "no such format\n").unwrap();
    let broken = models(folder.path(), &["show", "gpt-4o"], b"");
    assert_eq!(broken.code, 2);
    assert!(
        broken.stderr.contains("trimtab models reset"),
        "{}",
        broken.stderr
    );
    assert_eq!(
        models(folder.path(), &["update", "-"], REGISTRY.as_bytes()).code,
        0
    );
    assert_eq!(models(folder.path(), &["show", "gpt-4o"], b"").code, 0);
}

#[test]
fn update_reads_a_registry_from_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |answer: String| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/registry.json", server.local_addr().unwrap());
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut head = [0; 4096];
            assert!(stream.read(&mut head).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let outcome = models(folder.path(), &["update", &url], b"");
        answering.join().unwrap();
        outcome
    };
    let length = REGISTRY.len();
    let good = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{REGISTRY}");
    let updated = ask(good);
    assert_eq!(updated.code, 0, "{}", updated.stderr);
    assert_eq!(models(folder.path(), &["show", "tiny-1"], b"").code, 0);

    let page = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>".to_owned();
    let refused = ask(page);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("is not JSON"), "{}", refused.stderr);
    let moved = "HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n".to_owned();
    let refused = ask(moved);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("which redirects to /other"),
        "{}",
        refused.stderr
    );
}

#[test]
fn update_of_a_missing_file_has_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let refused = models(folder.path(), &["update", "no-such.json"], b"");
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("the URL of a registry"),
        "{}",
        refused.stderr
    );
}
