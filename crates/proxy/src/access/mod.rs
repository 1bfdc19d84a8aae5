//! Access control: who may send a request, which tenant it belongs to, and how many it may send.
//!
//! The checks run in this order: the request must name a host of ours; its token must be valid;
//! without a token it must not come from a foreign web page; the role of the token must allow
//! the endpoint; then the tenant is determined, and its limits apply.

mod connection;
mod credential;
mod host_check;
mod new_token;
mod origin_check;
mod rate_limit;
mod refusal;
pub(crate) mod request_id;
mod store_quota;
mod stream;
mod tenant;
mod tls;
mod token;

use http::request::Parts;

pub(crate) use connection::InboundConnection;
pub(crate) use rate_limit::CountedRequest;
pub(crate) use refusal::AccessRefusal;
pub(crate) use store_quota::{SESSIONS, StoreUse, retention_request};
pub(crate) use tenant::{PresentedIdentity, Tenant, TenantKeys};
pub(crate) use tls::{InboundTls, accept_tls, unusable_files_notice};
pub(crate) use token::TokenTable;

pub use new_token::NewToken;
pub use tls::TlsProblem;

use crate::config::{ProxyConfig, TokenRole};
use crate::routing::own_endpoint::OwnEndpoint;
use rate_limit::TenantRates;
use token::AdmittedToken;

/// The state of access control: the use of quotas.
#[derive(Default)]
pub(crate) struct AccessState {
    rates: TenantRates,
}

/// The sender of an admitted request.
pub(crate) struct RequestCaller {
    /// Its tenant, or why it has none. Without a tenant nothing of the request is stored.
    pub(crate) tenant: Result<Tenant, UnknownTenant>,
    /// Its token.
    pub(crate) token: Option<AdmittedToken>,
    /// Counts the request against its quota until this is dropped.
    pub(crate) counted: Option<CountedRequest>,
}

/// Why a request has no tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnknownTenant {
    /// The explanation for the log.
    pub(crate) detail: String,
}

impl UnknownTenant {
    fn with_header(name: &str) -> Self {
        let detail = format!(
            "no known credential, and the header {name}; \
             tenancy.credential_headers names those that count"
        );
        Self { detail }
    }

    fn without_store() -> Self {
        let detail = "the store cannot be used".to_owned();
        Self { detail }
    }

    fn of_other_user() -> Self {
        let detail = "no credential, and not from a process of our own user".to_owned();
        Self { detail }
    }
}

/// Everything that access control needs to check a request.
pub(crate) struct AccessCheck<'a> {
    pub(crate) state: &'a AccessState,
    pub(crate) config: &'a ProxyConfig,
    pub(crate) tokens: &'a TokenTable,
    /// The keys that separate tenants; none without a store.
    pub(crate) keys: Option<&'a TenantKeys>,
    pub(crate) connection: &'a InboundConnection,
}

