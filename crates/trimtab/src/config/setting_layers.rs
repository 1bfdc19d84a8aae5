//! Collects the settings of all sources.

use std::path::{Path, PathBuf};

use trimtab_engine::policy::{PRESETS, Policy, UnknownPreset};

use super::files;
use super::inputs::ConfigInputs;
use super::layered_settings::{KnownKeys, SetValue};
use super::trust::NotRead;
use super::{ConfigError, KEYS, SettingKind, SettingSource, nearest_name};

/// The settings by source, weaker before stronger in each list.
pub(super) struct SettingLayers {
    pub(super) files: Vec<SetValue>,
    pub(super) environment: Vec<SetValue>,
    pub(super) flags: Vec<SetValue>,
}

impl SettingLayers {
    /// All of them, weaker before stronger.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = &SetValue> {
        let files = self.files.iter();
        files.chain(&self.environment).chain(&self.flags)
    }
}

pub(super) fn collect_layers(
    inputs: &ConfigInputs,
    known: &KnownKeys<'_>,
) -> Result<SettingLayers, ConfigError> {
    let mut files = Vec::new();
    let user = files::user(|name| inputs.variable(name));
    if let Some(path) = &user
        && let Some(table) = files::read_user(path)?
    {
        files.extend(known.settings_in(&table, &SettingSource::User(path.clone()))?);
    }
    // A named file replaces the project's: the user chose it, so it may set everything.
    if let Some(path) = inputs.named_file() {
        files.extend(known.settings_in(&files::read_named(&path)?, &SettingSource::Named(path))?);
    } else if let Some(folder) = &inputs.folder {
        files.extend(of_project(folder, known, user)?);
    }
    let mut flags = Vec::new();
    for (key, text, flag) in &inputs.flags {
        flags.push(known.parse_typed(key, text, &SettingSource::Flag(flag.clone()))?);
    }
    Ok(SettingLayers {
        files,
        environment: environment(inputs, known)?,
        flags,
    })
}

/// The settings of the project's file. One that somebody else may have written is ignored.
fn of_project(
    folder: &Path,
    known: &KnownKeys<'_>,
    user: Option<PathBuf>,
) -> Result<Vec<SetValue>, ConfigError> {
    let (path, text) = match files::project(folder) {
        Ok(found) => found,
        Err(NotRead::Missing | NotRead::Untrusted(_)) => return Ok(Vec::new()),
        Err(NotRead::Failed(path, error)) => return Err(files::unreadable(&path, &error)),
    };
    let table = files::parse(&path, &text)?;
    let allowed_settings = known.of_project(&table, &SettingSource::Project(path.clone()))?;
    allowed_settings.map_err(|keys| ConfigError::Project { path, keys, user })
}

/// Settings from environment variables. A variable that looks like a misspelt setting is an error;
/// other names may belong to other programs.
fn environment(inputs: &ConfigInputs, known: &KnownKeys<'_>) -> Result<Vec<SetValue>, ConfigError> {
    let mut all = Vec::new();
    for (variable, text) in &inputs.environment {
        let Some(name) = setting_of(variable, known) else {
            continue;
        };
        // An empty variable is the usual way to unset one. A misspelt one fails in any case.
        if !text.is_empty() || known.find(&name).is_none() {
            let source = SettingSource::Environment(variable.clone());
            all.push(known.parse_typed(&name, text, &source)?);
        }
    }
    Ok(all)
}

/// The setting that a variable names, or seems to name.
fn setting_of(variable: &str, known: &KnownKeys<'_>) -> Option<String> {
    let name = variable.strip_prefix("TRIMTAB_")?.to_lowercase();
    let exact = known.keys.iter().find(|key| key.variable() == variable);
    if let Some(key) = exact {
        return Some(key.name.to_owned());
    }
    // A field of a table, such as `TRIMTAB_PROXY_LIMITS_PLAN_MS`.
    let tables = known.keys.iter();
    let mut tables = tables.filter(|key| key.kind == SettingKind::Table);
    let field = tables.find_map(|key| {
        let field = variable.strip_prefix(&key.variable())?.strip_prefix('_')?;
        Some(format!("{}.{}", key.name, field.to_lowercase()))
    });
    // It begins like a setting, but is none.
    let mut keys = known.keys.iter();
    let section = || {
        keys.find_map(|key| {
            let (section, _) = key.name.split_once('.')?;
            let rest = name.strip_prefix(section)?.strip_prefix('_')?;
            Some(format!("{section}.{rest}"))
        })
    };
    let misspelt = || is_misspelt(&name, known).then(|| name.clone());
    field.or_else(section).or_else(misspelt)
}

/// True for a name that is nearly that of a setting without a section. A longer name that begins
/// with a setting, such as `models`, is a variable of its own.
fn is_misspelt(name: &str, known: &KnownKeys<'_>) -> bool {
    let keys = known.keys.iter().map(|key| key.name);
    let plain = || keys.clone().filter(|key| !key.contains('.'));
    !plain().any(|key| name.starts_with(key)) && nearest_name(name, plain()).is_some()
}

/// The preset that the strongest source names.
pub(super) fn preset(layers: &SettingLayers) -> Result<String, ConfigError> {
    let named = layers.all().rev().find(|set| set.name == "preset");
    let default = PRESETS.first().map_or("", |preset| preset.name);
    let Some(set) = named else {
        return Ok(default.to_owned());
    };
    let name = set.value.as_str().unwrap_or_default();
    Policy::preset(name).map_err(|UnknownPreset(value)| ConfigError::Value {
        key: "preset".to_owned(),
        value: format!("'{value}'"),
        origin: set.source.clone(),
        allowed: KEYS
            .first()
            .map(|key| key.kind.allowed())
            .unwrap_or_default(),
    })?;
    Ok(name.to_owned())
}
