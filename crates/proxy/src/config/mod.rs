//! The settings of a proxy.
//!
//! Every setting has a default; a file names only what differs. An error names the setting, its
//! value and what is allowed.

mod access;
mod access_check;
mod check;
mod limits;
pub(crate) mod policies;
mod retention;
mod secret;
mod upstream;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use access::COOKIE;
pub use access::{AuditSettings, NamedToken, TenancySettings, TenantQuotas, TlsFiles, TokenRole};
pub use limits::ProxyLimits;
pub use retention::StoreRetention;
pub use secret::Secret;
pub use trimtab_engine::policy::BadSetting;
pub(crate) use upstream::address;
pub use upstream::{ModelRule, SummariserConfig, UpstreamConfig};

/// The default port.
pub const PORT: u16 = 8787;

/// The mode for requests that call a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyMode {
    /// Their windows are managed.
    #[default]
    On,
    /// Everything is planned and reported, and the request is sent unchanged.
    Observe,
    /// They pass unchanged.
    Bypass,
}

/// Who writes summaries, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryMode {
    /// A model is asked in the background; requests do not wait for it.
    #[default]
    Background,
    /// A model is asked, and the request that needs the summary waits for it.
    Wait,
    /// No model is asked: the deterministic summary is used.
    Off,
}

/// The settings of a proxy.
///
/// ```
/// use trimtab_proxy::ProxyConfig;
///
/// let config = ProxyConfig::from_toml(r#"
///     [[upstreams]]
///     name = "house"
///     url = "http://127.0.0.1:9000"
/// "#)?;
/// assert_eq!(config.listen.port(), 8787);
///
/// let error = ProxyConfig::from_toml("holdout = 2.0").unwrap_err();
/// assert!(error.to_string().contains("holdout = 2 is not valid; allowed: 0 to 1"));
/// # Ok::<_, trimtab_proxy::ProxyConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProxyConfig {
    /// The listening address. An address that others can reach needs a token.
    pub listen: SocketAddr,
    /// A token called `default` with the role `admin`. If any token is set, every request must
    /// carry one in the header `x-trimtab-token`.
    pub token: Option<Secret>,
    /// Additional tokens, each with a name and a role.
    pub tokens: Vec<NamedToken>,
    /// Additional host names of this proxy, besides those of this machine.
    pub hosts: Vec<String>,
    /// Origins of web pages and apps that may use this proxy without a token.
    pub origins: Vec<String>,
    /// How users are distinguished.
    pub tenancy: TenancySettings,
    /// The files for TLS on incoming connections; plain HTTP without them.
    pub tls: Option<TlsFiles>,
    /// The audit log.
    pub audit: AuditSettings,
    /// The quotas of a tenant.
    pub quotas: TenantQuotas,
    /// The mode for requests that call a model.
    pub mode: ProxyMode,
    /// The preset, or a policy of `policies`, that decides what goes into the window.
    pub preset: String,
    /// Policies by name: a `preset` and the settings that differ from it.
    pub policies: BTreeMap<String, toml::Table>,
    /// The share of sessions that is left unmanaged for comparison: 0 to 1.
    pub holdout: f64,
    /// Whether the retrieval tools are offered if a window contains a ref.
    pub retrieval: bool,
    /// Who writes summaries, and when.
    pub compaction: SummaryMode,
    /// A separate model for summaries, instead of the client's own.
    pub summariser: Option<SummariserConfig>,
    /// The upstreams; the providers' official addresses if none is set.
    pub upstreams: Vec<UpstreamConfig>,
    /// Rules for single models; the first match wins.
    pub models: Vec<ModelRule>,
    /// The limits.
    pub limits: ProxyLimits,
    /// The retention of sessions in the store.
    pub retention: StoreRetention,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
            token: None,
            tokens: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            tenancy: TenancySettings::default(),
            tls: None,
            audit: AuditSettings::default(),
            quotas: TenantQuotas::default(),
            mode: ProxyMode::On,
            preset: "steady".to_owned(),
            policies: BTreeMap::new(),
            holdout: 0.0,
            retrieval: true,
            compaction: SummaryMode::Background,
            summariser: None,
            upstreams: Vec::new(),
            models: Vec::new(),
            limits: ProxyLimits::default(),
            retention: StoreRetention::default(),
        }
    }
}

/// Why settings were rejected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProxyConfigError {
    /// The text is not TOML, or contains an unknown setting.
    #[error("the settings cannot be read: {0}")]
    Syntax(String),
    /// Settings have invalid values.
    #[error("{}", list(.0))]
    Bad(Vec<BadSetting>),
}

fn list(bad: &[BadSetting]) -> String {
    let lines: Vec<String> = bad.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl ProxyConfig {
    /// Reads and checks settings.
    pub fn from_toml(text: &str) -> Result<Self, ProxyConfigError> {
        let config: Self =
            toml::from_str(text).map_err(|error| ProxyConfigError::Syntax(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// The settings for a single upstream that serves everything.
    pub fn to_upstream(url: impl Into<String>) -> Self {
        Self {
            upstreams: vec![UpstreamConfig::new("upstream", url)],
            ..Self::default()
        }
    }

    /// The upstreams in use: the configured ones, else the providers' official addresses.
    pub fn upstreams(&self) -> Vec<UpstreamConfig> {
        if self.upstreams.is_empty() {
            UpstreamConfig::providers()
        } else {
            self.upstreams.clone()
        }
    }

    /// Turns these into the settings of a private proxy for one client on this machine. Nobody else
    /// knows its address, so tokens, TLS and quotas are removed.
    pub fn make_private(&mut self) {
        self.token = None;
        self.tokens.clear();
        self.tls = None;
        self.quotas = TenantQuotas::default();
    }

    /// Validates the settings. The error lists all problems.
    pub fn check(&self) -> Result<(), ProxyConfigError> {
        let bad = check::check(self);
        if bad.is_empty() {
            Ok(())
        } else {
            Err(ProxyConfigError::Bad(bad))
        }
    }
}
