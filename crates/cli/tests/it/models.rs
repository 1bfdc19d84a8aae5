//! `trimtab models`.

use std::process::Command;

use crate::run::trimtab;

/// A registry with one model, in LiteLLM's format.
const REGISTRY: &str = r#"{"tiny-1": {"mode": "chat", "litellm_provider": "own",
    "max_input_tokens": 4096, "max_output_tokens": 512,
    "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}"#;

#[test]
fn a_model_is_shown() {
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
fn an_unknown_model_names_the_way_out() {
    let unknown = trimtab(&["models", "show", "gpt-4oo"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("known are:") && unknown.stderr.contains("gpt-4o"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn a_registry_becomes_the_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registry.json");
    std::fs::write(&file, REGISTRY).unwrap();
    let models = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
        command.env("TRIMTAB_MODELS", folder.path().join("own/models.tsv"));
        command.arg("models").args(args).output().unwrap()
    };
    let updated = models(&["update", file.to_str().unwrap()]);
    assert!(
        updated.status.success(),
        "{}",
        String::from_utf8_lossy(&updated.stderr)
    );
    let shown = models(&["show", "tiny-1"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("4,096 tokens"));

    std::fs::write(
        &file,
        r#"{"tiny-1": {"mode": "chat", "max_input_tokens": -1}}"#,
    )
    .unwrap();
    let refused = models(&["update", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    // The one that was there is still used.
    assert!(models(&["show", "tiny-1"]).status.success());
}
