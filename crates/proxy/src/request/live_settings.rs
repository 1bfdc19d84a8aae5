//! The settings that hold now.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use trimtab_engine::policy::{PRESETS, Policy};

use crate::access::TokenTable;
use crate::config::ProxyConfig;
use crate::config::policies;
use crate::routing::route::Routes;

/// Settings with what is made from them once.
pub(crate) struct Settings {
    /// As they were given.
    pub(crate) config: ProxyConfig,
    /// Where requests go.
    pub(crate) routes: Routes,
    /// The tokens that let requests in.
    pub(crate) tokens: TokenTable,
    /// All policies by name.
    policies: HashMap<String, Arc<Policy>>,
}

impl Settings {
    /// Settings that were checked.
    pub(crate) fn new(config: ProxyConfig) -> Self {
        let routes = Routes::new(&config);
        let names = PRESETS.iter().map(|preset| preset.name);
        let names = names.chain(config.policies.keys().map(String::as_str));
        let found = names.filter_map(|name| {
            let policy = policies::find(name, &config.policies).ok()?;
            Some((name.to_owned(), Arc::new(policy)))
        });
        let policies = found.collect();
        let tokens = TokenTable::new(&config);
        Self {
            config,
            routes,
            tokens,
            policies,
        }
    }

    /// The policy of that name.
    pub(crate) fn policy(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies.get(name)
    }
}

/// The settings that hold now. A request keeps those that held when it came.
pub(crate) struct Current(RwLock<Arc<Settings>>);

impl Current {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(RwLock::new(Arc::new(settings)))
    }

    pub(crate) fn get(&self) -> Arc<Settings> {
        // What is behind the lock is replaced as a whole, so it is good even if a writer died.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, settings: Settings) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }
}
