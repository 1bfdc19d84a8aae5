//! Resolves the settings of a run from flags, environment, files and preset.

pub mod keys;

use toml::{Table, Value};
use trimtab::config::{Config, ConfigError, ConfigInputs, KEYS, SettingKey};
use trimtab::network::OutboundNetwork;
use trimtab_proxy::ProxyConfig;

use crate::common::CommonArgs;
use crate::exit::{Failure, with_hint};
use crate::ui::Terminal;
use keys::{PROXY_KEYS, TOOL_KEYS};

/// Resolves the settings. `named` are flags of the verb: setting, value, flag.
pub fn load(common: &CommonArgs, named: &[(&str, String, &str)]) -> Result<Config, Failure> {
    Config::load(&inputs(common, named)).map_err(|error| failure(&error))
}

/// The value of one setting, without resolving the preset.
pub fn lookup(common: &CommonArgs, key: &str) -> Result<Option<Value>, Failure> {
    Config::lookup(&inputs(common, &[]), key).map_err(|error| failure(&error))
}

/// The inputs from which the settings of a run are resolved.
pub fn inputs(common: &CommonArgs, named: &[(&str, String, &str)]) -> ConfigInputs {
    let mut inputs = ConfigInputs::of_process();
    inputs.file.clone_from(&common.config);
    // All verbs accept the settings of all verbs, because they share their files.
    inputs.more = [PROXY_KEYS, TOOL_KEYS].concat();
    inputs.defaults = defaults();
    for setting in &common.set {
        inputs.set(setting, "--set");
    }
    // A specific flag overrides `--set`.
    for (key, value, flag) in named {
        let flag = ((*key).to_owned(), value.clone(), (*flag).to_owned());
        inputs.flags.push(flag);
    }
    inputs
}

/// All settings.
pub fn keys() -> Vec<SettingKey> {
    let own = [PROXY_KEYS, TOOL_KEYS].concat();
    KEYS.iter().copied().chain(own).collect()
}

/// The default settings of the proxy.
pub fn defaults() -> Table {
    let mut proxy = Table::try_from(ProxyConfig::default()).unwrap_or_default();
    // By default the proxy uses the general preset.
    proxy.remove("preset");
    Table::from_iter([("proxy".to_owned(), Value::Table(proxy))])
}

/// Makes connections to other machines as the settings say.
pub fn outgoing(config: &Config) -> Result<OutboundNetwork, Failure> {
    OutboundNetwork::new(&config.network).map_err(|error| {
        let (message, hint) = with_hint(&error.to_string());
        Failure::Input { message, hint }
    })
}

/// Warns about a project's file that exists but is not trusted.
pub fn warn_of_skipped(common: &CommonArgs, terminal: &mut Terminal) {
    if let Some(file) = inputs(common, &[]).skipped_file() {
        terminal.warn(&format!("{file}\nhint: {}", file.hint));
    }
}

/// The failure for invalid settings.
pub fn failure(error: &ConfigError) -> Failure {
    Failure::Input {
        message: error.to_string(),
        hint: error.hint(),
    }
}
