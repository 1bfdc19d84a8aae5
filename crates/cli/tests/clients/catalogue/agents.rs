//! The agents of the model makers: Claude Code, Codex and Qwen Code.

use serde_json::json;

use super::KEY;
use crate::install::Package;
use crate::scenario::TASK;
use crate::setup::{ClientSetup, Launch, RunPlace};

const CLAUDE: Package = Package::npm("@anthropic-ai/claude-code", "claude");
const CODEX: Package = Package::npm("@openai/codex", "codex");
const QWEN: Package = Package::npm("@qwen-code/qwen-code", "qwen");

pub(super) const CLIENTS: &[ClientSetup] = &[
    ClientSetup::new("claude", CLAUDE, |place| claude(place, &[], &[])),
    ClientSetup::new("claude-thinking", CLAUDE, |place| {
        claude(place, &["--model", "claude-haiku-4-5"], &[])
    }),
    ClientSetup::new("claude-no-thinking", CLAUDE, |place| {
        let model = ["--model", "claude-haiku-4-5"];
        claude(place, &model, &[("MAX_THINKING_TOKENS", "0")])
    }),
    ClientSetup::new("codex", CODEX, |place| codex(place, "gpt-5-codex")),
    ClientSetup::new("codex-code-mode", CODEX, |place| {
        codex(place, "gpt-5.6-sol")
    }),
    ClientSetup::new("qwen-chat", QWEN, |place| qwen(place, "openai")),
    ClientSetup::new("qwen-responses", QWEN, |place| {
        qwen(place, "openai-responses")
    }),
    ClientSetup::new("qwen-anthropic", QWEN, |place| qwen(place, "anthropic")),
];

fn claude(place: &RunPlace, args: &[&str], env: &[(&str, &str)]) -> Vec<Launch> {
    let mut all = vec!["-p", "--dangerously-skip-permissions"];
    all.extend(args);
    all.push(TASK);
    let launch = place.npm("claude", all).with_env([
        ("ANTHROPIC_BASE_URL", place.url.as_str()),
        ("ANTHROPIC_API_KEY", KEY),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("IS_SANDBOX", "1"),
    ]);
    vec![launch.with_env(env.iter().copied())]
}

fn codex(place: &RunPlace, model: &str) -> Vec<Launch> {
    let settings = format!(
        r#"model = "{model}"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.local]
name = "local"
base_url = "{}"
env_key = "LOCAL_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"#,
        place.v1()
    );
    place.write(".codex/config.toml", settings);
    let launch = place.npm("codex", ["exec", "--skip-git-repo-check", TASK]);
    vec![launch.with_env([("LOCAL_KEY", KEY)])]
}

fn qwen(place: &RunPlace, api: &str) -> Vec<Launch> {
    let settings = json!({
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false},
    });
    place.write(".qwen/settings.json", settings.to_string());
    let (url, model) = match api {
        "anthropic" => (place.url.clone(), "claude-sonnet-4-5"),
        "openai" => (place.v1(), "gpt-4o"),
        _ => (place.v1(), "gpt-5"),
    };
    let args = ["--auth-type", api, "-m", model, "--approval-mode", "yolo"];
    let launch = place.npm("qwen", args.into_iter().chain(["-p", TASK]));
    vec![launch.with_env([
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", &url),
        ("OPENAI_MODEL", model),
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", &url),
        ("ANTHROPIC_MODEL", model),
    ])]
}
