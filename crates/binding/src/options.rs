//! The options of a session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use trimtab::config::{Config, ConfigInputs};
use trimtab::model::Dialect;
use trimtab::session::{Limits, Setup};
use trimtab::store::{FolderStore, MemoryStore, Store};
use trimtab::wire::catalogue::Catalogue;

use crate::BindingError;

/// The options, as a host writes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionOptions {
    /// The name of the session in the store.
    #[serde(default = "default_session")]
    pub(crate) session: String,
    /// The shape of the requests.
    #[serde(default)]
    dialect: Dialect,
    #[serde(default)]
    preset: Option<String>,
    /// The folder of the store; in memory if missing.
    #[serde(default)]
    store: Option<PathBuf>,
    /// The model, whose window is looked up in the catalogue.
    #[serde(default)]
    model: Option<String>,
    /// The window of the model in tokens.
    #[serde(default)]
    window: Option<u64>,
    /// The longest answer in tokens.
    #[serde(default)]
    max_output: Option<u64>,
    /// False if the model does not have the retrieval tools.
    #[serde(default = "default_retrieval")]
    retrieval: bool,
    /// Other settings, by name.
    #[serde(default)]
    settings: BTreeMap<String, Value>,
}

fn default_session() -> String {
    "default".to_owned()
}

fn default_retrieval() -> bool {
    true
}

impl SessionOptions {
    pub(crate) fn read(json: &[u8]) -> Result<Self, BindingError> {
        let unreadable = |why: serde_json::Error| BindingError::Options(why.to_string());
        // By way of an object: a struct would take a list as well.
        let object: Map<String, Value> = serde_json::from_slice(json).map_err(unreadable)?;
        serde_json::from_value(Value::Object(object)).map_err(unreadable)
    }

    /// True if they name a store.
    pub(crate) fn names_store(&self) -> bool {
        self.store.is_some()
    }

    /// The store that they name.
    pub(crate) fn open_store(&self) -> Result<Arc<dyn Store>, BindingError> {
        Ok(match &self.store {
            Some(folder) => Arc::new(FolderStore::open(folder)?),
            None => Arc::new(MemoryStore::new()),
        })
    }

    /// What the session is opened with. Files and environment are not read: a host says what it
    /// wants.
    pub(crate) fn setup(&self) -> Result<Setup, BindingError> {
        let mut inputs = ConfigInputs::default();
        if let Some(preset) = &self.preset {
            inputs.set(&format!("preset={preset}"), "preset");
        }
        for (key, value) in &self.settings {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let flag = format!("settings.{key}");
            inputs.flags.push((key.clone(), value, flag));
        }
        let config = Config::load(&inputs)?;
        let mut setup = Setup::new(config.policy.clone());
        setup.dialect = self.dialect;
        setup.limits = self.limits(&config);
        config.check(setup.limits.window)?;
        if !self.retrieval {
            setup.retrieval = None;
        }
        Ok(setup)
    }

    fn limits(&self, config: &Config) -> Limits {
        let known = || {
            let found = Catalogue::embedded().find(self.model.as_deref()?).ok()?;
            Some(found.model.call_limit())
        };
        let window = self.window.or(config.window).or_else(known);
        let usual = window.map(Limits::usual_answer);
        Limits {
            window,
            max_output: self.max_output.or(config.max_output).or(usual),
            bytes: None,
        }
    }
}
