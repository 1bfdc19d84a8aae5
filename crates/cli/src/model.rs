//! Resolves a model name to a client: dialect, server and key.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use trimtab::network::OutboundNetwork;
use trimtab::provider::Provider;
use trimtab_agent::model::{ApiKey, Endpoint, HttpModel, Model, ModelClient, ScriptedModel};
use trimtab_model::Dialect;
use trimtab_wire::catalogue::Catalogue;

use crate::exit::{Failure, with_hint};
use crate::key_handover;

/// The prefix of a model name that names a script.
pub const SCRIPTED: &str = "scripted:";

/// The dialects, as command line values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum DialectName {
    /// Chat Completions, which most servers speak
    Chat,
    /// Responses
    Responses,
    /// Messages
    Messages,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Chat => Self::Chat,
            DialectName::Responses => Self::Responses,
            DialectName::Messages => Self::Messages,
        }
    }
}

/// A requested model with the options given for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelChoice<'a> {
    /// The name of the model, optionally with its dialect as in `messages:NAME`.
    pub name: &'a str,
    /// The server; if unset, the environment or the provider decides.
    pub base_url: Option<&'a str>,
    /// The dialect; if unset, it is guessed from the name.
    pub dialect: Option<Dialect>,
}

/// Creates a client for the requested model. `network` makes the connections.
pub fn find(
    choice: &ModelChoice<'_>,
    catalogue: &Catalogue,
    network: OutboundNetwork,
) -> Result<Model, Failure> {
    let (prefix_dialect, name) = split_dialect(choice.name);
    let dialect = choice.dialect.or(prefix_dialect);
    let dialect = dialect.unwrap_or_else(|| guess(name, choice.base_url, catalogue));
    let endpoint = endpoint(name, choice.base_url, dialect)?;
    let http = HttpModel::new(dialect, endpoint).network(network);
    Ok(Model::new(ModelClient::new(http), name))
}

/// Loads the script if `name` names one.
pub fn script(name: &str) -> Result<Option<ScriptedModel>, Failure> {
    let Some(file) = name.strip_prefix(SCRIPTED) else {
        return Ok(None);
    };
    let scripted = ScriptedModel::from_file(file).map_err(|error| {
        let hint = "a script is a JSON list such as [{\"text\": \"hello\"}]; see docs/script.md";
        let (message, own) = with_hint(&error.to_string());
        Failure::input(message, own.unwrap_or_else(|| hint.to_owned()))
    })?;
    Ok(Some(scripted))
}

/// Splits the dialect prefix from a name.
fn split_dialect(name: &str) -> (Option<Dialect>, &str) {
    let prefixes = [
        ("chat:", Dialect::Chat),
        ("messages:", Dialect::Messages),
        ("responses:", Dialect::Responses),
    ];
    let found = prefixes
        .into_iter()
        .find_map(|(prefix, dialect)| Some((Some(dialect), name.strip_prefix(prefix)?)));
    found.unwrap_or((None, name))
}

/// Guesses the dialect: Messages for models of Anthropic, Responses for reasoning models served by
/// `OpenAI`, else Chat Completions.
fn guess(name: &str, base_url: Option<&str>, catalogue: &Catalogue) -> Dialect {
    let known = catalogue.find(name).map(|found| found.model);
    let maker = known.as_ref().map(|model| model.provider.as_str());
    match (maker, &known) {
        (Ok("anthropic"), _) => Dialect::Messages,
        // Other servers of these models may not have the Responses API.
        (Ok("openai"), Ok(model)) if model.reasons && base_url.is_none() => Dialect::Responses,
        // A Claude model newer than the catalogue.
        (Err(_), _) if name.contains("claude") && base_url.is_none() => Dialect::Messages,
        _ => Dialect::Chat,
    }
}

