//! The source of a setting.

use std::fmt;
use std::path::PathBuf;

/// The source of a setting, strongest first. The order of the variants is their priority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SettingSource {
    /// A flag of the command line.
    Flag(String),
    /// An environment variable.
    Environment(String),
    /// The file that the user named, by `--config` or `TRIMTAB_CONFIG`.
    Named(PathBuf),
    /// The project's file, which somebody else may have written.
    Project(PathBuf),
    /// The user's file.
    User(PathBuf),
    /// The preset.
    Preset(String),
    /// Not set.
    Default,
}

impl SettingSource {
    /// A short name for scripts.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Flag(_) => "flag",
            Self::Environment(_) => "environment",
            Self::Named(_) => "named",
            Self::Project(_) => "project",
            Self::User(_) => "user",
            Self::Preset(_) => "preset",
            Self::Default => "default",
        }
    }

    /// The flag, variable, file or preset.
    pub fn name(&self) -> String {
        match self {
            Self::Flag(name) | Self::Environment(name) | Self::Preset(name) => name.clone(),
            Self::Named(path) | Self::Project(path) | Self::User(path) => {
                path.display().to_string()
            }
            Self::Default => String::new(),
        }
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::Default => f.write_str("default"),
            other => f.write_str(&other.name()),
        }
    }
}
