//! The settings of a run: flags, environment, files and preset.

use trimtab::config::{Config, ConfigError, Inputs};

use crate::args::Common;
use crate::exit::Failure;
use crate::proxy;
use crate::verbs::chat;

/// Resolves the settings; `named` are flags of the verb itself: setting, value, flag.
pub fn load(common: &Common, named: &[(&str, String, &str)]) -> Result<Config, Failure> {
    Config::load(&inputs(common, named)).map_err(|error| failure(&error))
}

/// Where the settings of a run are looked for.
pub fn inputs(common: &Common, named: &[(&str, String, &str)]) -> Inputs {
    let mut inputs = Inputs::of_process();
    inputs.file.clone_from(&common.config);
    // Every verb reads the same files.
    inputs.more = [proxy::settings::KEYS, chat::KEYS].concat();
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

/// What to tell of settings that cannot be used.
pub fn failure(error: &ConfigError) -> Failure {
    Failure::Input {
        message: error.to_string(),
        hint: error.hint(),
    }
}
