//! Settings of access: tokens, tenants, TLS, the audit log and quotas.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Secret;

/// The header that counts as a credential only if there is no other one. Clients also send the
/// cookies of load balancers, which change during a conversation.
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

/// The role of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenRole {
    /// Requests to models, `/v1/compress` and `/v1/retrieve`.
    #[default]
    Use,
    /// The same, and `/trimtab/status`, `/metrics` and the dashboard.
    Admin,
}

/// A token with a name, given in plain text or as a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedToken {
    /// Its name, which appears in logs and is part of the tenant.
    pub name: String,
    /// Its role.
    #[serde(default)]
    pub role: TokenRole,
    /// The token, with at least 128 bits.
    #[serde(default)]
    pub token: Option<Secret>,
    /// Or its SHA-256, as 64 hexadecimal digits.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// How users are distinguished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenancySettings {
    /// The headers whose values identify a tenant.
    pub credential_headers: Vec<String>,
    /// A header that distinguishes users with the same credential; empty for none.
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
    /// The certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The settings of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSettings {
    /// A file that gets one JSON line per request; no log if unset.
    pub file: Option<PathBuf>,
}

/// The quotas of a tenant; 0 means no limit.
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
