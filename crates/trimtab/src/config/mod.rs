//! Settings from files, the environment and flags, each with its source.
//!
//! The order, strongest first: flags, environment, the project's `trimtab.toml`, the user's file,
//! the preset. Anybody may have written a project's file, so it may only choose what goes into a
//! window ([`InProject`]).
//!
//! ```
//! use trimtab::config::{Config, ConfigInputs};
//!
//! let mut inputs = ConfigInputs::default();
//! inputs.set("preset=refs", "--set");
//! inputs.environment = vec![("TRIMTAB_COMPACTION_AUTO".into(), "false".into())];
//! let config = Config::load(&inputs)?;
//! assert!(!config.policy.compaction.auto);
//! assert_eq!(config.source("compaction.auto").to_string(), "TRIMTAB_COMPACTION_AUTO");
//! assert_eq!(config.source("recovery.retries").to_string(), "preset refs");
//! # Ok::<_, trimtab::config::ConfigError>(())
//! ```

mod error;
mod files;
mod inputs;
mod keys;
mod layered_settings;
mod nearest;
mod redacted;
mod schema;
mod setting_layers;
mod source;
mod trust;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use toml::{Table, Value};
use trimtab_engine::policy::{BadSetting, Policy};

use crate::network::Network;

pub use error::ConfigError;
pub use files::{PROJECT_FILE, config_folder};
pub use inputs::ConfigInputs;
pub use keys::{InProject, KEYS, SettingKey, SettingKind};
pub use nearest::nearest_name;
pub use schema::{commented, inline, schema};
pub use source::SettingSource;
pub use trust::{NotRead, UntrustedFile, read_own_file};

use layered_settings::{KnownKeys, LayeredSettings, SetValue};
use redacted::redact_value;
use setting_layers::{collect_layers, preset};

/// One resolved setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub key: &'static str,
    /// Its value; none if it is not set and has no default.
    pub value: Option<Value>,
    /// Its source.
    pub source: SettingSource,
}

/// Resolved settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The policy.
    pub policy: Policy,
    /// Folder or URL of the store, if set.
    pub store: Option<PathBuf>,
    /// URL of the object store for large outputs, if set.
    pub blobs: Option<String>,
    /// The model of the agent, if set.
    pub model: Option<String>,
    /// The model's window in tokens, if set.
    pub window: Option<u64>,
    /// The maximum length of an answer in tokens, if set.
    pub max_output: Option<u64>,
    /// How other machines are reached.
    pub network: Network,
    layers: LayeredSettings,
    keys: Vec<SettingKey>,
}

impl Config {
    /// Resolves settings.
    pub fn load(inputs: &ConfigInputs) -> Result<Self, ConfigError> {
        let keys = inputs.keys();
        let layers = collect_layers(inputs, &KnownKeys { keys: &keys })?;
        // The preset must be known first: it is the lowest layer.
        let mut base = base(preset(&layers));
        base.table.extend(inputs.defaults.clone());
        let mut settings = base.clone();
        for set in &layers {
            settings.apply(set);
        }
        let policy = policy(&settings).map_err(|error| unreadable_policy(base, &layers, &error))?;
        // 0 means that the figure is looked up.
        let number = |name: &str| {
            let value = settings.get(name)?.as_integer()?;
            u64::try_from(value).ok().filter(|value| *value > 0)
        };
        let config = Self {
            policy,
            store: settings.text("store").map(PathBuf::from),
            blobs: settings.text("blobs"),
            model: settings.text("model"),
            window: number("window"),
            max_output: number("max_output"),
            network: network(inputs, &settings),
            layers: settings,
            keys,
        };
        config.check(config.window)?;
        Ok(config)
    }

    /// The value of one setting that is not part of a policy, and so does not depend on the preset.
    /// The other settings are not validated.
    pub fn lookup(inputs: &ConfigInputs, key: &str) -> Result<Option<Value>, ConfigError> {
        let mut settings = LayeredSettings::of_table(inputs.defaults.clone());
        let keys = inputs.keys();
        for set in collect_layers(inputs, &KnownKeys { keys: &keys })? {
            settings.apply(&set);
        }
        Ok(settings.get(key).cloned())
    }

