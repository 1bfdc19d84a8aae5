//! The settings that hold now.

use std::sync::{Arc, PoisonError, RwLock};

use crate::config::ProxyConfig;
use crate::route::Routes;

/// Settings with what is made from them once.
pub(crate) struct Settings {
    /// As they were given.
    pub(crate) config: ProxyConfig,
    /// Where requests go.
    pub(crate) routes: Routes,
}

impl Settings {
    /// Settings that were checked.
    pub(crate) fn new(config: ProxyConfig) -> Self {
        let routes = Routes::new(&config);
        Self { config, routes }
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
