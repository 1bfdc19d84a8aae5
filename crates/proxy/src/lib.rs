//! An HTTP proxy that manages the windows of agents in any language: they only set a base URL.
//!
//! A [`Proxy`] runs between agents and model servers. It forwards all requests, and manages the
//! window of those that it understands: outputs are stored in full and shown shortened, old rounds
//! are compacted before they overflow, and overflows are recovered from. A request that it does
//! not understand, that is too large, or that something fails for passes unchanged.

mod access;
mod answer;
mod config;
mod conversation;
mod dashboard;
mod endpoints;
mod exchange;
mod history;
mod models;
mod prefix_cache;
mod records;
mod request;
mod resources;
mod response_chains;
mod routing;
mod server;
mod telemetry;
mod transport;

pub use access::{NewToken, TlsProblem};
pub use config::{
    AuditSettings, BadSetting, ModelRule, NamedToken, PORT, ProxyConfig, ProxyConfigError,
    ProxyLimits, ProxyMode, Secret, StoreRetention, SummariserConfig, SummaryMode, TenancySettings,
    TenantQuotas, TlsFiles, TokenRole, UpstreamConfig,
};
pub use conversation::store_state::StoreOpening;
pub use records::plan_note::PlanNote;
pub use records::record::{ProxyReport, Record, RecordAction, RecordSink, SentBefore};
pub use records::savings::{CallMoney, Savings, SavingsTotal};
pub use resources::notices::NoticeLevel;
pub use server::{Proxy, RunningProxy, StartError};
pub use telemetry::OtlpTarget;
