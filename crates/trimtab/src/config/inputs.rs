//! The inputs of the configuration.

use std::path::PathBuf;

use toml::Table;

use super::trust::{NotRead, UntrustedFile};
use super::{KEYS, SettingKey, files};

/// Everything that settings are read from, as values.
#[derive(Clone, Debug, Default)]
pub struct ConfigInputs {
    /// Flags: key, value as typed, name of the flag.
    pub flags: Vec<(String, String, String)>,
    /// The environment.
    pub environment: Vec<(String, String)>,
    /// The folder in which the search for the project's file starts, upward; none for no search.
    pub folder: Option<PathBuf>,
    /// The file to use instead of the project's. The user who names it trusts it.
    pub file: Option<PathBuf>,
    /// Further settings of the caller, besides those of the library.
    pub more: Vec<SettingKey>,
    /// Their defaults.
    pub defaults: Table,
}

impl ConfigInputs {
    /// The environment of this process and its working folder.
    pub fn of_process() -> Self {
        // Variables that are not UTF-8 cannot be settings of ours.
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

    /// Adds a setting `key=value` from `flag`; without `=` it is a switch.
    pub fn set(&mut self, setting: &str, flag: &str) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        self.flags.push((key, value, flag.to_owned()));
    }

    /// The project's file, if it is skipped because somebody else may have written it.
    pub fn skipped_file(&self) -> Option<UntrustedFile> {
        if self.named_file().is_some() {
            return None;
        }
        match files::project(self.folder.as_deref()?) {
            Err(NotRead::Untrusted(file)) => Some(file),
            _ => None,
        }
    }

    /// The settings of the library and of the caller.
    pub(super) fn keys(&self) -> Vec<SettingKey> {
        KEYS.iter().chain(&self.more).copied().collect()
    }

    pub(super) fn named_file(&self) -> Option<PathBuf> {
        let by_variable = || self.variable("TRIMTAB_CONFIG").map(PathBuf::from);
        self.file.clone().or_else(by_variable)
    }

    /// The value of a variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        let value = found.map(|(_, value)| value.clone());
        value.filter(|value| !value.is_empty())
    }
}
