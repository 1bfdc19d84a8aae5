//! The hook in the real Claude Code: outputs are short in its transcript and in its requests.

use std::fs;

use serde_json::{Value, json};

use crate::installed::wants;
use crate::resume::{ResumedClient, log_in};
use crate::run::{finished, say, texts};

/// What the user has set already, in a form of its own.
const OWN_SETTINGS: &str = "{\n    \"cleanupPeriodDays\": 20,\n    \"env\": { \"A\": \"b\" }\n}\n";
/// What a shortened output names.
const NOTE: &str = "the rest: trimtab output read --session 'claude/";

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_has_short_outputs_with_the_hook() {
    if !wants("claude") {
        return;
    }
    let arguments = |command: &str| json!({"command": command, "description": "runs it"});
    let package = ("@anthropic-ai/claude-code", "claude");
    let mut client = ResumedClient::new(package, "Bash", arguments).await;
    let url = client.upstream.url();
    for (name, value) in [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", &url),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("IS_SANDBOX", "1"),
        // A smaller window than usual, so that outputs of 11 KB are large.
        ("TRIMTAB_WINDOW", "100000"),
    ] {
        client.set(name, value);
    }
    let settings = client.folder().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, OWN_SETTINGS).unwrap();
    let installed = finished(client.folder(), &["hook", "install", "claude", "--yes"]);
    assert!(installed.status.success(), "{:?}", texts(&installed));
    assert_ne!(fs::read_to_string(&settings).unwrap(), OWN_SETTINGS);
    let claude = [
        "claude",
        "-p",
        "--dangerously-skip-permissions",
        "run the commands",
    ];
    client.run(&claude).await;
    client.assert_valid();

    let requests = client.upstream.requests();
    let body = String::from_utf8_lossy(&requests.last().unwrap().body).into_owned();
    let shortened = body.matches(NOTE).count();
    assert!(shortened >= 4, "{shortened} outputs are short: {body}");
    assert!(
        !body.contains("10950\\n10951\\n"),
        "the middle of an output was sent"
    );
    let log = log_in(&client.folder().join(".claude/projects"), ".jsonl");
    let transcript = fs::read_to_string(log).unwrap();
    assert!(transcript.matches(NOTE).count() >= shortened);
    let whole = read_back(&client, &body);
    assert!(whole.contains("\n10950\n10951\n"), "{whole}");
    let removed = finished(client.folder(), &["hook", "uninstall", "claude", "--yes"]);
    assert!(removed.status.success(), "{:?}", texts(&removed));
    assert_eq!(fs::read_to_string(&settings).unwrap(), OWN_SETTINGS);
    say(&format!(
        "Claude Code: {shortened} outputs were shortened by the hook"
    ));
}

/// Runs the command of the first note, as the model would.
fn read_back(client: &ResumedClient, body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let text = body.to_string();
    let command = text.split("the rest: trimtab ").nth(1).unwrap();
    let words = command.split(" --offset").next().unwrap();
    let words: Vec<&str> = words
        .split_whitespace()
        .map(|word| word.trim_matches('\''))
        .collect();
    let output = finished(client.folder(), &[&words[..], &["--raw"]].concat());
    texts(&output).0
}
