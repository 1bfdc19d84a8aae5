//! Documents that are made from the code: stale ones fail, `TRIMTAB_BLESS=1` makes them anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use trimtab::config::{ALIASES, Config, InProject, Inputs, KEYS, Key, Kind, inline};
use trimtab::engine::policy::{PRESETS, Preset};

use crate::designs::Designs;

/// What stands around the part of a document that is made.
const FROM: &str = "<!-- made from the code: do not edit -->\n";
const TO: &str = "<!-- end of what is made -->\n";

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
    let mut inputs = Inputs::default();
    inputs.set(&format!("preset={}", preset.name), "--set");
    Config::load(&inputs).unwrap()
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn preset(text: &mut String, preset: &Preset, designs: &Designs) {
    let config = settings_of(preset);
    let _ = write!(
        text,
        "## `{}`\n\n{}.\n\n",
        preset.name,
        capital(preset.about)
    );
    let _ = writeln!(text, "| what it states | our settings |\n|---|---|");
    let own = designs
        .statements
        .iter()
        .filter(|one| one.preset == preset.name);
    for statement in own {
        let settings = statement.settings.iter().map(|key| {
            let value = config
                .get(key)
                .unwrap_or_else(|| panic!("no setting {key}"));
            format!("`{key} = {}`", cell(&inline(value)))
        });
        let settings: Vec<String> = settings.collect();
        let _ = writeln!(
            text,
            "| {} | {} |",
            cell(&statement.says),
            settings.join("<br>")
        );
    }
    let differ: Vec<_> = designs
        .deviations
        .iter()
        .filter(|one| one.preset == preset.name)
        .collect();
    if !differ.is_empty() {
        let _ = write!(
            text,
            "\n| where we differ: the design | we | why |\n|---|---|---|\n"
        );
        for deviation in differ {
            let cells = [&deviation.does, &deviation.ours, &deviation.why].map(|text| cell(text));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    text.push('\n');
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

#[test]
fn the_page_of_the_presets_is_made_from_their_data() {
    let designs = Designs::read();
    let mut text = String::new();
    for one in PRESETS {
        preset(&mut text, one, &designs);
    }
    check("presets.md", text.trim_end());
}

fn type_of(key: &Key) -> String {
    match key.kind {
        Kind::Choice(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        Kind::Choices(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("list of {}", words.join(", "))
        }
        other => other.allowed(),
    }
}

fn in_project(key: &Key) -> &'static str {
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
        "| setting | what it may be | default | in a project's file | meaning |\n|---|---|---|---|---|\n",
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
    let _ = write!(
        text,
        "\n## The names of design `checkpoint`\n\n| variable | here |\n|---|---|\n"
    );
    for alias in ALIASES {
        let _ = writeln!(text, "| `{}` | {} |", alias.variable, cell(alias.setting));
    }
    check("config.md", text.trim_end());
}
