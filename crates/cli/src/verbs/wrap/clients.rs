//! The known clients, and how each is pointed at the proxy: by environment, flags or a temporary
//! file, never by changing the client's own files.

use std::ffi::OsString;
use std::path::Path;

use trimtab::provider::Provider;
use trimtab_proxy::UpstreamConfig;

use super::codex::codex;
use super::continue_dev::continue_dev;
use super::files::{cline, droid, pi, qwen_models, vibe};
use super::opencode::opencode;
use super::setup::{ClientSetup, ClientSurroundings, URL};
use crate::exit::Failure;
use crate::proxy::destinations::GEMINI;

/// The path for Gemini's API. Its requests pass through, because it is none of our dialects.
const GEMINI_PATH: &str = "/gemini";
/// The variable that overrides Gemini's address.
const GEMINI_VARIABLE: &str = "GOOGLE_GEMINI_BASE_URL";
/// Variables that set the server of a client; the first ones take precedence.
const BASES: [(&str, Provider); 4] = [
    ("ANTHROPIC_BASE_URL", Provider::Anthropic),
    ("ANTHROPIC_API_BASE", Provider::Anthropic),
    ("OPENAI_BASE_URL", Provider::OpenAi),
    ("OPENAI_API_BASE", Provider::OpenAi),
];
/// Variables that make Claude Code use a cloud API that we do not support.
const CLAUDE_CLOUDS: [&str; 3] = [
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// How a client is pointed at the proxy.
#[derive(Clone, Copy)]
enum WrapMethod {
    /// Always works.
    Sure(fn(&ClientSurroundings<'_>, &mut ClientSetup)),
    /// Fails if the client has no address to change.
    Unsure(fn(&ClientSurroundings<'_>, &mut ClientSetup) -> Result<(), Failure>),
}

/// A known client.
pub(super) struct KnownClient {
    /// Its command.
    pub(super) command: &'static str,
    /// How it is pointed at the proxy, as text.
    pub(super) how: &'static str,
    method: WrapMethod,
}

/// All known clients.
pub(super) const CLIENTS: [KnownClient; 12] = [
    client(
        "claude",
        "ANTHROPIC_BASE_URL, or --settings if its own settings name an address",
        WrapMethod::Unsure(claude),
    ),
    client(
        "codex",
        "-c openai_base_url, or the provider in config.toml",
        WrapMethod::Unsure(codex),
    ),
    client(
        "opencode",
        "OPENCODE_CONFIG_CONTENT, with every provider that has an address",
        WrapMethod::Sure(opencode),
    ),
    client(
        "gemini",
        "GOOGLE_GEMINI_BASE_URL; its requests pass through unchanged",
        WrapMethod::Sure(gemini),
    ),
    client(
        "qwen",
        "the four variables below; a temporary file for models in its settings",
        WrapMethod::Sure(qwen),
    ),
    client("aider", "the four variables below", WrapMethod::Sure(any)),
    client(
        "pi",
        "--extension with a temporary file, also for the providers of models.json",
        WrapMethod::Sure(pi),
    ),
    client(
        "copilot",
        "COPILOT_PROVIDER_BASE_URL, which must be set",
        WrapMethod::Unsure(copilot),
    ),
    client(
        "cline",
        "CLINE_PROVIDER_SETTINGS_PATH with a temporary copy",
        WrapMethod::Unsure(cline),
    ),
    client(
        "cn",
        "--config with a temporary copy (Continue)",
        WrapMethod::Unsure(continue_dev),
    ),
    client(
        "droid",
        "--settings with a temporary copy of your custom models",
        WrapMethod::Unsure(droid),
    ),
    client(
        "vibe",
        "VIBE_PROVIDERS, with the providers of config.toml",
        WrapMethod::Unsure(vibe),
    ),
];

const fn client(command: &'static str, how: &'static str, way: WrapMethod) -> KnownClient {
    KnownClient {
        command,
        how,
        method: way,
    }
}

/// How to run the client `command`. `asked` are variables to set instead.
pub(super) fn setup(
    command: &str,
    rest: &[OsString],
    asked: &[String],
    surroundings: &ClientSurroundings<'_>,
) -> Result<ClientSetup, Failure> {
    // The client may be given with a path.
    let name = Path::new(command).file_stem();
    let name = name.and_then(|name| name.to_str()).unwrap_or(command);
    let mut setup = ClientSetup {
        user_args: rest.to_vec(),
        ..ClientSetup::default()
    };
    // With --env, the user decides everything.
    if asked.is_empty() {
        let known = CLIENTS.iter().find(|client| client.command == name);
        match known.map_or(WrapMethod::Sure(any), |client| client.method) {
            WrapMethod::Sure(way) => way(surroundings, &mut setup),
            WrapMethod::Unsure(way) => way(surroundings, &mut setup)?,
        }
    } else {
        let pairs: Result<_, _> = asked.iter().map(|text| parse(text)).collect();
        setup.env = pairs?;
    }
    // The longest prefix wins, so these do not shadow redirected addresses.
    setup.upstreams.extend(upstreams(surroundings));
    Ok(setup)
}

/// Sets all variables, because the client may read any of them.
fn any(_: &ClientSurroundings<'_>, setup: &mut ClientSetup) {
    for (name, provider) in BASES {
        match provider {
            Provider::Anthropic => setup.set(name, URL),
            Provider::OpenAi => setup.set(name, &format!("{URL}/v1")),
        }
    }
}

fn qwen(surroundings: &ClientSurroundings<'_>, setup: &mut ClientSetup) {
    any(surroundings, setup);
    qwen_models(surroundings, setup);
}

fn claude(surroundings: &ClientSurroundings<'_>, setup: &mut ClientSetup) -> Result<(), Failure> {
    if let Some(cloud) = CLAUDE_CLOUDS
        .into_iter()
        .find(|name| surroundings.is_set(name))
    {
        return Err(Failure::input(
            format!("claude uses a cloud API that the proxy does not support: {cloud} is set"),
            format!("unset {cloud} to use Anthropic's API or a compatible gateway"),
        ));
    }
    setup.set("ANTHROPIC_BASE_URL", URL);
    // The settings files override the environment, and later files override earlier ones.
    let home = surroundings.folder("CLAUDE_CONFIG_DIR", ".claude");
    let files = [
        home.join("settings.json"),
        ".claude/settings.json".into(),
        ".claude/settings.local.json".into(),
    ];
    let named = files.iter().rev().find_map(|file| {
        let address = surroundings
            .json(file)?
            .pointer("/env/ANTHROPIC_BASE_URL")?
            .clone();
        Some((file, address.as_str()?.to_owned()))
    });
    if let Some((file, base)) = named {
        let address = setup.redirect(surroundings, &base, &file.display().to_string());
        let settings = serde_json::json!({"env": {"ANTHROPIC_BASE_URL": address}});
        setup.pass(["--settings", &settings.to_string()]);
    }
    Ok(())
}

/// Points Gemini CLI at its path.
fn gemini(surroundings: &ClientSurroundings<'_>, setup: &mut ClientSetup) {
    setup.set(GEMINI_VARIABLE, &format!("{URL}{GEMINI_PATH}"));
    let set = (surroundings.variable)(GEMINI_VARIABLE);
    let (name, url) = match &set {
        Some(url) => (GEMINI_VARIABLE, url.as_str()),
        None => ("gemini", GEMINI),
    };
    setup.upstreams.push(UpstreamConfig {
        prefix: GEMINI_PATH.to_owned(),
        ..UpstreamConfig::new(name, url)
    });
}

fn copilot(surroundings: &ClientSurroundings<'_>, setup: &mut ClientSetup) -> Result<(), Failure> {
    let name = "COPILOT_PROVIDER_BASE_URL";
    let Some(base) = (surroundings.variable)(name) else {
        return Err(Failure::input(
            "copilot uses GitHub's own models, which do not go through a proxy",
            format!(
                "for your own model set {name}, COPILOT_PROVIDER_TYPE (openai or anthropic), \
                 COPILOT_PROVIDER_API_KEY and COPILOT_MODEL; see 'copilot help providers'"
            ),
        ));
    };
    let address = setup.redirect(surroundings, &base, name);
    setup.set(name, &address);
    // Windows can be managed over HTTP only.
    setup.set("COPILOT_PROVIDER_TRANSPORT", "http");
    Ok(())
}

/// The servers that the environment names, which become the proxy's upstreams.
fn upstreams(surroundings: &ClientSurroundings<'_>) -> Vec<UpstreamConfig> {
    let set = |provider: Provider| {
        let names = BASES.into_iter().filter(|(_, of)| *of == provider);
        let mut urls = names.filter_map(|(name, _)| {
            let url = (surroundings.variable)(name)?;
            Some(UpstreamConfig::new(name, url).for_dialects(provider.dialects().iter().copied()))
        });
        urls.next()
    };
    Provider::ALL
        .into_iter()
        .map(|provider| set(provider).unwrap_or_else(|| UpstreamConfig::of_provider(provider)))
        .collect()
}

fn parse(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::input(
            format!("--env {text}: expected NAME=VALUE"),
            "write --env NAME=VALUE, with {url} where the proxy's address belongs",
        )),
    }
}

#[cfg(test)]
mod tests;
