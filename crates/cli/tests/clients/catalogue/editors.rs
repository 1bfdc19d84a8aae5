//! Agents for any model: opencode, pi, Copilot, Cline and Continue.

use serde_json::json;

use super::KEY;
use crate::install::Package;
use crate::scenario::TASK;
use crate::setup::{ClientSetup, Launch, RunPlace};

const OPENCODE: Package = Package::npm("opencode-ai", "opencode");
const PI: Package = Package::npm("@mariozechner/pi-coding-agent", "pi");
const COPILOT: Package = Package::npm("@github/copilot", "copilot");
const CLINE: Package = Package::npm("cline", "cline");
const CONTINUE: Package = Package::npm("@continuedev/cli", "cn");

pub(super) const CLIENTS: &[ClientSetup] = &[
    ClientSetup::new("opencode-chat", OPENCODE, |place| {
        opencode(place, "@ai-sdk/openai-compatible")
    }),
    ClientSetup::new("opencode-responses", OPENCODE, |place| {
        opencode(place, "@ai-sdk/openai")
    }),
    ClientSetup::new("opencode-anthropic", OPENCODE, |place| {
        opencode(place, "@ai-sdk/anthropic")
    }),
    ClientSetup::new("pi-chat", PI, |place| pi(place, "openai-completions")),
    ClientSetup::new("pi-responses", PI, |place| pi(place, "openai-responses")),
    ClientSetup::new("pi-anthropic", PI, |place| pi(place, "anthropic-messages")),
    ClientSetup::new("copilot-chat", COPILOT, |place| {
        copilot(place, "openai", "completions")
    }),
    ClientSetup::new("copilot-responses", COPILOT, |place| {
        copilot(place, "openai", "responses")
    }),
    ClientSetup::new("copilot-anthropic", COPILOT, |place| {
        copilot(place, "anthropic", "completions")
    }),
    ClientSetup::new("cline-chat", CLINE, |place| cline(place, "openai")),
    ClientSetup::new("cline-responses", CLINE, |place| {
        cline(place, "openai-native")
    }),
    ClientSetup::new("continue-chat", CONTINUE, |place| {
        continue_agent(place, "openai", "gpt-4o")
    }),
    ClientSetup::new("continue-anthropic", CONTINUE, |place| {
        continue_agent(place, "anthropic", "claude-sonnet-4-5")
    }),
];

fn opencode(place: &RunPlace, library: &str) -> Vec<Launch> {
    let settings = json!({
        "autoupdate": false, "share": "disabled",
        "model": "local/audit", "small_model": "local/audit",
        "permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"},
        "provider": {"local": {
            "npm": library, "name": "local",
            "options": {"baseURL": place.v1(), "apiKey": KEY},
            "models": {"audit": {
                "name": "audit", "tool_call": true,
                "limit": {"context": 200_000, "output": 8_192},
            }},
        }},
    });
    place.write(".config/opencode/opencode.json", settings.to_string());
    let launch = place.npm("opencode", ["run", "-m", "local/audit", TASK]);
    vec![launch.with_env([
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ])]
}

fn pi(place: &RunPlace, api: &str) -> Vec<Launch> {
    let url = match api {
        "anthropic-messages" => place.url.clone(),
        _ => place.v1(),
    };
    let models = json!({"providers": {"local": {
        "baseUrl": url, "api": api, "apiKey": KEY,
        "models": [{
            "id": "audit", "name": "audit", "reasoning": true, "input": ["text"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 200_000, "maxTokens": 8_192,
        }],
    }}});
    place.write(".pi/agent/models.json", models.to_string());
    let args = [
        "-p",
        "--offline",
        "--provider",
        "local",
        "--model",
        "audit",
        TASK,
    ];
    vec![place.npm("pi", args).with_env([("PI_OFFLINE", "1")])]
}

fn copilot(place: &RunPlace, provider: &str, api: &str) -> Vec<Launch> {
    let (url, model) = match provider {
        "anthropic" => (place.url.clone(), "claude-sonnet-4.5"),
        _ => (place.v1(), "gpt-5.4"),
    };
    let args = [
        "--allow-all",
        "--no-color",
        "--log-level",
        "error",
        "-p",
        TASK,
    ];
    let launch = place.npm("copilot", args).with_env([
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_AUTO_UPDATE", "false"),
        ("COPILOT_PROVIDER_TYPE", provider),
        ("COPILOT_PROVIDER_WIRE_API", api),
        ("COPILOT_PROVIDER_BASE_URL", &url),
        ("COPILOT_PROVIDER_API_KEY", KEY),
        ("COPILOT_MODEL", model),
    ]);
    vec![launch]
}

/// Signs in first, which only writes a file.
fn cline(place: &RunPlace, provider: &str) -> Vec<Launch> {
    let url = place.v1();
    let auth = ["auth", "-p", provider, "-k", KEY, "-m", "gpt-5", "-b", &url];
    let run = [
        "--auto-approve",
        "true",
        "-P",
        provider,
        "-m",
        "gpt-5",
        "-t",
        "200",
        TASK,
    ];
    let env = [
        ("CLINE_NO_AUTO_UPDATE", "1"),
        ("CLINE_TELEMETRY_DISABLED", "1"),
    ];
    vec![
        place.npm("cline", auth).with_env(env),
        place.npm("cline", run).with_env(env),
    ]
}

fn continue_agent(place: &RunPlace, provider: &str, model: &str) -> Vec<Launch> {
    // JSON is YAML too.
    let settings = json!({
        "name": "local", "version": "1.0.0", "schema": "v1",
        "models": [{
            "name": "audit", "provider": provider, "model": model,
            "apiBase": format!("{}/", place.v1()), "apiKey": KEY,
            "roles": ["chat"], "capabilities": ["tool_use"],
            "defaultCompletionOptions": {"contextLength": 200_000, "maxTokens": 8_192},
        }],
    });
    let file = place.write("config.yaml", settings.to_string());
    let args = ["--config", file.to_str().unwrap(), "--auto", "-p", TASK];
    let launch = place.npm("cn", args);
    vec![launch.with_env([("CONTINUE_TELEMETRY_ENABLED", "0")])]
}
