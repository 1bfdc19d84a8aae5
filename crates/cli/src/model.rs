//! Models that answer: which dialect they speak, and where.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use trimtab_agent::model::{Client, Endpoint, Key, Model, Scripted};
use trimtab_model::Dialect;
use trimtab_wire::catalogue::Catalogue;

use crate::exit::{Failure, with_hint};
use crate::handover;

/// What a model that is a script begins with.
pub const SCRIPTED: &str = "scripted:";

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

/// A model that is wanted, and what was said of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Its name: alone, or with its dialect in front as in `messages:NAME`.
    pub name: &'a str,
    /// Where it is served; by its maker, or where the environment says, if unset.
    pub base_url: Option<&'a str>,
    /// What is spoken there; by its name if unset.
    pub dialect: Option<Dialect>,
}

/// The model that is wanted, over HTTP.
pub fn find(wanted: &Wanted<'_>, catalogue: &Catalogue) -> Result<Model, Failure> {
    let (said, name) = named(wanted.name);
    let dialect = wanted.dialect.or(said);
    let dialect = dialect.unwrap_or_else(|| guess(name, wanted.base_url, catalogue));
    let endpoint = endpoint(name, wanted.base_url, dialect)?;
    Ok(Model::new(Client::http(dialect, endpoint), name))
}

/// The script that answers, if `name` names one.
pub fn script(name: &str) -> Result<Option<Scripted>, Failure> {
    let Some(file) = name.strip_prefix(SCRIPTED) else {
        return Ok(None);
    };
    let scripted = Scripted::from_file(file).map_err(|error| {
        let hint = "a script is a JSON list such as [{\"text\": \"hello\"}]; see docs/script.md";
        let (message, own) = with_hint(&error.to_string());
        Failure::input(message, own.unwrap_or_else(|| hint.to_owned()))
    })?;
    Ok(Some(scripted))
}

/// The dialect that stands in front of a name, and the name without it.
fn named(name: &str) -> (Option<Dialect>, &str) {
    let said = [
        ("chat:", Dialect::Chat),
        ("messages:", Dialect::Messages),
        ("responses:", Dialect::Responses),
    ];
    let found = said
        .into_iter()
        .find_map(|(prefix, dialect)| Some((Some(dialect), name.strip_prefix(prefix)?)));
    found.unwrap_or((None, name))
}

/// What a model speaks, by its name: Messages if its maker is Anthropic, Responses if it reasons
/// and is served by its maker `OpenAI`, else Chat Completions.
fn guess(name: &str, base_url: Option<&str>, catalogue: &Catalogue) -> Dialect {
    let known = catalogue.find(name).map(|found| found.model);
    let maker = known.as_ref().map(|model| model.provider.as_str());
    match (maker, &known) {
        (Ok("anthropic"), _) => Dialect::Messages,
        (Ok("openai"), Ok(model)) if model.reasons && base_url.is_none() => Dialect::Responses,
        // One that is newer than the catalogue.
        (Err(_), _) if name.contains("claude") && base_url.is_none() => Dialect::Messages,
        _ => Dialect::Chat,
    }
}

fn endpoint(name: &str, base_url: Option<&str>, dialect: Dialect) -> Result<Endpoint, Failure> {
    let prefix = match dialect {
        Dialect::Messages => "ANTHROPIC",
        Dialect::Chat | Dialect::Responses => "OPENAI",
    };
    let (variable, address) = (format!("{prefix}_API_KEY"), format!("{prefix}_BASE_URL"));
    let bad = |from: &str, error: &dyn std::error::Error| {
        let (message, hint) = with_hint(&error.to_string());
        let message = format!("{from}{message}");
        Failure::Input { message, hint }
    };
    let key = handover::key(&variable).map(Key::new);
    if let Some(base) = base_url {
        let endpoint = Endpoint::new(base).map_err(|error| bad("", &error))?;
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
            format!("set {variable}; for a server that needs none, --base-url or {address}"),
        ));
    }
    let endpoint = Endpoint::from_env(dialect);
    let endpoint = endpoint.map_err(|error| bad(&format!("{address}: "), &error))?;
    Ok(match key {
        Some(key) => endpoint.key(key),
        None => endpoint,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_what_is_spoken() {
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
    fn the_dialect_may_stand_in_front() {
        let responses = (Some(Dialect::Responses), "gpt-x");
        assert_eq!(named("responses:gpt-x"), responses);
        assert_eq!(named("chat:claude"), (Some(Dialect::Chat), "claude"));
        assert_eq!(named("qwen3:8b"), (None, "qwen3:8b"));
    }
}
