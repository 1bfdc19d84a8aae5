//! Real clients under `trimtab wrap`, each with an address in its own settings: the request must
//! come through the proxy, and no file of the client may change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::installed::{path_with_client, run_client, wants, write};
use crate::run::{say, texts, trimtab};

/// A client, and how it is used.
struct Wrapped {
    /// The package, and the command in it.
    package: &'static str,
    command: &'static str,
    args: &'static [&'static str],
    /// Variables; `{url}` is the address of the upstream.
    env: &'static [(&'static str, &'static str)],
    /// Settings, by their places in the home folder; `{url}` as above.
    settings: &'static [(&'static str, &'static str)],
}

const CLIENTS: [Wrapped; 9] = [
    Wrapped {
        package: "@anthropic-ai/claude-code",
        command: "claude",
        args: &["-p", "hello"],
        env: &[
            ("ANTHROPIC_API_KEY", "k"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
        settings: &[(
            ".claude/settings.json",
            r#"{"env": {"ANTHROPIC_BASE_URL": "{url}"}}"#,
        )],
    },
    Wrapped {
        package: "@openai/codex",
        command: "codex",
        args: &["exec", "--skip-git-repo-check", "-m", "gpt-5.2", "hello"],
        env: &[("MY_KEY", "k")],
        settings: &[(
            ".codex/config.toml",
            "model_provider = \"mine\"\n[model_providers.mine]\nname = \"mine\"\n\
             base_url = \"{url}/v1\"\nenv_key = \"MY_KEY\"\nwire_api = \"responses\"\n",
        )],
    },
    Wrapped {
        package: "opencode-ai",
        command: "opencode",
        args: &["run", "-m", "mine/m", "hello"],
        env: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        ],
        settings: &[(
            "config/opencode/opencode.jsonc",
            r#"{ // a server of my own
  "provider": {"mine": {"npm": "@ai-sdk/openai-compatible", "name": "mine",
    "options": {"baseURL": "{url}/v1", "apiKey": "k"},
    "models": {"m": {"name": "m", "tool_call": true, "limit": {"context": 200000, "output": 8192}}}}}}"#,
        )],
    },
    Wrapped {
        package: "@qwen-code/qwen-code",
        command: "qwen",
        args: &["--auth-type", "openai", "-m", "m", "-p", "hello"],
        env: &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "{url}/v1")],
        settings: &[],
    },
    Wrapped {
        package: "@mariozechner/pi-coding-agent",
        command: "pi",
        args: &[
            "-p",
            "--offline",
            "--provider",
            "mine",
            "--model",
            "m",
            "hello",
        ],
        env: &[],
        settings: &[(
            ".pi/agent/models.json",
            r#"{"providers": {"mine": {"baseUrl": "{url}/v1", "api": "openai-completions", "apiKey": "k",
  "models": [{"id": "m", "name": "m", "reasoning": false, "input": ["text"],
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    "contextWindow": 200000, "maxTokens": 8192}]}}}"#,
        )],
    },
    Wrapped {
        package: "@github/copilot",
        command: "copilot",
        args: &["--allow-all", "--no-color", "-p", "hello"],
        env: &[
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_PROVIDER_TYPE", "openai"),
            ("COPILOT_PROVIDER_BASE_URL", "{url}/v1"),
            ("COPILOT_PROVIDER_API_KEY", "k"),
            ("COPILOT_MODEL", "gpt-4.1"),
        ],
        settings: &[],
    },
    Wrapped {
        package: "cline",
        command: "cline",
        args: &[
            "--auto-approve",
            "true",
            "-P",
            "openai",
            "-m",
            "m",
            "say hello to me",
        ],
        env: &[
            ("CLINE_NO_AUTO_UPDATE", "1"),
            ("CLINE_TELEMETRY_DISABLED", "1"),
        ],
        settings: &[(
            ".cline/data/settings/providers.json",
            r#"{"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {
  "openai-compatible": {"settings": {"provider": "openai-compatible", "apiKey": "k", "model": "m",
    "baseUrl": "{url}/v1"}, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}}"#,
        )],
    },
    Wrapped {
        package: "@continuedev/cli",
        command: "cn",
        args: &["--auto", "-p", "hello"],
        env: &[("CONTINUE_TELEMETRY_ENABLED", "0")],
        settings: &[(
            ".continue/config.yaml",
            "name: mine\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: m\n    provider: openai\n    \
             model: gpt-4o\n    apiBase: {url}/v1/\n    apiKey: k\n    roles: [chat]\n",
        )],
    },
    Wrapped {
        package: "droid",
        command: "droid",
        args: &["exec", "--auto", "high", "-m", "custom:m", "hello"],
        env: &[("FACTORY_API_KEY", "k")],
        settings: &[(
            ".factory/settings.json",
            r#"{"customModels": [{"model": "m", "displayName": "m", "baseUrl": "{url}",
  "apiKey": "k", "provider": "anthropic", "maxOutputTokens": 8192}]}"#,
        )],
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn wrapped_clients_reach_their_own_address_through_the_proxy() {
    for client in CLIENTS.iter().filter(|client| wants(client.command)) {
        reaches_its_address(client).await;
    }
}

