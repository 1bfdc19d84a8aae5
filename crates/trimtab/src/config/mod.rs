//! Settings from files, the environment and flags, each with where it comes from.
//!
//! The order, the strongest first: flags, environment, the project's `trimtab.toml`, the
//! user's file, the preset.
//!
//! ```
//! use trimtab::config::{Config, Inputs};
//!
//! let mut inputs = Inputs::default();
//! inputs.set("preset=refs", "--set");
//! inputs.environment = vec![("TRIMTAB_COMPACTION_AUTO".into(), "false".into())];
//! let config = Config::load(&inputs)?;
//! assert!(!config.policy.compaction.auto);
//! assert_eq!(config.source("compaction.auto").to_string(), "TRIMTAB_COMPACTION_AUTO");
//! assert_eq!(config.source("recovery.retries").to_string(), "preset refs");
//! # Ok::<_, trimtab::config::ConfigError>(())
//! ```

mod designs;
mod error;
mod files;
mod keys;
mod layer;
mod schema;
mod source;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use toml::{Table, Value};
use trimtab_engine::policy::{PRESETS, Policy, UnknownPreset};

pub use designs::{ALIASES, Alias};
pub use error::ConfigError;
pub use files::PROJECT_FILE;
pub use keys::{KEYS, Key, Kind};
pub use schema::{commented, inline, schema};
pub use source::Source;

use layer::{Known, Laid, Set};

/// Settings of the library itself, not of its policy.
const OWN: [&str; 4] = ["store", "model", "window", "max_output"];

/// Where settings are looked for. Everything comes in as a value.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Flags: key, value as typed, the flag's name.
    pub flags: Vec<(String, String, String)>,
    /// The environment.
    pub environment: Vec<(String, String)>,
    /// The folder from which the project's file is looked for, upward; none for no search.
    pub folder: Option<PathBuf>,
    /// The file to use in place of the project's.
    pub file: Option<PathBuf>,
    /// Settings of callers, besides those of the library.
    pub more: Vec<Key>,
}

impl Inputs {
    /// The environment of this process and its working folder.
    pub fn of_process() -> Self {
        let text = |value: std::ffi::OsString| value.into_string().ok();
        let environment = std::env::vars_os();
        Self {
            environment: environment
                .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
                .collect(),
            folder: std::env::current_dir().ok(),
            ..Self::default()
        }
    }

    /// Adds a setting as `key=value`, said by `flag`; without `=` it is a switch.
    pub fn set(&mut self, setting: &str, flag: &str) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        self.flags.push((key, value, flag.to_owned()));
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }
}

/// One resolved setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub key: &'static str,
    /// Its value; none where nothing is said and nothing is the default.
    pub value: Option<Value>,
    /// Where it comes from.
    pub source: Source,
}

/// Resolved settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// What decides.
    pub policy: Policy,
    /// Folder of the store, where somebody names it.
    pub store: Option<PathBuf>,
    /// The model that the agent uses, where somebody names it.
    pub model: Option<String>,
    /// The model's window in tokens, where somebody says it.
    pub window: Option<u64>,
    /// How long an answer may be, where somebody says it.
    pub max_output: Option<u64>,
    laid: Laid,
    keys: Vec<Key>,
}

