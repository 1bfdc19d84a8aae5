//! HTTP in, HTTP out: any agent, any language, one base URL.
//!
//! A [`Proxy`] stands between agents and model servers. It passes everything, and of the
//! requests that it understands it manages the window: outputs are stored whole and shown
//! short, old rounds are compacted before they overflow, an overflow is recovered from. What
//! it does not understand, what is too large, and whatever goes wrong on our side passes as it
//! came.

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
    TenantQuotas, TenantRule, TlsFiles, TokenRole, UpstreamConfig,
};
pub use conversation::store_state::StoreOpening;
pub use records::plan_note::PlanNote;
pub use records::record::{ProxyReport, Record, RecordAction, RecordSink};
pub use records::savings::{CallMoney, Savings, SavingsTotal};
pub use server::{Proxy, RunningProxy, StartError};
pub use telemetry::OtlpTarget;