/// The server of a model with the key of the provider whose dialect it speaks. No other key is ever
/// sent.
fn endpoint(name: &str, base_url: Option<&str>, dialect: Dialect) -> Result<Endpoint, Failure> {
    let provider = Provider::of_dialect(dialect);
    let (variable, address) = (provider.key_variable(), provider.base_variable());
    let bad = |from: &str, error: &dyn std::error::Error| {
        let (message, hint) = with_hint(&error.to_string());
        let message = format!("{from}{message}");
        Failure::Input { message, hint }
    };
    let endpoint = if let Some(base) = base_url {
        Endpoint::new(base).map_err(|error| bad("", &error))?
    } else {
        let found = Endpoint::from_env(dialect);
        found.map_err(|error| bad(&format!("{address}: "), &error))?
    };
    let Some(key) = key_handover::key(variable) else {
        // A private server may need no key, but the provider's own server does.
        if base_url.is_none() && host_of(&endpoint) == Some(provider) {
            return Err(Failure::input(
                format!("no key for model '{name}': {variable} is not set"),
                format!("set {variable}, or for a server without a key --base-url or {address}"),
            ));
        }
        return Ok(endpoint);
    };
    if !may_send_key(&endpoint, provider, key.trim()) {
        let base = endpoint.base();
        return Err(Failure::input(
            format!("the key in {variable} does not belong to {base}, so it is not sent there"),
            "set the key of that provider, give another --base-url, or choose its own dialect \
             with --dialect",
        ));
    }
    Ok(endpoint.key(ApiKey::new(key)))
}

/// The provider that owns this address.
fn host_of(endpoint: &Endpoint) -> Option<Provider> {
    let base: http::Uri = endpoint.base().parse().ok()?;
    Provider::of_host(base.host()?)
}

/// False if the endpoint is a provider's own address and the key belongs to another provider.
/// `usual` is the provider whose variable the key comes from.
fn may_send_key(endpoint: &Endpoint, usual: Provider, key: &str) -> bool {
    host_of(endpoint).is_none_or(|host| {
        // A key of another provider may go to that provider, also from this variable: Anthropic has
        // an endpoint for clients of OpenAI.
        let is_usual = host == usual || !usual.may_issue(key);
        host.may_issue(key) && is_usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialect_is_guessed_from_the_model_name() {
        let local = Some("http://127.0.0.1:8080/v1");
        let catalogue = Catalogue::embedded();
        for (name, base_url, expected) in [
            ("claude-sonnet-4-5", None, Dialect::Messages),
            ("claude-sonnet-4-5", local, Dialect::Messages),
            ("claude-of-tomorrow", None, Dialect::Messages),
            ("claude-of-tomorrow", local, Dialect::Chat),
            ("gpt-4o", None, Dialect::Chat),
            ("gpt-5", None, Dialect::Responses),
            ("gpt-5", local, Dialect::Chat),
            ("a-model-of-mine", local, Dialect::Chat),
        ] {
            let spoken = guess(name, base_url, &catalogue);
            assert_eq!(spoken, expected, "{name} {base_url:?}");
        }
    }

    #[test]
    fn dialect_prefix_overrides_the_guess() {
        let responses = (Some(Dialect::Responses), "gpt-x");
        assert_eq!(split_dialect("responses:gpt-x"), responses);
        assert_eq!(
            split_dialect("chat:claude"),
            (Some(Dialect::Chat), "claude")
        );
        assert_eq!(split_dialect("qwen3:8b"), (None, "qwen3:8b"));
    }

    #[test]
    fn key_goes_only_to_its_provider_or_a_private_server() {
        let may = |base: &str, usual: Provider, key: &str| {
            may_send_key(&Endpoint::new(base).unwrap(), usual, key)
        };
        let (anthropic, openai) = (Provider::Anthropic, Provider::OpenAi);
        assert!(may("http://127.0.0.1:1/v1", openai, "sk-proj-1"));
        assert!(may("https://api.openai.com/v1", openai, "sk-proj-1"));
        assert!(may("https://api.anthropic.com", anthropic, "sk-ant-1"));
        // Its endpoint for clients of the other provider takes its own keys.
        assert!(may("https://api.anthropic.com/v1", openai, "sk-ant-1"));
        assert!(!may("https://api.anthropic.com/v1", openai, "sk-proj-1"));
        assert!(!may("https://api.anthropic.com/v1", openai, "plain"));
        assert!(!may("https://api.openai.com", anthropic, "sk-ant-1"));
        assert!(!may("https://api.openai.com", openai, "sk-ant-1"));
    }
}