impl Config {
    /// Resolves settings.
    pub fn load(inputs: &Inputs) -> Result<Self, ConfigError> {
        let keys: Vec<Key> = KEYS.iter().chain(&inputs.more).copied().collect();
        let known = Known {
            keys: keys.iter().collect(),
        };
        let said = said(inputs, &known)?;
        let preset = preset(&said)?;
        let mut laid = base(&preset);
        for set in &said.files {
            laid.lay(set);
        }
        if preset == "checkpoint" {
            lay_aliases(&mut laid, inputs)?;
        }
        for set in said.environment.iter().chain(&said.flags) {
            laid.lay(set);
        }
        let policy = policy(&laid)?;
        let text = |name: &str| {
            let value = laid.get(name).and_then(Value::as_str);
            value.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let number = |name: &str| {
            let value = laid.get(name).and_then(Value::as_integer);
            value
                .and_then(|value| u64::try_from(value).ok())
                .filter(|value| *value > 0)
        };
        let config = Self {
            policy,
            store: text("store").map(PathBuf::from),
            model: text("model"),
            window: number("window"),
            max_output: number("max_output"),
            laid,
            keys,
        };
        config.check(config.window)?;
        Ok(config)
    }

    /// Fails if a setting cannot be right for a model with this window.
    pub fn check(&self, window: Option<u64>) -> Result<(), ConfigError> {
        let mut bad = self.policy.check(window).err().unwrap_or_default();
        if let (Some(window), Some(answer)) = (window, self.max_output)
            && answer >= window
        {
            bad.push(trimtab_engine::policy::BadSetting {
                setting: "max_output".to_owned(),
                value: answer.to_string(),
                allowed: format!("less than the window of {window} tokens"),
            });
        }
        if bad.is_empty() {
            return Ok(());
        }
        let with_source = |bad: trimtab_engine::policy::BadSetting| {
            let key = bad.setting.split('[').next().unwrap_or_default();
            let source = self.source(key);
            (bad, source)
        };
        Err(ConfigError::Bad(bad.into_iter().map(with_source).collect()))
    }

    /// Where a setting comes from.
    pub fn source(&self, key: &str) -> Source {
        self.laid.source(key)
    }

    /// The value of a setting.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.laid.get(key)
    }

    /// Every setting, in the order of the documentation. Keys and tokens are not shown.
    pub fn settings(&self) -> Vec<Setting> {
        let setting = |key: &Key| Setting {
            key: key.name,
            value: self.get(key.name).map(|value| shown(key.name, value)),
            source: self.source(key.name),
        };
        self.keys.iter().map(setting).collect()
    }
}

/// Fields that hold what nobody may see.
const SECRETS: [&str; 2] = ["key", "token"];

