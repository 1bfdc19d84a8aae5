//! Collects the settings of all sources.

use std::path::{Path, PathBuf};

use trimtab_engine::policy::PRESETS;

use super::files;
use super::inputs::ConfigInputs;
use super::layered_settings::{KnownKeys, SetValue};
use super::trust::NotRead;
use super::{ConfigError, SettingKind, SettingSource, config_folder, nearest_name};

/// The settings of all sources, weaker before stronger.
pub(super) fn collect_layers(
    inputs: &ConfigInputs,
    known: &KnownKeys<'_>,
) -> Result<Vec<SetValue>, ConfigError> {
    let mut layers = Vec::new();
    let folder = config_folder(|name| inputs.variable(name));
    let user = folder.map(|folder| folder.join("config.toml"));
    if let Some(path) = &user
        && let Some(table) = files::read_user(path)?
    {
        layers.extend(known.settings_in("", &table, &SettingSource::User(path.clone()))?);
    }
    // A named file replaces the project's: the user chose it, so it may set everything.
    if let Some(path) = inputs.named_file() {
        layers.extend(known.settings_in(
            "",
            &files::read_named(&path)?,
            &SettingSource::Named(path),
        )?);
    } else if let Some(folder) = &inputs.folder {
        layers.extend(of_project(folder, known, user)?);
    }
    layers.extend(environment(inputs, known)?);
    for (key, text, flag) in &inputs.flags {
        layers.push(known.parse_typed(key, text, &SettingSource::Flag(flag.clone()))?);
    }
    Ok(layers)
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
    let all = known.settings_in("", &table, &SettingSource::Project(path.clone()))?;
    let keys = known.refused_in_project(&all);
    if keys.is_empty() {
        Ok(all)
    } else {
        Err(ConfigError::Project { path, keys, user })
    }
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

/// The preset that the strongest source names. Only known names are among the settings.
pub(super) fn preset(layers: &[SetValue]) -> &str {
    let named = layers.iter().rev().find(|set| set.name == "preset");
    let default = PRESETS.first().map_or("", |preset| preset.name);
    named.and_then(|set| set.value.as_str()).unwrap_or(default)
}
