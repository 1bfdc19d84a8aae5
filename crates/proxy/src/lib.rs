//! HTTP in, HTTP out: any agent, any language, one base URL.
//!
//! A [`Proxy`] stands between agents and model servers. It passes everything, and of the
//! requests that it understands it manages the window: outputs are stored whole and shown
//! short, old rounds are compacted before they overflow, an overflow is recovered from. What
//! it does not understand, what is too large, and whatever goes wrong on our side passes as it
//! came.

mod access;
mod answer;
mod aside;
mod asked;
mod body;
mod branch;
mod carried;
mod chains;
mod client;
mod client_body;
mod config;
mod connections;
mod counted;
mod cut;
mod deadline;
mod decode;
mod events;
mod exchange;
mod family;
mod fork;
mod hashed;
mod headers;
mod hidden;
mod hints;
mod keeper;
mod kept;
mod learned;
mod ledger;
mod look;
mod manage;
mod memory_budget;
mod memos;
mod models;
mod noted;
mod notices;
mod ours;
mod own;
mod plan;
mod policy;
mod prints;
mod progress;
mod record;
mod renewed;
mod reserved_buffer;
mod retrieve;
mod route;
mod server;
mod service;
mod settings;
mod spoken;
mod store_state;
mod summary;
mod token_fit;
mod tunnel;
mod unwritten;
mod watch;
mod watched_body;
mod watched_stream;
mod whole;

pub use access::{NewToken, TlsProblem};
pub use config::{
    AuditSettings, BadSetting, Compaction, ConfigError, Limits, Mode, ModelRule, NamedToken, PORT,
    ProxyConfig, Retention, Secret, Summariser, TenancySettings, TenantQuotas, TlsFiles, TokenRole,
    Upstream,
};
pub use record::{Action, Record, Report, Sink};
pub use server::{Proxy, Running, StartError};
pub use store_state::Opening;
