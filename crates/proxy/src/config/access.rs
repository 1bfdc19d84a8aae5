//! Who may use the proxy, how users are told apart, and what each may use.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Secret;

/// The header that counts as a credential only where no other one is presented: clients that
/// keep cookies send those of load balancers, too, and they change in a conversation.
pub(crate) const COOKIE: &str = "cookie";

/// The headers in which clients present a credential to providers and gateways.
const CREDENTIAL_HEADERS: [&str; 23] = [
    "authorization",
    "x-api-key",
    "api-key",
    "apikey",
    "x-apikey",
    "x-goog-api-key",
    "ocp-apim-subscription-key",
    "x-functions-key",
    "x-litellm-api-key",
    "x-litellm-key",
    "cf-aig-authorization",
    "cf-access-client-id",
    "cf-access-client-secret",
    "x-portkey-api-key",
    "x-portkey-virtual-key",
    "helicone-auth",
    "x-bf-vk",
    "x-tfy-api-key",
    "x-auth-token",
    "x-access-token",
    "private-token",
    "x-serverless-authorization",
    COOKIE,
];

/// What a token allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenRole {
    /// Requests to models, `/v1/compress` and `/v1/retrieve`.
    #[default]
    Use,
    /// The same, and `/trimtab/status`, `/metrics` and the dashboard.
    Admin,
}

/// A token with a name, given as it is or as its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedToken {
    /// Whose it is: shown in logs, and part of the tenant.
    pub name: String,
    /// What it allows.
    #[serde(default)]
    pub role: TokenRole,
    /// The token itself: at least 128 bits.
    #[serde(default)]
    pub token: Option<Secret>,
    /// Or the SHA-256 of it, as 64 hexadecimal digits.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// How users are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenancySettings {
    /// The headers whose values make a tenant.
    pub credential_headers: Vec<String>,
    /// A header that tells users with one credential apart; empty for none.
    pub user_header: String,
}

impl Default for TenancySettings {
    fn default() -> Self {
        Self {
            credential_headers: CREDENTIAL_HEADERS.map(str::to_owned).to_vec(),
            user_header: String::new(),
        }
    }
}

/// The files for TLS on incoming connections, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate, followed by those that it was issued under.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Where it is written down who did what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSettings {
    /// A file that gets one JSON line for each request and each order; none if not set.
    pub file: Option<PathBuf>,
}

/// What one tenant may use; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantQuotas {
    /// Requests per minute.
    pub requests_per_minute: u64,
    /// Bytes of request bodies per minute.
    pub input_bytes_per_minute: u64,
    /// Requests at the same time.
    pub concurrent_requests: u64,
    /// Bytes of outputs in the store; above it nothing more is stored.
    pub store_bytes: u64,
}

impl TenantQuotas {
    /// True if there is a limit on requests.
    pub(crate) fn limits_requests(&self) -> bool {
        self.requests_per_minute > 0
            || self.input_bytes_per_minute > 0
            || self.concurrent_requests > 0
    }
}
