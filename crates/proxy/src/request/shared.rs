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
use crate::history::CallHistory;
use crate::models::{ModelTable, learned};
use crate::records::metrics::Metrics;
use crate::records::record::{PendingRecord, ProxyReport, Recorder};
use crate::resources::deadline;
use crate::resources::memory_budget::MemoryBudget;
use crate::resources::notices::Notices;
use crate::response_chains::ResponseChains;
use crate::routing::route::RoutingTable;
use crate::transport::connections::Connections;
use crate::transport::upstream_client::UpstreamClient;

/// Bytes that caches give back beyond what is needed when memory runs short.
const SPARE_ROOM: usize = 4 << 20;
/// How many bodies are decompressed at the same time. That takes only processor time.
const UNPACKED_AT_A_TIME: usize = 4;

/// Checks of the operator's, as JSON. They may wait.
pub(crate) type DoctorChecks = Box<dyn Fn() -> serde_json::Value + Send + Sync>;

/// What all requests share.
pub(crate) struct SharedState {
    /// The settings that hold now.
    pub(crate) settings: CurrentSettings,
    /// Where everything is kept, if that can be used now.
    pub(crate) store_state: Arc<StoreState>,
    /// Connections to upstreams.
    pub(crate) client: UpstreamClient,
    /// Permits to plan, or to wait for it.
    pub(crate) plans: Arc<Semaphore>,
    /// Turns of those that plan.
    pub(crate) turns: Arc<Semaphore>,
    /// What is remembered of who asks.
    pub(crate) access: AccessState,
    /// How much tenants have in the store.
    pub(crate) store_use: StoreUse,
    /// What is known of models.
    pub(crate) models: ModelTable,
    /// The connections of clients.
    pub(crate) connections: Arc<Connections>,
    /// What requests and caches may take of the memory.
    pub(crate) memory: MemoryBudget,
    /// Conversations that providers keep.
    pub(crate) chains: Arc<ResponseChains>,
    /// Permits to unpack a body.
    pub(crate) unpacking: Semaphore,
    /// What happened lately, for the dashboard.
    pub(crate) history: Arc<CallHistory>,
    /// What the operator's checks say, for the dashboard.
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
            models: ModelTable::new(catalogue, learned.unwrap_or_default()),
            connections: Arc::default(),
            chains: Arc::new(ResponseChains::new(memory.clone(), notices)),
            memory,
            unpacking: Semaphore::new(UNPACKED_AT_A_TIME),
            history,
            checks: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            book: recorder,
        }
    }

    /// A record of a request of our own, written when it is dropped.
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
            ..self.book.report()
        }
    }
}

impl SharedState {
    /// Sets the operator's checks, once.
    pub(crate) fn set_checks(&self, checks: Option<DoctorChecks>) {
        if let Some(checks) = checks {
            // `Proxy::run` calls this once, so the cell is always empty.
            drop(self.checks.set(checks));
        }
    }

    /// What the operator's checks say now; none if there are none. May wait.
    pub(crate) fn checked(&self) -> Option<serde_json::Value> {
        self.checks.get().map(|checks| checks())
    }

    /// Counters and histograms of all requests.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.book.metrics
    }
}

/// Lets the caches give memory back when it runs short: parsed bodies first, because they are the
/// easiest to make again.
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

/// Settings with what is made from them once.
pub(crate) struct LiveSettings {
    /// As they were given.
    pub(crate) config: ProxyConfig,
    /// Where requests go.
    pub(crate) routes: RoutingTable,
    /// The tokens that let requests in.
    pub(crate) tokens: TokenTable,
    /// All policies by name.
    policies: HashMap<String, Arc<Policy>>,
}

impl LiveSettings {
    /// Settings that were checked.
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

/// The settings that hold now. A request keeps those that held when it came.
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