impl AccessCheck<'_> {
    /// Admits or refuses a request. Its token is removed from the headers.
    pub(crate) fn admit(
        &self,
        parts: &mut Parts,
        body_bytes: Option<u64>,
    ) -> Result<RequestCaller, AccessRefusal> {
        host_check::check(
            self.config,
            self.connection.local,
            &parts.uri,
            &parts.headers,
        )?;
        let endpoint = OwnEndpoint::of_path(parts.uri.path());
        let token = self.token(parts, endpoint)?;
        // No token at this point means that none is set: then there are no roles.
        let is_admin = token.as_ref().is_none_or(|it| it.role == TokenRole::Admin);
        let needs_admin = matches!(
            endpoint,
            Some(OwnEndpoint::Status | OwnEndpoint::Metrics | OwnEndpoint::Dashboard)
        );
        if needs_admin && !is_admin {
            return Err(AccessRefusal::role());
        }
        if endpoint == Some(OwnEndpoint::Dashboard) {
            self.check_dashboard(parts, token.is_some())?;
        }
        if needs_admin || endpoint == Some(OwnEndpoint::Health) {
            // These endpoints serve the operator and not a tenant, so no quota applies.
            return Ok(RequestCaller {
                tenant: Err(UnknownTenant::default()),
                token,
                counted: None,
            });
        }
        let tenant = self.tenant(parts, token.as_ref());
        let counted = self.counted(&tenant, body_bytes)?;
        Ok(RequestCaller {
            tenant,
            token,
            counted,
        })
    }

    /// Checks a request to the dashboard, which shows all conversations. Browsers send its password
    /// automatically, so the origin is checked even with a valid token. Without a token only our
    /// own user is admitted.
    fn check_dashboard(&self, parts: &Parts, has_token: bool) -> Result<(), AccessRefusal> {
        let host = host_check::host(&parts.uri, &parts.headers).unwrap_or_default();
        let called = (self.connection.scheme(), host);
        origin_check::check(self.config, called, &parts.headers)?;
        if has_token || self.connection.is_own_user {
            return Ok(());
        }
        Err(AccessRefusal::other_user())
    }

    /// The token of a request. It is required if any is set.
    fn token(
        &self,
        parts: &mut Parts,
        endpoint: Option<OwnEndpoint>,
    ) -> Result<Option<AdmittedToken>, AccessRefusal> {
        let tokens = self.tokens;
        let carried = tokens.carried(&parts.headers, endpoint.is_some());
        if let Some((token, header)) = carried {
            // The token is ours: an upstream must never see it.
            parts.headers.remove(header);
            return Ok(Some(token));
        }
        // A page cannot know a token, so only requests without a valid one are checked for their
        // origin.
        let host = host_check::host(&parts.uri, &parts.headers).unwrap_or_default();
        let called = (self.connection.scheme(), host);
        origin_check::check(self.config, called, &parts.headers)?;
        if !tokens.is_required() || endpoint == Some(OwnEndpoint::Health) {
            return Ok(None);
        }
        Err(AccessRefusal::token())
    }

    /// The tenant of a request: its named token; else, behind an access token, our own user of this
    /// machine; else its credentials. A request without any of these has one only if nothing
    /// suggests that several users are behind it, and, without any token, only if it comes from a
    /// process of our own user.
    fn tenant(
        &self,
        parts: &Parts,
        token: Option<&AdmittedToken>,
    ) -> Result<Tenant, UnknownTenant> {
        let tenancy = &self.config.tenancy;
        let is_named = token.is_some_and(AdmittedToken::is_named);
        let mut credentials = credential::presented_credentials(tenancy, &parts.headers);
        let sign = credential::foreign_sign(tenancy, &parts.headers);
        let is_local = self.connection.is_own_user && sign.is_none();
        if is_named || (is_local && credential::is_access_token(&credentials)) {
            // The rest would change when a client renews its token in a conversation.
            credentials.clear();
        } else if credentials.is_empty() {
            // Nothing in this request tells one user from another, because the default token is
            // shared. Two users would get one tenant, and could read each other's outputs.
            if let Some(name) = sign {
                return Err(UnknownTenant::with_header(name));
            }
            if token.is_none() && !is_local {
                return Err(UnknownTenant::of_other_user());
            }
        }
        let keys = self.keys.ok_or_else(UnknownTenant::without_store)?;
        Ok(keys.tenant(&PresentedIdentity {
            token: token.map(|token| &*token.name),
            user: credential::user_header(tenancy, &parts.headers),
            credentials,
        }))
    }

    /// Counts a request against the quota of its tenant, or of its address.
    fn counted(
        &self,
        tenant: &Result<Tenant, UnknownTenant>,
        body_bytes: Option<u64>,
    ) -> Result<Option<CountedRequest>, AccessRefusal> {
        let quotas = &self.config.quotas;
        if !quotas.limits_requests() {
            return Ok(None);
        }
        let address = self.connection.peer.ip().to_string();
        // Without a tenant the address is counted, so that leaving out the credential is no way
        // around the limit.
        let name = match tenant {
            Ok(tenant) => tenant.as_str(),
            Err(_) => &address,
        };
        let rates = &self.state.rates;
        rates.begin(name, quotas, body_bytes.unwrap_or(0)).map(Some)
    }
}
