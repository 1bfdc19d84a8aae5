//! The errors of the configuration.

use std::fmt;
use std::path::{Path, PathBuf};

use trimtab_engine::policy::BadSetting;

use super::{SettingSource, UntrustedFile};

/// Why settings cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file that somebody else may have written.
    Untrusted(UntrustedFile),
    /// A project's file sets what projects may not set.
    Project {
        /// The file.
        path: PathBuf,
        /// The settings.
        keys: Vec<String>,
        /// The user's own file, which may set them.
        user: Option<PathBuf>,
    },
    /// There is no such setting.
    Unknown {
        /// Its name, as given.
        key: String,
        /// Its source.
        source: SettingSource,
        /// The name that was perhaps meant.
        nearest: Option<String>,
    },
    /// The name belongs to the design of another preset.
    OtherPreset {
        /// The name, as given.
        key: String,
        /// Its source.
        source: SettingSource,
        /// The current preset.
        preset: String,
        /// The presets that have the name, each with the corresponding setting.
        meant: Vec<(&'static str, &'static str)>,
    },
    /// The setting cannot have this value.
    Value {
        /// The setting.
        key: String,
        /// The value.
        value: String,
        /// Its source.
        source: SettingSource,
        /// The allowed values.
        allowed: String,
    },
    /// Invalid values, each with its source.
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
                    "put them into the user's file{user}, or trust this file as a whole with \
                     --config {path}"
                ))
            }
            Self::Unknown { nearest, .. } => Some(match nearest {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => "`trimtab config show` lists every setting".to_owned(),
            }),
            Self::OtherPreset { meant, .. } => {
                let meant = meant.iter();
                let meant: Vec<String> = meant
                    .map(|(preset, setting)| format!("{setting} is what it sets under {preset}"))
                    .collect();
                Some(meant.join("; "))
            }
            Self::Value { allowed, .. } => Some(format!("allowed: {allowed}")),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Untrusted(file) => write!(f, "{file}"),
            Self::Project { path, keys, .. } => {
                let keys = keys.join(", ");
                write!(f, "{}: a project's file may not set {keys}", path.display())
            }
            Self::OtherPreset {
                key,
                source,
                preset,
                ..
            } => write!(f, "{source}: preset {preset} has no setting {key}"),
            Self::Unknown { key, source, .. } => write!(f, "{source}: no setting {key}"),
            Self::Value {
                key, value, source, ..
            } => {
                write!(f, "{source}: {key} = {value} cannot be used")
            }
            Self::Bad(all) => {
                for (at, (bad, source)) in all.iter().enumerate() {
                    let gap = if at > 0 { "\n" } else { "" };
                    write!(f, "{gap}{source}: {bad}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ConfigError {}
