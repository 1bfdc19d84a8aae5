//! The designs' own names for their settings, and the corresponding settings here.
//!
//! A name is accepted in files, after `--set` and in the environment, under the preset of its
//! design. Case and underscores are ignored, and its section may be omitted if no other name of the
//! design is like it.

mod table;
mod values;

use std::fmt::Write as _;

use toml::Value;

use super::keys::{InProject, SettingKey, SettingKind};
use super::layered_settings::{LayeredSettings, SetValue, find_key};
use super::{ConfigError, ConfigInputs, SettingSource};

pub use table::DESIGN_NAMES;

/// The original systems, and the presets that work like them.
pub const ORIGINAL_SYSTEMS: &[(&str, &str)] = &[
    ("codelia", "refs"),
    ("agenticloop", "checkpoint"),
    ("aloop", "checkpoint"),
    ("ouro", "checkpoint"),
    ("picoclaw", "turns"),
    ("ai", "archive"),
    ("micro-x", "retention"),
];

/// Settings with their values.
type NamedValues = Vec<(&'static str, Value)>;

/// The settings that follow from a value; none if the name cannot have the value.
type DerivedValues = Option<NamedValues>;

/// How a value becomes settings.
#[derive(Clone, Copy, Debug)]
enum NameMeaning {
    /// It is the value of the setting.
    Same,
    /// It is computed by this function from the settings so far.
    Made(fn(&LayeredSettings, &Value) -> DerivedValues),
}

/// A name of a design's setting.
#[derive(Clone, Copy, Debug)]
pub struct DesignName {
    /// The preset that implements the design.
    pub preset: &'static str,
    /// The name, with its section if it has one.
    pub name: &'static str,
    /// Its name in the environment.
    pub variable: &'static str,
    /// The setting that it changes here, perhaps together with others.
    pub setting: &'static str,
    /// How the value is converted, if it is not taken unchanged.
    pub note: &'static str,
    /// The design's default as TOML; empty for none.
    pub default: &'static str,
    pub(super) kind: SettingKind,
    allowed: &'static str,
    means: NameMeaning,
}

impl DesignName {
    /// True if `name` may mean this one.
    fn is(&self, name: &str) -> bool {
        let same = |own: &str| plain(own).eq(plain(name));
        let bare = self.name.rsplit_once('.').map(|(_, bare)| bare);
        // Several sections have `enabled`, so on its own it means nothing.
        same(self.name) || bare.is_some_and(|bare| bare != "enabled" && same(bare))
    }

    fn sets(
        &self,
        settings: &LayeredSettings,
        set: &SetValue,
    ) -> Result<Vec<SetValue>, ConfigError> {
        let made = match self.means {
            NameMeaning::Same if self.kind.admits(&set.value) => {
                Some(vec![(self.setting, set.value.clone())])
            }
            NameMeaning::Same => None,
            NameMeaning::Made(make) => make(settings, &set.value),
        };
        let made = made.ok_or_else(|| ConfigError::Value {
            key: self.name.to_owned(),
            value: match &set.value {
                Value::String(text) => format!("'{text}'"),
                other => other.to_string(),
            },
            origin: set.source.clone(),
            allowed: if self.allowed.is_empty() {
                self.kind.allowed()
            } else {
                self.allowed.to_owned()
            },
        })?;
        let made = made.into_iter();
        let made = made.map(|(name, value)| SetValue::new(name.to_owned(), value, &set.source));
        Ok(made.collect())
    }

    /// True if a project's file may use it: it only decides what goes into a window.
    pub(super) fn in_project(&self, keys: &[SettingKey]) -> bool {
        let own = find_key(keys, self.setting);
        own.is_some_and(|key| key.in_project != InProject::Refused)
    }
}

/// A name in lower case and without underscores.
fn plain(name: &str) -> impl Iterator<Item = char> {
    let letters = name.chars().filter(|letter| *letter != '_');
    letters.flat_map(char::to_lowercase)
}

/// The names of all designs that `name` may mean.
pub(super) fn designs_with_name(name: &str) -> impl Iterator<Item = &'static DesignName> {
    DESIGN_NAMES.iter().filter(move |one| one.is(name))
}

