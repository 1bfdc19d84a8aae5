//! The errors of the configuration.

use std::path::{Path, PathBuf};

use thiserror::Error;
use trimtab_engine::policy::BadSetting;

use super::{SettingSource, UntrustedFile};

/// Why settings cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file that somebody else may have written.
    #[error("{0}")]
    Untrusted(UntrustedFile),
    /// A project's file sets what projects may not set.
    #[error("{}: a project's file may not set {}", path.display(), keys.join(", "))]
    Project {
        /// The file.
        path: PathBuf,
        /// The settings.
        keys: Vec<String>,
        /// The user's own file, which may set them.
        user: Option<PathBuf>,
    },
    /// There is no such setting.
    #[error("{origin}: no setting {key}")]
    Unknown {
        /// Its name, as given.
        key: String,
        /// Its source.
        origin: SettingSource,
        /// The name that was perhaps meant.
        nearest: Option<String>,
    },
    /// The setting cannot have this value.
    #[error("{origin}: {value} is not a valid value of {key}")]
    Value {
        /// The setting.
        key: String,
        /// The value.
        value: String,
        /// Its source.
        origin: SettingSource,
        /// The allowed values.
        allowed: String,
    },
    /// Invalid values, each with its source.
    #[error("{}", one_per_line(_0))]
    Bad(Vec<(BadSetting, SettingSource)>),
}

impl ConfigError {
    /// How to fix it, if that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { .. } | Self::Bad(_) => None,
            Self::Untrusted(file) => Some(file.hint.clone()),
            Self::Project { path, user, .. } => {
                let user = user.as_deref().map(Path::display);
                let user = user.map_or(String::new(), |user| format!(" {user}"));
                let path = path.display();
                Some(format!(
                    "move that to the user's file{user}, or trust this file as a whole with \
                     --config {path}"
                ))
            }
            Self::Unknown { nearest, .. } => Some(match nearest {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => "`trimtab config show` lists every setting".to_owned(),
            }),
            // A flag without `=` is a switch, but perhaps only its value was forgotten.
            Self::Value {
                key,
                value,
                origin: SettingSource::Flag(_),
                allowed,
            } if value == "true" => Some(format!("write {key}=VALUE; allowed: {allowed}")),
            Self::Value { allowed, .. } => Some(format!("allowed: {allowed}")),
        }
    }
}

fn one_per_line(all: &[(BadSetting, SettingSource)]) -> String {
    let lines = all.iter().map(|(bad, origin)| format!("{origin}: {bad}"));
    lines.collect::<Vec<_>>().join("\n")
}