async fn reaches_its_address(client: &Wrapped) {
    let name = client.command;
    let options = UpstreamOptions::new(ReplySource::with(|_| {
        ScriptedReply::text("hello from upstream")
    }));
    let upstream = Upstream::start(options).await.unwrap();
    let url = upstream.url();
    let folder = tempfile::tempdir().unwrap();
    for (place, text) in client.settings {
        write(&folder.path().join(place), &text.replace("{url}", &url));
    }
    let settings = settings(folder.path(), client);
    let args = [&["wrap", name], client.args].concat();
    let mut command = trimtab(folder.path(), &args);
    let path = path_with_client(client.package, name);
    command.env("PATH", path).env("CI", "1");
    for (name, value) in client.env {
        command.env(name, value.replace("{url}", &url));
    }
    let output = tokio::task::spawn_blocking(move || run_client(command));
    let (stdout, stderr) = texts(&output.await.unwrap());
    assert!(
        stdout.contains("hello from upstream"),
        "{name}: {stdout}\n{stderr}"
    );
    let told = stderr
        .lines()
        .find(|line| line.starts_with("trimtab: ") && line.contains(" call"));
    let told = told.unwrap_or_else(|| panic!("{name}: {stderr}"));
    assert!(!told.starts_with("trimtab: 0 calls"), "{name}: {told}");
    let paths: Vec<String> = upstream
        .requests()
        .iter()
        .map(|one| one.path.clone())
        .collect();
    assert!(
        paths.iter().all(|path| !path.contains("/v1/v1")),
        "{paths:?}"
    );
    let after = self::settings(folder.path(), client);
    assert_eq!(after, settings, "{name}: a file of the client changed");
    say(&format!("{name}: {told}"));
}

/// What the settings of a client say. Clients may add to them what does not concern addresses.
fn settings(home: &Path, client: &Wrapped) -> BTreeMap<PathBuf, bool> {
    let one = |(place, _): &(&str, &str)| {
        let text = std::fs::read_to_string(home.join(place)).unwrap();
        let has_address = text.contains("http://127.0.0.1:") && !text.contains("/to/");
        (PathBuf::from(place), has_address)
    };
    client.settings.iter().map(one).collect()
}

#[test]
fn wrap_list_shows_the_known_clients() {
    let folder = tempfile::tempdir().unwrap();
    let output = trimtab(folder.path(), &["wrap", "--list"])
        .output()
        .unwrap();
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stderr}");
    for client in CLIENTS {
        let name = format!("{} ", client.command);
        assert!(
            stdout.lines().any(|line| line.starts_with(&name)),
            "{name}: {stdout}"
        );
    }
    let lines = trimtab(folder.path(), &["wrap", "--list", "--json"])
        .output()
        .unwrap();
    let first: serde_json::Value =
        serde_json::from_str(texts(&lines).0.lines().next().unwrap()).unwrap();
    assert_eq!(first["client"], json!("claude"));
}

#[test]
fn unwrappable_client_error_has_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    for (client, expected) in [
        ("copilot", "COPILOT_PROVIDER_BASE_URL"),
        ("droid", "customModels"),
        ("cline", "cline auth"),
        ("vibe", "[[providers]]"),
        ("cn", "--config"),
    ] {
        let output = trimtab(folder.path(), &["wrap", client]).output().unwrap();
        let (_, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{client}: {stderr}");
        assert!(
            stderr.contains("hint: ") && stderr.contains(expected),
            "{client}: {stderr}"
        );
    }
}
