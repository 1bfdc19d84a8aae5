//! Settings of one source, and settings layered over each other.

use std::collections::BTreeMap;

use toml::{Table, Value};
use trimtab_engine::trigger::Trigger;

use super::keys::{InProject, SettingKey, SettingKind};
use super::nearest::nearest_name;
use super::redacted::redact_value;
use super::{ConfigError, SettingSource};

/// Fields that name the shape of a table. A table of another shape keeps no fields of the old one.
const SHAPES: [&str; 2] = ["shape", "placement"];

/// The known keys.
pub(super) struct KnownKeys<'k> {
    pub(super) keys: &'k [SettingKey],
}

impl<'k> KnownKeys<'k> {
    /// The key with this name, or the table key that it is a field of.
    pub(super) fn find(&self, name: &str) -> Option<&'k SettingKey> {
        let is = |key: &&SettingKey| {
            let rest = name.strip_prefix(key.name);
            // Only tables have fields of their own: `views.default.max_bytes` belongs to
            // `views.default`.
            let is_field = rest.is_some_and(|rest| rest.starts_with('.'));
            name == key.name || (key.kind == SettingKind::Table && is_field)
        };
        self.keys.iter().find(is)
    }

    fn has_section(&self, name: &str) -> bool {
        let section = format!("{name}.");
        self.keys.iter().any(|key| key.name.starts_with(&section))
    }

    fn unknown(&self, name: &str, source: &SettingSource) -> ConfigError {
        let names = self.keys.iter().map(|key| key.name);
        ConfigError::Unknown {
            key: name.to_owned(),
            origin: source.clone(),
            nearest: nearest_name(name, names).map(str::to_owned),
        }
    }

    /// All settings in the table of a section, by key.
    pub(super) fn settings_in(
        &self,
        section: &str,
        table: &Table,
        source: &SettingSource,
    ) -> Result<Vec<SetValue>, ConfigError> {
        let mut all = Vec::new();
        for (name, value) in table {
            let name = if section.is_empty() {
                name.clone()
            } else {
                format!("{section}.{name}")
            };
            match (self.find(&name), value) {
                (Some(key), value) => all.push(set_value(key, name, value.clone(), source)?),
                (None, Value::Table(inner)) if self.has_section(&name) => {
                    all.extend(self.settings_in(&name, inner, source)?);
                }
                _ => return Err(self.unknown(&name, source)),
            }
        }
        Ok(all)
    }

    /// Parses one setting that a user typed.
    pub(super) fn parse_typed(
        &self,
        name: &str,
        text: &str,
        source: &SettingSource,
    ) -> Result<SetValue, ConfigError> {
        let key = self.find(name);
        let key = key.ok_or_else(|| self.unknown(name, source))?;
        let kind = if key.name == name {
            key.kind
        } else {
            // A field of a table has no kind of its own. This one reads TOML, or else a text.
            SettingKind::Number
        };
        set_value(key, name.to_owned(), kind.typed(text), source)
    }

    /// The names of the settings in a project's file that projects may not set.
    pub(super) fn refused_in_project(&self, all: &[SetValue]) -> Vec<String> {
        let mut refused = Vec::new();
        for set in all {
            if let Some(key) = self.find(&set.name) {
                self.refuse(key, &set.name, &set.value, &mut refused);
            }
        }
        refused
    }

    /// Adds to `refused` what a project may not set of `key`.
    fn refuse(&self, key: &SettingKey, name: &str, value: &Value, refused: &mut Vec<String>) {
        match key.in_project {
            InProject::Allowed => {}
            InProject::Refused => refused.push(name.to_owned()),
            InProject::Fields(fields) => {
                let tables = match value {
                    Value::Array(list) => list.iter().filter_map(Value::as_table).collect(),
                    other => Vec::from_iter(other.as_table()),
                };
                let names = tables.into_iter().flat_map(Table::keys);
                let others = names.filter(|field| !fields.contains(&field.as_str()));
                refused.extend(others.map(|field| format!("{name}.{field}")));
            }
            InProject::Policies => {
                for (policy, value) in value.as_table().into_iter().flatten() {
                    if let Some(table) = value.as_table() {
                        self.refuse_inside(&format!("{name}.{policy}"), "", table, refused);
                    }
                }
            }
        }
    }

    /// The same for the settings of the policy `policy`.
    fn refuse_inside(&self, policy: &str, section: &str, table: &Table, refused: &mut Vec<String>) {
        for (name, value) in table {
            let name = format!("{section}{name}");
            match (self.find(&name), value) {
                (Some(key), value) => {
                    let shown = format!("{policy}.{name}");
                    self.refuse(key, &shown, value, refused);
                }
                (None, Value::Table(inner)) => {
                    self.refuse_inside(policy, &format!("{name}."), inner, refused);
                }
                // Not a setting. Whoever reads the policy reports it.
                _ => {}
            }
        }
    }
}

