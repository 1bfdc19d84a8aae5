//! Writes the settings as JSON schema, and as a file to start with.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use toml::{Table, Value};
use trimtab_engine::policy::{Policy, UnknownPreset};

use super::keys::{InProject, SettingKey, SettingKind};
use super::layered_settings::LayeredSettings;

/// A JSON schema of all settings, with their defaults in `preset` or in `more`.
pub fn schema(keys: &[SettingKey], preset: &str, more: &Table) -> Result<Json, UnknownPreset> {
    let defaults = defaults(preset, more)?;
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of Trimtab: trimtab.toml",
        "type": "object",
        "additionalProperties": false,
        "properties": {},
    });
    for key in keys {
        add(&mut root, key.name, property(key, &defaults));
    }
    Ok(root)
}

/// Adds a property to a section, and the sections on the way to it.
fn add(section: &mut Json, path: &str, property: Json) {
    let Some(Json::Object(properties)) = section.get_mut("properties") else {
        return;
    };
    let empty = json!({"type": "object", "additionalProperties": false, "properties": {}});
    match path.split_once('.') {
        Some((name, rest)) => add(properties.entry(name).or_insert(empty), rest, property),
        None => drop(properties.insert(path.to_owned(), property)),
    }
}

fn property(key: &SettingKey, defaults: &LayeredSettings) -> Json {
    let mut schema = match key.kind {
        SettingKind::Switch => json!({"type": "boolean"}),
        SettingKind::Number => json!({"type": "integer", "minimum": 0}),
        SettingKind::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        SettingKind::Text => json!({"type": "string"}),
        SettingKind::Choice(words) => json!({"type": "string", "enum": words}),
        SettingKind::Texts | SettingKind::Conditions => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        SettingKind::Choices(words) => {
            json!({"type": "array", "items": {"type": "string", "enum": words}})
        }
        SettingKind::Table => json!({"type": ["object", "array"]}),
    };
    if let Some(schema) = schema.as_object_mut() {
        let in_project = key.in_project != InProject::Refused;
        let default = defaults
            .get(key.name)
            .map(|default| ("default", json!(default)));
        let about = [
            ("description", json!(key.about)),
            ("x-environment", json!(key.variable())),
            ("x-in-project", json!(in_project)),
        ];
        let fields = about.into_iter().chain(default);
        schema.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }
    schema
}

fn defaults(preset: &str, more: &Table) -> Result<LayeredSettings, UnknownPreset> {
    let policy = Policy::preset(preset)?;
    let mut table = Table::try_from(&policy).unwrap_or_default();
    table.extend(more.clone());
    Ok(LayeredSettings::of_table(table))
}

/// The meaning of a setting, and whether projects may set it.
fn about(key: &SettingKey) -> String {
    match key.in_project {
        InProject::Refused => format!("{} (not for a project's file)", key.about),
        _ => key.about.to_owned(),
    }
}

/// A file to start with: every setting with its meaning and its value in `preset` or in `more`, all
/// except the preset commented out.
pub fn commented(keys: &[SettingKey], preset: &str, more: &Table) -> Result<String, UnknownPreset> {
    let defaults = defaults(preset, more)?;
    let mut text = String::from(
        "# Settings of Trimtab for this project. Commented lines show the values of the preset.\n\
         # Order, the strongest first: flags, environment, this file, the user's file, the preset.\n\
         # Settings that a project's file may not contain belong in the user's file, or in one\n\
         # that --config or TRIMTAB_CONFIG names.\n",
    );
    // The settings by section, in the order of the first one of each. TOML requires those without a
    // section before the others.
    let mut sections = vec![""];
    for key in keys {
        let (section, _) = key.name.rsplit_once('.').unwrap_or_default();
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    for section in sections {
        if !section.is_empty() {
            let _ = writeln!(text, "\n[{section}]");
        }
        for key in keys {
            let (of_key, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
            if of_key != section {
                continue;
            }
            let (gap, about) = (if section.is_empty() { "\n" } else { "" }, about(key));
            let _ = if name == "preset" {
                writeln!(text, "{gap}# {about}\n{name} = \"{preset}\"")
            } else {
                let value = defaults.get(key.name).cloned();
                let value = inline(&value.unwrap_or_else(|| nothing(key.kind)));
                writeln!(text, "{gap}# {about}\n# {name} = {value}")
            };
        }
    }
    Ok(text)
}

/// A value as TOML on one line.
///
/// ```
/// assert_eq!(trimtab::config::inline(&toml::Value::from("a\nb")), r#""a\nb""#);
/// ```
pub fn inline(value: &Value) -> String {
    match value {
        // A JSON string is also a basic string of TOML.
        Value::String(text) => Json::from(text.as_str()).to_string(),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(inline).collect();
            format!("[{}]", list.join(", "))
        }
        Value::Table(table) => {
            let fields = table.iter();
            let fields: Vec<String> = fields
                .map(|(name, value)| format!("{name} = {}", inline(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn nothing(kind: SettingKind) -> Value {
    match kind {
        SettingKind::Switch => Value::from(false),
        SettingKind::Number => Value::from(0),
        SettingKind::Share => Value::from(0.0),
        SettingKind::Text | SettingKind::Choice(_) => Value::from(""),
        _ => Value::Array(Vec::new()),
    }
}