    /// Fails if a setting is invalid for a model with this window.
    pub fn check(&self, window: Option<u64>) -> Result<(), ConfigError> {
        let mut bad = self.policy.check(window).err().unwrap_or_default();
        if let (Some(window), Some(answer)) = (window, self.max_output)
            && answer >= window
        {
            bad.push(BadSetting {
                setting: "max_output".to_owned(),
                value: answer.to_string(),
                allowed: format!("less than the window of {window} tokens"),
            });
        }
        bad.extend(self.idle());
        if bad.is_empty() {
            return Ok(());
        }
        let with_source = |bad: BadSetting| {
            let source = self.source(bad.setting.split('[').next().unwrap_or_default());
            (bad, source)
        };
        Err(ConfigError::Bad(bad.into_iter().map(with_source).collect()))
    }

    /// Settings without effect: another setting of the same or a weaker source disables them.
    fn idle(&self) -> Vec<BadSetting> {
        let preset = self.source("preset");
        // Settings for several presets need not have an effect under each of them.
        if preset == SettingSource::Flag("--compare".to_owned()) {
            return Vec::new();
        }
        let base = base(&self.policy.preset);
        // Sources are ordered strongest first. Two settings of one kind of source are equally
        // strong.
        let is_weaker = |one: &SettingSource, other: &SettingSource| {
            one > other && one.as_str() != other.as_str()
        };
        let mut idle = Vec::new();
        for (name, source) in &self.layers.sources {
            let value = self.layers.get(name);
            let why = self.policy.why_idle(name);
            let Some(why) = why.filter(|_| value != base.get(name)) else {
                continue;
            };
            // The reason begins with the name of the disabling setting.
            let cause = self.source(why.split(' ').next().unwrap_or_default());
            if !is_weaker(source, &preset) && !is_weaker(source, &cause) {
                idle.push(BadSetting {
                    setting: name.clone(),
                    value: value.map(inline).unwrap_or_default(),
                    allowed: format!("nothing, because {why} and so it has no effect"),
                });
            }
        }
        idle
    }

    /// The source of a setting.
    pub fn source(&self, key: &str) -> SettingSource {
        self.layers.source(key)
    }

    /// The value of a setting.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.layers.get(key)
    }

    /// All settings, in the order of the documentation. Keys and tokens are hidden.
    pub fn settings(&self) -> Vec<Setting> {
        let setting = |key: &SettingKey| Setting {
            key: key.name,
            value: self
                .get(key.name)
                .map(|value| redact_value(key.name, value)),
            source: self.source(key.name),
        };
        self.keys.iter().map(setting).collect()
    }
}

/// How other machines are reached, by settings and environment.
fn network(inputs: &ConfigInputs, settings: &LayeredSettings) -> Network {
    // `SSL_CERT_FILE` is the variable that OpenSSL reads.
    let ca_file = settings.text("network.ca_file");
    let ca_file = ca_file.or_else(|| inputs.variable("SSL_CERT_FILE"));
    Network {
        ca_file: ca_file.map(PathBuf::from),
        proxy: settings.text("network.proxy"),
    }
}

/// All settings of a preset, including defaults.
fn base(preset: &str) -> LayeredSettings {
    let policy = Policy::preset(preset).unwrap_or_default();
    let table = Table::try_from(&policy).unwrap_or_default();
    let mut settings = LayeredSettings::of_table(table);
    let source = SettingSource::Preset(preset.to_owned());
    settings.sources = KEYS
        .iter()
        .filter(|key| key.name != "preset" && settings.get(key.name).is_some())
        .map(|key| (key.name.to_owned(), source.clone()))
        .collect();
    settings
}

/// The policy of these settings.
fn policy(settings: &LayeredSettings) -> Result<Policy, toml::de::Error> {
    let mut table = settings.table.clone();
    // The table also has settings that are not part of a policy.
    let known = Table::try_from(Policy::default()).unwrap_or_default();
    table.retain(|name, _| known.contains_key(name));
    Value::Table(table).try_into()
}

/// The error for a policy that cannot be read: it names the first setting that makes `settings`
/// unreadable. The error of the TOML reader does not.
fn unreadable_policy(
    mut settings: LayeredSettings,
    layers: &[SetValue],
    error: &toml::de::Error,
) -> ConfigError {
    let found = layers.iter().find(|set| {
        settings.apply(set);
        policy(&settings).is_err()
    });
    let (key, value, origin) = match found {
        Some(set) => (set.name.as_str(), set.value.to_string(), set.source.clone()),
        None => ("settings", String::new(), SettingSource::Default),
    };
    ConfigError::Value {
        key: key.to_owned(),
        value,
        origin,
        allowed: error.message().to_owned(),
    }
}