/// A value of the setting `name`, which is `key` or a field of it; fails if `key` cannot have it.
fn set_value(
    key: &SettingKey,
    name: String,
    value: Value,
    source: &SettingSource,
) -> Result<SetValue, ConfigError> {
    // The fields of a table are checked when the table is read.
    if key.name != name || key.kind.admits(&value) {
        let is_project = matches!(source, SettingSource::Project(_));
        return Ok(SetValue {
            name,
            value,
            source: source.clone(),
            // A project may add to such a list, but not replace the user's entries.
            appends: is_project && matches!(key.in_project, InProject::Fields(_)),
        });
    }
    // A condition has its own error text, which says what is wrong with it.
    let conditions = value
        .as_array()
        .filter(|_| key.kind == SettingKind::Conditions);
    let texts = conditions.into_iter().flatten().filter_map(Value::as_str);
    let mut wrong = texts.filter_map(|text| text.parse::<Trigger>().err());
    let allowed = key.kind.allowed();
    let (value, allowed) = match wrong.next() {
        Some(error) => (
            format!("'{}'", error.text),
            format!("{}; {allowed}", error.expected),
        ),
        None => (redact_value(&name, &value).to_string(), allowed),
    };
    Err(ConfigError::Value {
        key: name,
        value,
        origin: source.clone(),
        allowed,
    })
}

/// One setting from some source.
pub(super) struct SetValue {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) source: SettingSource,
    /// True if a list is appended to the existing one instead of replacing it.
    pub(super) appends: bool,
}

/// Settings with their sources.
#[derive(Clone, Debug, Default)]
pub(super) struct LayeredSettings {
    pub(super) table: Table,
    pub(super) sources: BTreeMap<String, SettingSource>,
}

impl LayeredSettings {
    /// The settings in a table, without sources.
    pub(super) fn of_table(table: Table) -> Self {
        let sources = BTreeMap::new();
        Self { table, sources }
    }

    /// The value of a setting that is a text; none if it is empty.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text = self.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Applies one setting over the existing ones.
    pub(super) fn apply(&mut self, set: &SetValue) {
        let mut table = &mut self.table;
        let mut path = set.name.split('.').peekable();
        while let Some(name) = path.next() {
            if path.peek().is_none() {
                match (table.get_mut(name), &set.value) {
                    (Some(Value::Array(there)), Value::Array(more)) if set.appends => {
                        there.extend(more.iter().cloned());
                    }
                    _ => merge(table, name, &set.value),
                }
                break;
            }
            let inner = table
                .entry(name)
                .or_insert_with(|| Value::Table(Table::new()));
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            let Value::Table(inner) = inner else { break };
            table = inner;
        }
        self.sources.insert(set.name.clone(), set.source.clone());
    }

    /// The value of a setting.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let mut path = name.split('.');
        let first = self.table.get(path.next()?)?;
        path.try_fold(first, |value, name| value.get(name))
    }

    /// The source of a setting: its own, that of a field of it, or that of the table that it is a
    /// field of. The strongest counts.
    pub(super) fn source(&self, name: &str) -> SettingSource {
        let is_inside = |field: &str, table: &str| {
            let rest = field.strip_prefix(table);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let all = self.sources.iter();
        let about = all.filter(|(key, _)| is_inside(key, name) || is_inside(name, key));
        let strongest = about.map(|(_, source)| source).min();
        strongest.cloned().unwrap_or(SettingSource::Default)
    }
}

/// Puts a value into a table: the fields of a table over the existing ones, unless it has another
/// shape.
fn merge(table: &mut Table, name: &str, value: &Value) {
    if let (Some(Value::Table(old)), Value::Table(new)) = (table.get_mut(name), value) {
        let other = |field: &str| {
            new.get(field)
                .is_some_and(|shape| old.get(field) != Some(shape))
        };
        if !SHAPES.iter().any(|field| other(field)) {
            old.extend(new.clone());
            return;
        }
    }
    table.insert(name.to_owned(), value.clone());
}
