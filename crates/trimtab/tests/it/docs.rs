//! Documents that are generated from the code: stale ones fail, `TRIMTAB_BLESS=1` writes them again.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use trimtab::config::{Config, ConfigInputs, InProject, KEYS, SettingKey, SettingKind, inline};
use trimtab::engine::policy::{PRESETS, Preset};

use crate::designs::{Statement, statements};

/// The marks around the generated part of a document.
const FROM: &str = "<!-- generated from the code: do not edit -->\n";
const TO: &str = "<!-- end of the generated part -->\n";

#[track_caller]
fn check(name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let parts = text
        .split_once(FROM)
        .and_then(|(head, rest)| Some((head, rest.split_once(TO)?.1)));
    let (head, tail) = parts.unwrap_or((&text, ""));
    let whole = format!("{head}{FROM}\n{made}\n{TO}{tail}");
    if std::env::var_os("TRIMTAB_BLESS").is_some() {
        fs::write(&path, &whole).unwrap();
    } else {
        assert!(
            text == whole,
            "{name} is stale: run the tests with TRIMTAB_BLESS=1"
        );
    }
}

fn settings_of(preset: &Preset) -> Config {
    let mut inputs = ConfigInputs::default();
    inputs.set(&format!("preset={}", preset.name), "--set");
    Config::load(&inputs).unwrap()
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// What a preset is about, how many statements of its design work, and where we differ.
fn preset(text: &mut String, preset: &Preset, statements: &[Statement]) {
    let about = capital(preset.about);
    let _ = write!(text, "## `{}`\n\n{about}.\n\n", preset.name);
    let own = statements.iter().filter(|one| one.preset == preset.name);
    let config = settings_of(preset);
    for key in own.clone().flat_map(|one| &one.settings) {
        assert!(config.get(key).is_some(), "no setting {key}");
    }
    let (works, others): (Vec<&Statement>, Vec<&Statement>) =
        own.partition(|one| one.ours.is_empty() && one.why.is_empty());
    if others.is_empty() {
        for statement in works {
            let _ = writeln!(text, "- {}", statement.says);
        }
    } else {
        let all = works.len() + others.len();
        let _ = write!(
            text,
            "{} of {all} statements work as stated. Others:\n\n",
            works.len()
        );
        for statement in others {
            let _ = writeln!(text, "- {} {}", statement.says, here(statement));
        }
    }
    text.push('\n');
}

/// What we do about a statement that does not work as stated.
fn here(statement: &Statement) -> String {
    match (statement.ours.as_str(), statement.why.as_str()) {
        ("", why) => format!("**Does not apply**: {why}."),
        (ours, why) => format!("**Here**: {ours}. **Why**: {why}."),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

#[test]
fn the_page_of_the_presets_is_made_from_their_data() {
    let statements = statements();
    let mut text = String::new();
    for one in PRESETS {
        preset(&mut text, one, &statements);
    }
    check("presets.md", text.trim_end());
}

fn type_of(key: &SettingKey) -> String {
    match key.kind {
        SettingKind::Choice(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        SettingKind::Choices(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("list of {}", words.join(", "))
        }
        other => other.allowed(),
    }
}

fn in_project(key: &SettingKey) -> &'static str {
    if key.in_project == InProject::Refused {
        "no"
    } else {
        "yes"
    }
}

#[test]
fn the_page_of_the_settings_is_made_from_their_list() {
    let config = settings_of(&PRESETS[0]);
    let mut text = String::from(
        "| setting | allowed values | default | in a project's file | meaning |\n|---|---|---|---|---|\n",
    );
    for key in KEYS {
        let default = config.get(key.name).map(inline);
        let default = default.map(|value| {
            let short: String = value.chars().take(60).collect();
            let dots = if short.len() < value.len() { "..." } else { "" };
            format!("`{}{dots}`", cell(&short))
        });
        let cells = [
            format!("`{}`", key.name),
            type_of(key),
            default.unwrap_or_default(),
            in_project(key).to_owned(),
            cell(key.about),
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    check("config.md", text.trim_end());
}
