//! Finds and reads configuration files.

use std::path::{Path, PathBuf};

use super::ConfigError;
use super::trust::{self, LinkPolicy, NotRead, UntrustedFile};

/// The name of a project's file.
pub const PROJECT_FILE: &str = "trimtab.toml";

/// The project's file for `folder`: in it or above it, up to the root of the repository, which is
/// the first folder with a `.git`. Without a repository, only `folder` itself counts.
pub(super) fn project(folder: &Path) -> Result<(PathBuf, String), NotRead> {
    // The real folder, because a link could lead around the checks of the folders above.
    let folder = folder.canonicalize().map_err(|_| NotRead::Missing)?;
    let is_root = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let root = folder.ancestors().find(is_root).unwrap_or(&folder);
    let mut between = Vec::new();
    for folder in folder.ancestors() {
        between.push(folder);
        let path = folder.join(PROJECT_FILE);
        match trust::read(&path, LinkPolicy::Refuse) {
            Err(NotRead::Missing) if folder != root => {}
            Ok(text) => {
                // All folders on the way count: whoever can write to one of them could put another
                // file there.
                let checked = between.iter().try_for_each(|one| trust::check_folder(one));
                return match checked {
                    Ok(()) => Ok((path, text)),
                    Err((why, hint)) => Err(NotRead::Untrusted(UntrustedFile { path, why, hint })),
                };
            }
            Err(other) => return Err(other),
        }
    }
    Err(NotRead::Missing)
}

/// The user's configuration folder, as `variable` names it.
///
/// A relative path is ignored, as the XDG specification requires: it would mean another folder in
/// every working folder.
pub fn config_folder(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let folder = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let config = folder("XDG_CONFIG_HOME");
    let config = config.or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("trimtab"))
}

/// Reads the user's file, if there is one.
pub(super) fn read_user(path: &Path) -> Result<Option<toml::Table>, ConfigError> {
    match trust::read_own_file(path) {
        Ok(text) => parse(path, &text).map(Some),
        Err(NotRead::Missing) => Ok(None),
        Err(NotRead::Untrusted(file)) => Err(ConfigError::Untrusted(file)),
        Err(NotRead::Failed(path, error)) => Err(unreadable(&path, &error)),
    }
}

/// Reads a file that the user named.
pub(super) fn read_named(path: &Path) -> Result<toml::Table, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    parse(path, &text)
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> ConfigError {
    ConfigError::File {
        path: path.to_owned(),
        why: format!("cannot read: {error}"),
    }
}

pub(super) fn parse(path: &Path, text: &str) -> Result<toml::Table, ConfigError> {
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
