//! Agents for any model: opencode, pi, Copilot, Cline and Continue.

use serde_json::json;

use super::KEY;
use crate::install::Package;
use crate::scenario::{RESUMED_TASK, TASK};
use crate::setup::{ClientSetup, Launch, RunPlace};

const OPENCODE: Package = Package::npm("opencode-ai", "opencode");
const PI: Package = Package::npm("@mariozechner/pi-coding-agent", "pi");
const COPILOT: Package = Package::npm("@github/copilot", "copilot");
const CLINE: Package = Package::npm("cline", "cline");
const CONTINUE: Package = Package::npm("@continuedev/cli", "cn");

pub(super) const CLIENTS: &[ClientSetup] = &[
    ClientSetup::new("opencode-chat", OPENCODE, |place| {
        vec![opencode(place, OPENCODE_CHAT, &[TASK])]
    })
    .resumed_by(|place| opencode(place, OPENCODE_CHAT, &["-c", RESUMED_TASK])),
    ClientSetup::new("opencode-responses", OPENCODE, |place| {
        vec![opencode(place, OPENCODE_RESPONSES, &[TASK])]
    })
    .resumed_by(|place| opencode(place, OPENCODE_RESPONSES, &["-c", RESUMED_TASK])),
    ClientSetup::new("opencode-anthropic", OPENCODE, |place| {
        vec![opencode(place, OPENCODE_ANTHROPIC, &[TASK])]
    })
    .resumed_by(|place| opencode(place, OPENCODE_ANTHROPIC, &["-c", RESUMED_TASK]))
    .under_all_presets(),
    ClientSetup::new("pi-chat", PI, |place| {
        vec![pi(place, "openai-completions", "gpt-4o", &[TASK])]
    }),
    ClientSetup::new("pi-responses", PI, |place| {
        vec![pi(place, "openai-responses", "gpt-6.1-sol", &[TASK])]
    })
    .under_all_presets(),
    ClientSetup::new("pi-anthropic", PI, |place| {
        vec![pi(place, "anthropic-messages", "claude-opus-5-5", &[TASK])]
    })
    .resumed_by(|place| {
        let args = ["--continue", RESUMED_TASK];
        pi(place, "anthropic-messages", "claude-opus-5-5", &args)
    }),
    ClientSetup::new("copilot-chat", COPILOT, |place| {
        vec![copilot(place, "openai", "completions", &["-p", TASK])]
    })
    .under_all_presets(),
    ClientSetup::new("copilot-responses", COPILOT, |place| {
        vec![copilot(place, "openai", "responses", &["-p", TASK])]
    })
    .resumed_by(|place| {
        let args = ["--continue", "-p", RESUMED_TASK];
        copilot(place, "openai", "responses", &args)
    }),
    ClientSetup::new("copilot-anthropic", COPILOT, |place| {
        vec![copilot(place, "anthropic", "completions", &["-p", TASK])]
    }),
    ClientSetup::new("cline-chat", CLINE, |place| cline(place, "openai")),
    ClientSetup::new("cline-responses", CLINE, |place| {
        cline(place, "openai-native")
    }),
    ClientSetup::new("continue-chat", CONTINUE, |place| {
        continue_agent(place, "openai", "gpt-4o")
    }),
    ClientSetup::new("continue-anthropic", CONTINUE, |place| {
        continue_agent(place, "anthropic", "claude-sonnet-5-5")
    }),
];

/// The library with which opencode speaks an API, and a model there.
type OpencodeApi = (&'static str, &'static str);
const OPENCODE_CHAT: OpencodeApi = ("@ai-sdk/openai-compatible", "gpt-4o");
const OPENCODE_RESPONSES: OpencodeApi = ("@ai-sdk/openai", "gpt-6.1-sol");
const OPENCODE_ANTHROPIC: OpencodeApi = ("@ai-sdk/anthropic", "claude-opus-5-5");

fn opencode(place: &RunPlace, (library, model): OpencodeApi, args: &[&str]) -> Launch {
    let name = format!("local/{model}");
    let settings = json!({
        "autoupdate": false, "share": "disabled",
        "model": name, "small_model": name,
        "permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"},
        "provider": {"local": {
            "npm": library, "name": "local",
            "options": {"baseURL": place.v1(), "apiKey": KEY},
            "models": {model: {
                "name": model, "tool_call": true,
                "limit": {"context": 200_000, "output": 8_192},
            }},
        }},
    });
    place.write(".config/opencode/opencode.json", settings.to_string());
    let args = [&["run", "-m", name.as_str()], args].concat();
    place.npm("opencode", args).with_env([
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ])
}

fn pi(place: &RunPlace, api: &str, model: &str, args: &[&str]) -> Launch {
    let url = match api {
        "anthropic-messages" => place.url.clone(),
        _ => place.v1(),
    };
    let models = json!({"providers": {"local": {
        "baseUrl": url, "api": api, "apiKey": KEY,
        "models": [{
            "id": model, "name": model, "reasoning": true, "input": ["text"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 200_000, "maxTokens": 8_192,
        }],
    }}});
    place.write(".pi/agent/models.json", models.to_string());
    let usual = ["-p", "--offline", "--provider", "local", "--model", model];
    let args = [&usual, args].concat();
    place.npm("pi", args).with_env([("PI_OFFLINE", "1")])
}

fn copilot(place: &RunPlace, provider: &str, api: &str, args: &[&str]) -> Launch {
    let (url, model) = match (provider, api) {
        ("anthropic", _) => (place.url.clone(), "claude-opus-5-5"),
        (_, "completions") => (place.v1(), "gpt-4o"),
        _ => (place.v1(), "gpt-6.1-sol"),
    };
    let usual = ["--allow-all", "--no-color", "--log-level", "error"];
    let args = [&usual, args].concat();
    place.npm("copilot", args).with_env([
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_AUTO_UPDATE", "false"),
        ("COPILOT_PROVIDER_TYPE", provider),
        ("COPILOT_PROVIDER_WIRE_API", api),
        ("COPILOT_PROVIDER_BASE_URL", &url),
        ("COPILOT_PROVIDER_API_KEY", KEY),
        ("COPILOT_MODEL", model),
    ])
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
