//! Models that answer: which dialect they speak, and where.

use trimtab_agent::model::{Client, Endpoint, Model, Scripted};
use trimtab_model::Dialect;

use crate::exit::Failure;

/// The model called `name`: alone, or with its dialect in front as in `messages:NAME`; or the
/// script in `scripted:FILE`.
pub fn find(name: &str) -> Result<Model, Failure> {
    if let Some(file) = name.strip_prefix("scripted:") {
        return scripted(file);
    }
    let (dialect, name) = dialect_of(name);
    let prefix = match dialect {
        Dialect::Messages => "ANTHROPIC",
        Dialect::Chat | Dialect::Responses => "OPENAI",
    };
    let set = |name: String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let (key, base) = (format!("{prefix}_API_KEY"), format!("{prefix}_BASE_URL"));
    if !set(key.clone()) && !set(base.clone()) {
        return Err(Failure::input(
            format!("model {name:?}: nobody to ask"),
            format!("set {key}, or {base} for a server of your own"),
        ));
    }
    let endpoint = Endpoint::from_env(dialect).map_err(|error| {
        let text = error.to_string();
        let (message, hint) = text.split_once("\nhint: ").unwrap_or((&text, ""));
        Failure::input(format!("{base}: {message}"), hint)
    })?;
    Ok(Model::new(Client::http(dialect, endpoint), name))
}

/// The summariser that a script plays.
fn scripted(file: &str) -> Result<Model, Failure> {
    let played = Scripted::from_file(file).map_err(|error| {
        let text = error.to_string();
        let (message, hint) = text
            .split_once("\nhint: ")
            .unwrap_or((&text, "see docs/script.md"));
        Failure::input(message, hint)
    })?;
    Ok(Model::new(Client::new(played.writes_summaries()), file))
}

/// The dialect that `name` says, or that its maker speaks; and the name without it.
fn dialect_of(name: &str) -> (Dialect, &str) {
    let said = [
        ("chat:", Dialect::Chat),
        ("messages:", Dialect::Messages),
        ("responses:", Dialect::Responses),
    ];
    for (prefix, dialect) in said {
        if let Some(name) = name.strip_prefix(prefix) {
            return (dialect, name);
        }
    }
    if name.contains("claude") {
        (Dialect::Messages, name)
    } else {
        (Dialect::Chat, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_is_said_or_known() {
        assert_eq!(dialect_of("claude-x"), (Dialect::Messages, "claude-x"));
        assert_eq!(dialect_of("gpt-x"), (Dialect::Chat, "gpt-x"));
        assert_eq!(dialect_of("responses:gpt-x"), (Dialect::Responses, "gpt-x"));
        assert_eq!(dialect_of("chat:claude-x"), (Dialect::Chat, "claude-x"));
    }
}
