//! State and settings that all requests share: the store, the caches, the limits, and the
//! settings that apply now.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use http::Method;
use tokio::sync::Semaphore;
use trimtab_engine::policy::{PRESETS, Policy};
use trimtab_wire::catalogue::Catalogue;

use crate::access::{AccessState, StoreUse, TokenTable};
use crate::config::{ProxyConfig, policies};
use crate::conversation::store_state::StoreState;
use crate::history::{CallHistory, SentFilms};
use crate::models::ModelTable;
use crate::models::learned::{self, LearnedModels};
use crate::records::metrics::Metrics;
use crate::records::record::{PendingRecord, ProxyReport, Recorder};
use crate::resources::deadline;
use crate::resources::memory_budget::MemoryBudget;
use crate::resources::notices::{LimitWarnings, Notices};
use crate::response_chains::ResponseChains;
use crate::routing::route::RoutingTable;
use crate::transport::connections::Connections;
use crate::transport::upstream_client::UpstreamClient;

/// The extra bytes that caches free when memory runs short.
const SPARE_ROOM: usize = 4 << 20;
/// How many bodies are decompressed at the same time.
const UNPACKED_AT_A_TIME: usize = 4;

/// The checks of `trimtab doctor`, as JSON. They may block.
pub(crate) type DoctorChecks = Box<dyn Fn() -> serde_json::Value + Send + Sync>;

/// The state that all requests share.
pub(crate) struct SharedState {
    /// The current settings.
    pub(crate) settings: CurrentSettings,
    /// The store, and whether it can be used.
    pub(crate) store_state: Arc<StoreState>,
    /// Connections to upstreams.
    pub(crate) client: UpstreamClient,
    /// Permits to plan, or to wait for it.
    pub(crate) plans: Arc<Semaphore>,
    /// Permits for concurrent work on processors.
    pub(crate) turns: Arc<Semaphore>,
    /// The state of access control.
    pub(crate) access: AccessState,
    /// The size of each tenant's outputs in the store.
    pub(crate) store_use: StoreUse,
    /// Limits and calibration of models.
    pub(crate) models: ModelTable,
    /// The connections of clients.
    pub(crate) connections: Arc<Connections>,
    /// The memory budget of requests and caches.
    pub(crate) memory: MemoryBudget,
    /// Warnings about requests that a limit keeps unmanaged.
    pub(crate) limit_warnings: LimitWarnings,
    /// Conversations in Responses that providers keep.
    pub(crate) chains: Arc<ResponseChains>,
    /// Permits to decompress a body.
    pub(crate) unpacking: Semaphore,
    /// The recent calls, for the dashboard.
    pub(crate) history: Arc<CallHistory>,
    /// The permit to work for an open dashboard: one at a time leaves the processors to requests.
    pub(crate) screen_turns: Arc<Semaphore>,
    /// The last answers to open dashboards.
    pub(crate) sent_films: SentFilms,
    /// The checks for the dashboard.
    checks: OnceLock<DoctorChecks>,
    /// True once the proxy accepts no more connections.
    pub(crate) is_stopping: AtomicBool,
    book: Arc<Recorder>,
}

impl SharedState {
    pub(crate) fn new(
        settings: CurrentSettings,
        store_state: StoreState,
        client: UpstreamClient,
        catalogue: Catalogue,
        (recorder, history): (Arc<Recorder>, Arc<CallHistory>),
        notices: Notices,
    ) -> Self {
        // What was learned about models is read once, at the start. A store that cannot be read yet
        // only means that it has to be learned again.
        let opened = store_state.readable();
        let learned = opened.and_then(|opened| learned::read(opened.store.as_ref()).ok());
        let learned = learned.unwrap_or_else(|| LearnedModels::new(learned::MODELS));
        let plans = settings.get().config.limits.plans;
        let memory = store_state.memory().clone();
        let store_state = Arc::new(store_state);
        caches_give_way(&memory, &store_state);
        Self {
            settings,
            store_state,
            client,
            plans: Arc::new(Semaphore::new(plans)),
            turns: deadline::worker_permits(),
            access: AccessState::default(),
            store_use: StoreUse::default(),
            models: ModelTable::new(catalogue, learned),
            connections: Arc::default(),
            chains: Arc::new(ResponseChains::new(memory.clone(), notices)),
            memory,
            limit_warnings: LimitWarnings::default(),
            unpacking: Semaphore::new(UNPACKED_AT_A_TIME),
            history,
            screen_turns: Arc::new(Semaphore::new(1)),
            sent_films: SentFilms::default(),
            checks: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            book: recorder,
        }
    }