/// True if the name of some design's setting begins with `section`.
pub(super) fn has_section(section: &str) -> bool {
    let mut sections = DESIGN_NAMES.iter().filter_map(|one| {
        let (own, _) = one.name.rsplit_once('.')?;
        Some(own)
    });
    let section: String = plain(section).collect();
    sections.any(|own| {
        let own: String = plain(own).collect();
        let rest = own.strip_prefix(&section);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Parses a value that a user typed, for the first design with the name.
pub(super) fn parse_typed(name: &str, text: &str) -> Option<Value> {
    Some(designs_with_name(name).next()?.kind.typed(text))
}

/// Applies settings: of each source first those under our names, then those under the names of the
/// design, in the order of its table.
pub(super) fn apply_all(
    settings: &mut LayeredSettings,
    preset: &str,
    sets: &[SetValue],
) -> Result<(), ConfigError> {
    for of_source in sets.chunk_by(|one, next| one.source == next.source) {
        // In one source, the names of the design win, so they are applied last.
        let (designs, ours): (Vec<&SetValue>, Vec<&SetValue>) =
            of_source.iter().partition(|set| set.is_design_name);
        for set in ours {
            settings.apply(set);
        }
        let own = |set: &SetValue| designs_with_name(&set.name).any(|one| one.preset == preset);
        if let Some(set) = designs.iter().find(|set| !own(set)) {
            let meant = designs_with_name(&set.name).map(|one| (one.preset, one.setting));
            return Err(ConfigError::OtherPreset {
                key: set.name.clone(),
                origin: set.source.clone(),
                preset: preset.to_owned(),
                meant: meant.collect(),
            });
        }
        // In the order of the table, because some values depend on others: the limit in bytes on
        // the unit.
        for name in DESIGN_NAMES.iter().filter(|name| name.preset == preset) {
            for set in designs.iter().filter(|set| name.is(&set.name)) {
                apply_design_value(settings, name, set)?;
            }
        }
    }
    Ok(())
}

fn apply_design_value(
    settings: &mut LayeredSettings,
    name: &DesignName,
    set: &SetValue,
) -> Result<(), ConfigError> {
    for made in name.sets(settings, set)? {
        settings.apply(&made);
    }
    Ok(())
}

/// Applies the environment variables with the names of the preset's design.
pub(super) fn apply_environment(
    settings: &mut LayeredSettings,
    preset: &str,
    inputs: &ConfigInputs,
) -> Result<(), ConfigError> {
    // Variables have no section, so each name is looked up by its exact variable.
    for name in DESIGN_NAMES.iter().filter(|name| name.preset == preset) {
        let Some(text) = inputs.variable(name.variable) else {
            continue;
        };
        let source = SettingSource::Environment(name.variable.to_owned());
        let value = name.kind.typed(&text);
        let set = SetValue::of_design(name.name.to_owned(), value, &source);
        apply_design_value(settings, name, &set)?;
    }
    Ok(())
}

/// A file with every setting of the design of `preset` under its own names, with the design's
/// defaults. Settings that projects may not set are commented out.
pub fn under_design_names(keys: &[SettingKey], preset: &str) -> String {
    let mut text = format!(
        "# Settings of Trimtab under the names of the design that preset {preset} carries out.\n\
         # docs/presets.md describes each setting; a file can use both kinds of names.\n\n\
         preset = \"{preset}\"\n"
    );
    let mut section = "";
    for name in DESIGN_NAMES.iter().filter(|name| name.preset == preset) {
        let (own, bare) = name.name.rsplit_once('.').unwrap_or(("", name.name));
        if own != section {
            let _ = write!(text, "\n[{own}]\n");
            section = own;
        }
        let (mark, why) = if !name.in_project(keys) {
            ("# ", " # not for a project's file")
        } else if name.default.is_empty() {
            ("# ", "")
        } else {
            ("", "")
        };
        let default = if name.default.is_empty() {
            "..."
        } else {
            name.default
        };
        let _ = writeln!(text, "{mark}{bare} = {default}{why}");
    }
    text
}
