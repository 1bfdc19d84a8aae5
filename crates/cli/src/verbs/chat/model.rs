//! Which model answers, and how it is reached.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use trimtab::store::Error;
use trimtab::wire::catalogue::Catalogue;
use trimtab_agent::model::{Client, Endpoint, Key, Model, Scripted};
use trimtab_model::Dialect;

use super::choice::Choice;
use super::sessions;
use super::text::with_hint;
use crate::exit::Failure;

/// What a model that is a script begins with.
pub(super) const SCRIPTED: &str = "scripted:";

/// What is spoken with a model.
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

/// True if a script answers.
pub(super) fn is_scripted(name: &str) -> bool {
    name.starts_with(SCRIPTED)
}

/// The model that was chosen. `answered` counts the answers that the session has already: a
/// script goes on behind them.
pub(super) fn open(
    choice: &Choice,
    catalogue: &Catalogue,
    answered: impl FnOnce() -> Result<usize, Error>,
) -> Result<Model, Failure> {
    let name = choice.model.as_deref().map(str::trim).unwrap_or_default();
    if name.is_empty() {
        return Err(Failure::input(
            "no model is named",
            "--model NAME or TRIMTAB_MODEL; --model scripted:examples/script.json needs no key",
        ));
    }
    if let Some(file) = name.strip_prefix(SCRIPTED) {
        let answered = answered().map_err(|error| sessions::failed(&error))?;
        return Ok(Model::new(scripted(file, answered)?, name));
    }
    let dialect = choice
        .dialect
        .map_or_else(|| guess(choice, name, catalogue), Dialect::from);
    Ok(Model::new(
        Client::http(dialect, endpoint(choice, name, dialect)?),
        name,
    ))
}

/// What a model speaks, by its name: Messages if its maker is Anthropic, Responses if it reasons
/// and is served by its maker `OpenAI`, else Chat Completions.
fn guess(choice: &Choice, name: &str, catalogue: &Catalogue) -> Dialect {
    let Ok(found) = catalogue.find(name) else {
        return Dialect::Chat;
    };
    match found.model.provider.as_str() {
        "anthropic" => Dialect::Messages,
        "openai" if found.model.reasons && choice.base_url.is_none() => Dialect::Responses,
        _ => Dialect::Chat,
    }
}

fn endpoint(choice: &Choice, name: &str, dialect: Dialect) -> Result<Endpoint, Failure> {
    let bad = |error: &dyn std::error::Error| {
        let (message, hint) = with_hint(&error.to_string());
        Failure::Input { message, hint }
    };
    let prefix = match dialect {
        Dialect::Messages => "ANTHROPIC",
        Dialect::Chat | Dialect::Responses => "OPENAI",
    };
    let (variable, address) = (format!("{prefix}_API_KEY"), format!("{prefix}_BASE_URL"));
    let key = Key::from_env(&variable);
    if let Some(base) = &choice.base_url {
        let endpoint = Endpoint::new(base).map_err(|error| bad(&error))?;
        return Ok(match key {
            Some(key) => endpoint.key(key),
            None => endpoint,
        });
    }
    // A server of one's own may not want a key; the provider does.
    let own = std::env::var_os(&address).is_some_and(|base| !base.is_empty());
    if key.is_none() && !own {
        return Err(Failure::input(
            format!("no key for model '{name}': {variable} is not set"),
            format!(
                "set {variable}, or give the address of a server that needs none with \
                 --base-url, or try --model scripted:FILE"
            ),
        ));
    }
    Endpoint::from_env(dialect).map_err(|error| bad(&error))
}

fn scripted(file: &str, answered: usize) -> Result<Client, Failure> {
    let scripted = Scripted::from_file(file).map_err(|error| {
        let hint = "a script is a JSON list such as [{\"text\": \"hello\"}]; see docs/script.md";
        let (message, own) = with_hint(&error.to_string());
        Failure::input(message, own.unwrap_or_else(|| hint.to_owned()))
    })?;
    Ok(Client::new(scripted.from_position(answered)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(name: &str, base_url: Option<&str>) -> Dialect {
        let choice = Choice {
            base_url: base_url.map(str::to_owned),
            ..Choice::default()
        };
        guess(&choice, name, &Catalogue::embedded())
    }

    #[test]
    fn the_name_tells_what_is_spoken() {
        let local = Some("http://127.0.0.1:8080/v1");
        for (name, base_url, expected) in [
            ("claude-sonnet-4-5", None, Dialect::Messages),
            ("claude-sonnet-4-5", local, Dialect::Messages),
            ("gpt-4o", None, Dialect::Chat),
            ("gpt-5", None, Dialect::Responses),
            ("gpt-5", local, Dialect::Chat),
            ("a-model-of-mine", local, Dialect::Chat),
        ] {
            assert_eq!(spoken(name, base_url), expected, "{name} {base_url:?}");
        }
    }
}
