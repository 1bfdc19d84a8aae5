//! The agents of the model makers: Claude Code, Codex and Qwen Code.

use serde_json::json;

use super::KEY;
use crate::install::Package;
use crate::scenario::{RESUMED_TASK, TASK};
use crate::setup::{ClientSetup, Launch, RunPlace};

const CLAUDE: Package = Package::npm("@anthropic-ai/claude-code", "claude");
const CODEX: Package = Package::npm("@openai/codex", "codex");
const QWEN: Package = Package::npm("@qwen-code/qwen-code", "qwen");

pub(super) const CLIENTS: &[ClientSetup] = &[
    // Its default model is one that binds its reasoning, and always thinks.
    ClientSetup::new("claude", CLAUDE, |place| vec![claude(place, &[TASK], &[])])
        .resumed_by(|place| claude(place, &["--continue", RESUMED_TASK], &[]))
        .under_all_presets(),
    ClientSetup::new("claude-sonnet", CLAUDE, |place| {
        vec![claude(place, &["--model", "claude-sonnet-5-5", TASK], &[])]
    }),
    ClientSetup::new("claude-thinking", CLAUDE, |place| {
        vec![claude(place, &["--model", "claude-haiku-4-5", TASK], &[])]
    }),
    ClientSetup::new("claude-no-thinking", CLAUDE, |place| {
        let args = ["--model", "claude-haiku-4-5", TASK];
        vec![claude(place, &args, &[("MAX_THINKING_TOKENS", "0")])]
    }),
    ClientSetup::new("codex", CODEX, |place| {
        vec![codex(place, "gpt-5.4-codex", &["exec"], TASK)]
    })
    .resumed_by(|place| {
        let resume = ["exec", "resume", "--last"];
        codex(place, "gpt-5.4-codex", &resume, RESUMED_TASK)
    })
    .under_all_presets(),
    ClientSetup::new("codex-code-mode", CODEX, |place| {
        vec![codex(place, "gpt-5.6-sol", &["exec"], TASK)]
    })
    .resumed_by(|place| {
        let resume = ["exec", "resume", "--last"];
        codex(place, "gpt-5.6-sol", &resume, RESUMED_TASK)
    })
    .under_all_presets(),
    ClientSetup::new("qwen-chat", QWEN, |place| qwen(place, "openai")),
    ClientSetup::new("qwen-responses", QWEN, |place| {
        qwen(place, "openai-responses")
    }),
    ClientSetup::new("qwen-anthropic", QWEN, |place| qwen(place, "anthropic")),
];

fn claude(place: &RunPlace, args: &[&str], env: &[(&str, &str)]) -> Launch {
    let mut all = vec!["-p", "--dangerously-skip-permissions"];
    all.extend(args);
    let launch = place.npm("claude", all).with_env([
        ("ANTHROPIC_BASE_URL", place.url.as_str()),
        ("ANTHROPIC_API_KEY", KEY),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("IS_SANDBOX", "1"),
    ]);
    launch.with_env(env.iter().copied())
}

fn codex(place: &RunPlace, model: &str, verb: &[&str], task: &str) -> Launch {
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
    let args = [verb, &["--skip-git-repo-check", task]].concat();
    place.npm("codex", args).with_env([("LOCAL_KEY", KEY)])
}

fn qwen(place: &RunPlace, api: &str) -> Vec<Launch> {
    let settings = json!({
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false},
    });
    place.write(".qwen/settings.json", settings.to_string());
    let (url, model) = match api {
        "anthropic" => (place.url.clone(), "claude-opus-5-5"),
        "openai" => (place.v1(), "gpt-4o"),
        _ => (place.v1(), "gpt-6.1-sol"),
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