/// A value as it may be shown.
fn shown(name: &str, value: &Value) -> Value {
    let last = name.rsplit('.').next().unwrap_or_default();
    match value {
        Value::String(_) if SECRETS.contains(&last) => Value::from("***"),
        Value::Array(values) => Value::Array(values.iter().map(|one| shown(name, one)).collect()),
        Value::Table(fields) => {
            let fields = fields.iter();
            Value::Table(
                fields
                    .map(|(field, value)| (field.clone(), shown(field, value)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// What was said, by whom, the weaker before the stronger in each list.
struct Said {
    files: Vec<Set>,
    environment: Vec<Set>,
    flags: Vec<Set>,
}

fn said(inputs: &Inputs, known: &Known<'_>) -> Result<Said, ConfigError> {
    let mut files = Vec::new();
    let user = files::user(|name| inputs.variable(name)).filter(|path| path.is_file());
    if let Some(path) = user {
        files.extend(known.flat(&files::read(&path)?, &Source::User(path))?);
    }
    let named = || {
        inputs
            .variable("TRIMTAB_CONFIG")
            .filter(|path| !path.is_empty())
    };
    let file = inputs.file.clone().or_else(|| named().map(PathBuf::from));
    let found = || inputs.folder.as_deref().and_then(files::project);
    if let Some(path) = file.or_else(found) {
        files.extend(known.flat(&files::read(&path)?, &Source::Project(path))?);
    }
    let mut flags = Vec::new();
    for (key, text, flag) in &inputs.flags {
        flags.push(known.typed(key, text, &Source::Flag(flag.clone()))?);
    }
    Ok(Said {
        files,
        environment: environment(inputs, known)?,
        flags,
    })
}

/// Settings from variables. One that looks like a setting of a section and is none is an
/// error; other names are not ours to judge.
fn environment(inputs: &Inputs, known: &Known<'_>) -> Result<Vec<Set>, ConfigError> {
    let mut all = Vec::new();
    for (variable, text) in &inputs.environment {
        let Some(name) = variable.strip_prefix("TRIMTAB_") else {
            continue;
        };
        let source = Source::Environment(variable.clone());
        let is = |key: &&&Key| key.variable() == *variable;
        if let Some(key) = known.keys.iter().find(is) {
            if !text.is_empty() {
                all.push(known.typed(key.name, text, &source)?);
            }
            continue;
        }
        let name = name.to_lowercase();
        let sections = known.keys.iter().filter_map(|key| key.name.split_once('.'));
        let mut sections = sections.map(|(section, _)| section);
        if let Some(section) = sections.find(|section| name.starts_with(&format!("{section}_"))) {
            let key = name.replacen(&format!("{section}_"), &format!("{section}."), 1);
            known.typed(&key, text, &source)?;
        }
    }
    Ok(all)
}

/// The preset that the strongest source names.
fn preset(said: &Said) -> Result<String, ConfigError> {
    let all = said
        .files
        .iter()
        .chain(&said.environment)
        .chain(&said.flags);
    let named = all.rev().find(|set| set.name == "preset");
    let default = PRESETS.first().map_or("", |preset| preset.name);
    let Some(set) = named else {
        return Ok(default.to_owned());
    };
    let name = set.value.as_str().unwrap_or_default();
    Policy::preset(name).map_err(|UnknownPreset(value)| ConfigError::Value {
        key: "preset".to_owned(),
        value: format!("'{value}'"),
        source: set.source.clone(),
        allowed: KEYS
            .first()
            .map(|key| key.kind.allowed())
            .unwrap_or_default(),
    })?;
    Ok(name.to_owned())
}

/// The settings of a preset, said by it or not.
fn base(preset: &str) -> Laid {
    let policy = Policy::preset(preset).unwrap_or_default();
    let table = Table::try_from(&policy).unwrap_or_default();
    let mut laid = Laid {
        table,
        ..Laid::default()
    };
    let source = Source::Preset(preset.to_owned());
    laid.sources = KEYS
        .iter()
        .filter(|key| {
            !OWN.contains(&key.name) && key.name != "preset" && laid.get(key.name).is_some()
        })
        .map(|key| (key.name.to_owned(), source.clone()))
        .collect();
    laid
}

/// Lays what the names of design `checkpoint` say over its preset.
fn lay_aliases(laid: &mut Laid, inputs: &Inputs) -> Result<(), ConfigError> {
    for alias in ALIASES {
        let Some(text) = inputs
            .variable(alias.variable)
            .filter(|text| !text.is_empty())
        else {
            continue;
        };
        match designs::set(laid, alias.variable, &text) {
            Some(Ok(set)) => laid.lay(&set),
            Some(Err(allowed)) => {
                return Err(ConfigError::Value {
                    key: alias.setting.to_owned(),
                    value: format!("'{text}'"),
                    source: Source::Environment(alias.variable.to_owned()),
                    allowed: allowed.to_owned(),
                });
            }
            None => {}
        }
    }
    Ok(())
}

/// The policy that the settings make.
fn policy(laid: &Laid) -> Result<Policy, ConfigError> {
    let mut table = laid.table.clone();
    let known = Table::try_from(Policy::default()).unwrap_or_default();
    table.retain(|name, _| known.contains_key(name));
    let whole = Value::Table(table.clone());
    whole.try_into().map_err(|error: toml::de::Error| {
        let (key, value) = culprit(laid, &table);
        ConfigError::Value {
            value,
            source: laid.source(&key),
            key,
            allowed: error.message().to_owned(),
        }
    })
}

/// The setting that keeps a policy from being read: without it, it can be.
fn culprit(laid: &Laid, table: &Table) -> (String, String) {
    let found = laid.sources.keys().find(|key| {
        let without = Laid {
            table: table.clone(),
            ..Laid::default()
        };
        readable_without(without, key)
    });
    let key = found.cloned().unwrap_or_else(|| "settings".to_owned());
    let value = laid.get(&key).map(ToString::to_string).unwrap_or_default();
    (key, value)
}

fn readable_without(mut laid: Laid, key: &str) -> bool {
    let mut path: Vec<&str> = key.split('.').collect();
    let Some(last) = path.pop() else { return false };
    let mut table = &mut laid.table;
    for name in path {
        match table.get_mut(name) {
            Some(Value::Table(inner)) => table = inner,
            _ => return false,
        }
    }
    table.remove(last).is_some() && Value::Table(laid.table).try_into::<Policy>().is_ok()
}