    /// A new record, which is written when it is dropped.
    pub(crate) fn new_record(&self, method: &Method, path: &str) -> PendingRecord {
        PendingRecord::new(&self.book, method.as_str(), path)
    }

    /// Figures of all requests so far.
    pub(crate) fn report(&self) -> ProxyReport {
        let opened = self.store_state.usable();
        ProxyReport {
            sessions: opened.map_or(0, |opened| opened.client_sessions.len() as u64),
            connections: self.connections.len() as u64,
            memory_bytes: self.memory.used() as u64,
            store: self.store_state.problem(),
            retention: self.store_state.retention_problem(),
            ..self.book.report()
        }
    }
}

impl SharedState {
    /// Sets the checks of the dashboard, once.
    pub(crate) fn set_checks(&self, checks: Option<DoctorChecks>) {
        if let Some(checks) = checks {
            // `Proxy::run` calls this once, so the cell is always empty.
            drop(self.checks.set(checks));
        }
    }

    /// Runs the checks; none if there are none. May block.
    pub(crate) fn checked(&self) -> Option<serde_json::Value> {
        self.checks.get().map(|checks| checks())
    }

    /// Counters and histograms of all requests.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.book.metrics
    }
}

/// Registers the caches as a source of memory: parsed bodies first, because they are the cheapest
/// to rebuild.
fn caches_give_way(memory: &MemoryBudget, store_state: &Arc<StoreState>) {
    // The budget is part of the store's state, so a strong reference here would be a cycle.
    let store_state = Arc::downgrade(store_state);
    memory.when_short(move |missing| {
        let opened = store_state.upgrade().and_then(|state| state.readable());
        if let Some(opened) = opened {
            let freed = opened.parsed_bodies.forget_all();
            // A little more than is missing, so that this is not done for every request.
            opened
                .client_sessions
                .evict((missing + SPARE_ROOM).saturating_sub(freed));
        }
    });
}

/// Settings with everything that is computed from them once.
pub(crate) struct LiveSettings {
    /// The settings as given.
    pub(crate) config: ProxyConfig,
    /// The upstreams.
    pub(crate) routes: RoutingTable,
    /// The valid tokens.
    pub(crate) tokens: TokenTable,
    /// All policies by name.
    policies: HashMap<String, Arc<Policy>>,
}

impl LiveSettings {
    /// Prepares validated settings.
    pub(crate) fn new(config: ProxyConfig) -> Self {
        let routes = RoutingTable::new(&config);
        let names = PRESETS.iter().map(|preset| preset.name);
        let names = names.chain(config.policies.keys().map(String::as_str));
        let found = names.filter_map(|name| {
            // The settings were checked, so every policy is found.
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

    /// The names of all policies.
    pub(crate) fn policy_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.policies.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The policy of that name.
    pub(crate) fn policy(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies.get(name)
    }
}

/// The current settings. A request keeps those of its arrival.
pub(crate) struct CurrentSettings(RwLock<Arc<LiveSettings>>);

impl CurrentSettings {
    pub(crate) fn new(settings: LiveSettings) -> Self {
        Self(RwLock::new(Arc::new(settings)))
    }

    pub(crate) fn get(&self) -> Arc<LiveSettings> {
        // The settings are replaced as a whole, so they are good even if a writer panicked.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, settings: LiveSettings) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }
}
