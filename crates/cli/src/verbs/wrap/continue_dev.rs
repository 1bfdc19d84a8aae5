//! Continue: a temporary copy of its YAML settings with other addresses.

use std::path::PathBuf;

use super::setup::{ClientSetup, ClientSurroundings, FOLDER, URL};
use crate::exit::Failure;

/// The field with the address of a model.
const BASE: &str = "apiBase";
/// The field with the provider of a model.
const PROVIDER: &str = "provider";

pub(super) fn continue_dev(
    surroundings: &ClientSurroundings<'_>,
    setup: &mut ClientSetup,
) -> Result<(), Failure> {
    let folder = surroundings.folder("CONTINUE_GLOBAL_DIR", ".continue");
    let given = setup.user_args.iter().position(|arg| arg == "--config");
    let named = given
        .and_then(|at| setup.user_args.get(at + 1))
        .map(PathBuf::from);
    let file = named.unwrap_or_else(|| folder.join("config.yaml"));
    let from = file.display().to_string();
    let Some(text) = (surroundings.read)(&file) else {
        return Err(Failure::input(
            format!("cannot read {from}"),
            "wrap needs the settings of Continue in a file: name it with --config after cn",
        ));
    };
    // Our --config replaces the user's.
    if let Some(at) = given {
        setup
            .user_args
            .drain(at..(at + 2).min(setup.user_args.len()));
    }
    let text = with_addresses(&text, |provider, base| match (provider, base) {
        (_, Some(base)) => Some(setup.redirect(surroundings, base, &from)),
        ("anthropic" | "openai", None) => Some(format!("{URL}/v1")),
        _ => None,
    });
    setup.files.push(("config.yaml".to_owned(), text));
    setup.pass(["--config", &format!("{FOLDER}/config.yaml")]);
    Ok(())
}

/// The settings with the addresses that `choose` returns for each provider and old address. Only
/// lines with an address change; a model without one gets one.
fn with_addresses(
    text: &str,
    mut choose: impl FnMut(&str, Option<&str>) -> Option<String>,
) -> String {
    let mut written = String::new();
    for mut item in items(text) {
        let field = |name: &str| item.iter().position(|line| key(line).0 == name);
        let (provider, base) = (field(PROVIDER), field(BASE));
        let value = |at: Option<usize>| at.and_then(|at| item.get(at)).map(|line| key(line).1);
        let who = value(provider).unwrap_or_default();
        let chosen = choose(&who, value(base).as_deref()).filter(|_| provider.is_some());
        // Edit lines instead of parsing YAML, so that comments and formatting survive.
        if let (Some(address), Some(at)) = (chosen, base.or(provider)) {
            let field = if base.is_some() { BASE } else { PROVIDER };
            let line = item.get(at).copied().unwrap_or_default();
            let head = line.split(field).next().unwrap_or_default();
            let new = match base {
                Some(_) => format!("{head}{BASE}: {address}"),
                None => format!("{line}\n{}{BASE}: {address}", head.replace('-', " ")),
            };
            item.splice(at..=at, [new.as_str()]);
            push_lines(&mut written, &item);
        } else {
            push_lines(&mut written, &item);
        }
    }
    written
}

fn push_lines(text: &mut String, lines: &[&str]) {
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
}

/// Groups the lines into list elements and the text between them.
fn items(text: &str) -> Vec<Vec<&str>> {
    let mut items: Vec<Vec<&str>> = vec![Vec::new()];
    let mut dash = None;
    for line in text.lines() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        // Deeper lines and empty lines belong to the element above them.
        let is_inside = content.is_empty() || dash.is_some_and(|dash| indent > dash);
        if !is_inside && (dash.is_some() || content.starts_with("- ")) {
            items.push(Vec::new());
            dash = content.starts_with("- ").then_some(indent);
        }
        if let Some(item) = items.last_mut() {
            item.push(line);
        }
    }
    items
}

/// The field that a line sets, and its value.
fn key(line: &str) -> (&str, String) {
    let content = line.trim_start();
    let content = content.strip_prefix("- ").unwrap_or(content);
    let (name, value) = content.split_once(':').unwrap_or((content, ""));
    let value = value.trim().trim_matches(['"', '\'']);
    (name.trim(), value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_continue_get_other_addresses_and_nothing_else_changes() {
        let text = "name: mine\nmodels:\n  - name: a\n    provider: openai\n    roles:\n      - chat\n    \
                    apiBase: \"http://h:1/v1\"\n    apiKey: k\n  - provider: anthropic\n    model: b\n  \
                    - provider: mistral\n    model: c\nrules:\n  - be brief\n";
        let mut asked = Vec::new();
        let written = with_addresses(text, |provider, base| {
            asked.push((provider.to_owned(), base.map(str::to_owned)));
            (provider != "mistral").then(|| format!("http://proxy/{provider}"))
        });
        let expected = text
            .replace("apiBase: \"http://h:1/v1\"", "apiBase: http://proxy/openai")
            .replace(
                "- provider: anthropic\n",
                "- provider: anthropic\n    apiBase: http://proxy/anthropic\n",
            );
        assert_eq!(written, expected);
        assert!(asked.contains(&("openai".to_owned(), Some("http://h:1/v1".to_owned()))));
    }
}
