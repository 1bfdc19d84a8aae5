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
mod endpoints;
mod exchange;
mod models;
mod prefix_cache;
mod records;
mod request;
mod resources;
mod response_chains;
mod routing;
mod server;
mod transport;

pub use access::{NewToken, TlsProblem};
pub use config::{
    AuditSettings, BadSetting, Compaction, ConfigError, Limits, Mode, ModelRule, NamedToken, PORT,
    ProxyConfig, Retention, Secret, Summariser, TenancySettings, TenantQuotas, TlsFiles, TokenRole,
    Upstream,
};
pub use conversation::store_state::Opening;
pub use records::record::{Action, Record, Report, Sink};
pub use server::{Proxy, Running, StartError};
