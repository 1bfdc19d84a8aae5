//! Codex: flags that change the address of its provider.
//!
//! The provider keeps its name, because Codex resumes a chat only with the provider of that chat.

use serde_json::Value;

use super::setup::{ClientSetup, ClientSurroundings, URL};
use crate::exit::Failure;

/// Codex's name for the provider `OpenAI`.
const OPENAI: &str = "openai";
/// The server that Codex uses with a login instead of a key.
const CHATGPT: &str = "https://chatgpt.com/backend-api/codex";

pub(super) fn codex(
    surroundings: &ClientSurroundings<'_>,
    setup: &mut ClientSetup,
) -> Result<(), Failure> {
    let home = surroundings.folder("CODEX_HOME", ".codex");
    let file = home.join("config.toml");
    let config = surroundings.toml(&file).unwrap_or_default();
    let from = file.display().to_string();
    let provider = provider(&config);
    let own = config
        .get("model_providers")
        .and_then(|all| all.get(provider)?.get("base_url")?.as_str());
    // A custom provider keeps its name, because Codex resumes a chat only with the same provider.
    if let Some(base) = own {
        let address = setup.redirect(surroundings, base, &from);
        let flag = format!(
            "model_providers.{}.base_url=\"{address}\"",
            quoted(provider)
        );
        setup.pass(["-c", &flag]);
        return Ok(());
    }
    if provider != OPENAI {
        return Err(Failure::input(
            format!("codex uses the provider {provider}, but {from} has no base_url for it"),
            format!(
                "set model_providers.{provider}.base_url there, or run codex with -c model_provider=openai"
            ),
        ));
    }
    let set = config.get("openai_base_url").and_then(Value::as_str);
    let address = if let Some(base) = set {
        setup.redirect(surroundings, base, &from)
    // Accounts use another server than API keys.
    } else if is_chatgpt_login(surroundings.json(&home.join("auth.json")).as_ref()) {
        setup.redirect(surroundings, CHATGPT, "Codex's ChatGPT login")
    } else {
        format!("{URL}/v1")
    };
    setup.pass(["-c", &format!("openai_base_url=\"{address}\"")]);
    Ok(())
}

/// The provider in the settings.
fn provider(config: &Value) -> &str {
    let profile = config.get("profile").and_then(Value::as_str);
    let profile = profile.and_then(|name| config.get("profiles")?.get(name));
    let named = profile.and_then(|profile| profile.get("model_provider"));
    let named = named.or_else(|| config.get("model_provider"));
    named.and_then(Value::as_str).unwrap_or(OPENAI)
}

/// True if Codex has the login of an account, which overrides a key in the environment.
fn is_chatgpt_login(login: Option<&Value>) -> bool {
    let has =
        |name: &str| login.is_some_and(|login| login.get(name).is_some_and(|it| !it.is_null()));
    has("tokens") && !has("OPENAI_API_KEY")
}

/// Quotes a name as part of a dotted key.
fn quoted(name: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    if name.chars().all(is_plain) {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}
