//! Where configuration files are.

use std::path::{Path, PathBuf};

use super::ConfigError;

/// What a project's file is called.
pub const PROJECT_FILE: &str = "trimtab.toml";

/// The project's file for `folder`: in it, or in the nearest folder above it.
pub(super) fn project(folder: &Path) -> Option<PathBuf> {
    let folders = folder.ancestors();
    folders
        .map(|folder| folder.join(PROJECT_FILE))
        .find(|path| path.is_file())
}

/// The user's file, whether it is there or not: `trimtab/config.toml` in the configuration
/// folder that `variable` names.
pub(super) fn user(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty());
    // A relative path in this variable is to be ignored, says its specification.
    let config = folder("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.filter(|path| path.is_absolute());
    let config = config.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".config")))?;
    Some(config.join("trimtab").join("config.toml"))
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<toml::Table, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::File {
        path: path.to_owned(),
        why: format!("cannot read: {error}"),
    })?;
    text.parse().map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        ConfigError::File {
            path: path.to_owned(),
            why: format!("line {line}: {}", error.message()),
        }
    })
}
