//! The settings of a run: flags, environment, files and preset.

pub mod keys;

use toml::{Table, Value};
use trimtab::config::{Config, ConfigError, Inputs, KEYS, Key};
use trimtab::network::Outgoing;
use trimtab_proxy::ProxyConfig;

use crate::common::Common;
use crate::exit::{Failure, with_hint};
use crate::ui::Terminal;
use keys::{PROXY_KEYS, TOOL_KEYS};

/// Resolves the settings; `named` are flags of the verb itself: setting, value, flag.
pub fn load(common: &Common, named: &[(&str, String, &str)]) -> Result<Config, Failure> {
    Config::load(&inputs(common, named)).map_err(|error| failure(&error))
}

/// Where the settings of a run are looked for.
pub fn inputs(common: &Common, named: &[(&str, String, &str)]) -> Inputs {
    let mut inputs = Inputs::of_process();
    inputs.file.clone_from(&common.config);
    // Every verb reads the same files.
    inputs.more = [PROXY_KEYS, TOOL_KEYS].concat();
    inputs.defaults = defaults();
    for setting in &common.set {
        inputs.set(setting, "--set");
    }
    // A flag of its own says more than a general one.
    for (key, value, flag) in named {
        let flag = ((*key).to_owned(), value.clone(), (*flag).to_owned());
        inputs.flags.push(flag);
    }
    inputs
}

/// Every setting there is.
pub fn keys() -> Vec<Key> {
    let own = [PROXY_KEYS, TOOL_KEYS].concat();
    KEYS.iter().copied().chain(own).collect()
}

/// What the settings of the proxy are where nobody says anything.
pub fn defaults() -> Table {
    let mut proxy = Table::try_from(ProxyConfig::default()).unwrap_or_default();
    // The preset of the proxy is that of everything else.
    proxy.remove("preset");
    Table::from_iter([("proxy".to_owned(), Value::Table(proxy))])
}

/// Who makes connections to other machines, by the settings.
pub fn outgoing(config: &Config) -> Result<Outgoing, Failure> {
    Outgoing::new(&config.network).map_err(|error| {
        let (message, hint) = with_hint(&error.to_string());
        Failure::Input { message, hint }
    })
}

/// Tells of a project's file that is there and is not read.
pub fn warn_of_skipped(common: &Common, terminal: &mut Terminal) {
    if let Some(file) = inputs(common, &[]).skipped_file() {
        terminal.warn(&format!("{file}\nhint: {}", file.hint));
    }
}

/// What to tell of settings that cannot be used.
pub fn failure(error: &ConfigError) -> Failure {
    Failure::Input {
        message: error.to_string(),
        hint: error.hint(),
    }
}
