//! The session that a request belongs to, as far as its client names one: in a header of ours, in
//! a header of a known client, or in the body.

use http::HeaderMap;
use serde::Deserialize;
use trimtab_wire::scan::BodyScan;

use crate::access::{Tenant, TenantKeys};
use crate::transport::headers;

/// The headers in which known clients name their session, in the order in which they count.
const HEADERS: [&str; 6] = [
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "conversation-id",
    "conversation_id",
];
/// The longest name that is used as it is.
const LONGEST: usize = 128;

/// The name that a client gives its session, and the place where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientSessionHint {
    /// The place. The same name in two places means two sessions.
    pub(crate) from: &'static str,
    /// The name.
    pub(crate) name: String,
}

impl ClientSessionHint {
    fn new(from: &'static str, name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        (!name.trim().is_empty()).then_some(Self { from, name })
    }

    /// The name of the session within a tenant.
    pub(crate) fn session_name(&self, keys: &TenantKeys, tenant: &Tenant) -> String {
        if self.is_readable() {
            self.name.clone()
        } else {
            keys.name(tenant, &[self.from.as_bytes(), self.name.as_bytes()])
        }
    }

    /// True if a person chose the name and may want to see it again.
    fn is_readable(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        // Only our own header holds a name that a person chose. Ids of clients are hashed.
        self.from == headers::SESSION.as_str()
            && self.name.len() <= LONGEST
            && self.name.bytes().all(plain)
    }
}

/// The session that a request names in its headers, or else in its body.
pub(crate) fn find(headers: &HeaderMap, scan: &BodyScan<'_>) -> Option<ClientSessionHint> {
    in_headers(headers).or_else(|| in_body(scan))
}

/// The session that headers name: our own header, or else those of known clients.
pub(crate) fn in_headers(headers: &HeaderMap) -> Option<ClientSessionHint> {
    if let Some(name) = headers::header_text(headers, &headers::SESSION) {
        return ClientSessionHint::new("x-trimtab-session", name);
    }
    for from in HEADERS {
        let value = headers.get(from).and_then(|value| value.to_str().ok());
        if let Some(hint) = value.and_then(|name| ClientSessionHint::new(from, name)) {
            return Some(hint);
        }
    }
    None
}

fn in_body(scan: &BodyScan<'_>) -> Option<ClientSessionHint> {
    let session = &scan.request().session;
    let user = scan.string(session.metadata_user_id);
    // A plain `user_id` names a person and not a session, so it does not count.
    let by_user = user.and_then(|user| session_of_user(&user));
    by_user
        .and_then(|name| ClientSessionHint::new("metadata.user_id", name))
        .or_else(|| {
            ClientSessionHint::new("prompt_cache_key", scan.string(session.prompt_cache_key)?)
        })
}

/// The session in a `user_id`: JSON with a `session_id`, or a name that ends with it.
fn session_of_user(user: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct UserMetadata {
        session_id: String,
    }
    if user.trim_start().starts_with('{') {
        let user: UserMetadata = serde_json::from_str(user).ok()?;
        return Some(user.session_id);
    }
    // Older versions of Claude Code write `user_ID_account_ID_session_ID`, newer ones JSON.
    let (_, session) = user.rsplit_once("_session_")?;
    Some(session.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Dialect;

    fn hint(pairs: &[(&'static str, &'static str)], body: &str) -> Option<(&'static str, String)> {
        let headers = headers::of_pairs(pairs);
        let scan = BodyScan::new(body.as_bytes(), Dialect::Messages).unwrap();
        find(&headers, &scan).map(|hint| (hint.from, hint.name))
    }

    #[test]
    fn known_clients_name_their_sessions() {
        let empty = r#"{"messages": []}"#;
        let ours = ("x-trimtab-session", "mine");
        let claude = ("x-claude-code-session-id", "cc-1");
        let named = |from, name: &str| Some((from, name.to_owned()));
        assert_eq!(
            hint(&[claude, ours], empty),
            named("x-trimtab-session", "mine")
        );
        assert_eq!(
            hint(&[claude], empty),
            named("x-claude-code-session-id", "cc-1")
        );
        assert_eq!(
            hint(&[("session-id", "codex-1")], empty),
            named("session-id", "codex-1")
        );
        assert_eq!(
            hint(&[("x-session-id", "oc-1")], empty),
            named("x-session-id", "oc-1")
        );
        assert_eq!(hint(&[], empty), None);
        assert_eq!(hint(&[("x-session-id", " ")], empty), None);
        let user = r#"{"messages": [], "metadata": {"user_id": "{\"device_id\":\"d\",\"session_id\":\"s-9\"}"}}"#;
        assert_eq!(hint(&[], user), named("metadata.user_id", "s-9"));
        let old = r#"{"messages": [], "metadata": {"user_id": "user_ab_account__session_s-8"}}"#;
        assert_eq!(hint(&[], old), named("metadata.user_id", "s-8"));
        let key = r#"{"messages": [], "prompt_cache_key": "k", "metadata": {"user_id": "bob"}}"#;
        assert_eq!(hint(&[], key), named("prompt_cache_key", "k"));
    }

    #[test]
    fn only_plain_names_are_shown_as_they_are() {
        let shown = |name: &str| {
            ClientSessionHint::new("x-trimtab-session", name)
                .unwrap()
                .is_readable()
        };
        assert!(shown("project-7.main"));
        assert!(!shown("../../etc") && !shown("a b") && !shown(&"x".repeat(200)));
    }
}
