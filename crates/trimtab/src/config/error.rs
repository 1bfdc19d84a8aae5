//! What can be wrong with settings.

use std::fmt;
use std::path::PathBuf;

use trimtab_engine::policy::BadSetting;

use super::Source;

/// Settings that cannot be used.
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
    /// There is no such setting.
    Unknown {
        /// Its name, as it was given.
        key: String,
        /// Who said it.
        source: Source,
        /// The setting that was perhaps meant.
        nearest: Option<String>,
    },
    /// A value that the setting cannot have.
    Value {
        /// The setting.
        key: String,
        /// The value.
        value: String,
        /// Who said it.
        source: Source,
        /// What it may be.
        allowed: String,
    },
    /// Values that cannot be right, each with who said it.
    Bad(Vec<(BadSetting, Source)>),
}

impl ConfigError {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { .. } | Self::Bad(_) => None,
            Self::Unknown { nearest, .. } => Some(match nearest {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => "`trimtab config schema` lists every setting".to_owned(),
            }),
            Self::Value { allowed, .. } => Some(format!("allowed: {allowed}")),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, why } => write!(f, "{}: {why}", path.display()),
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
