//! The credentials that the headers of a request present, and headers that hint at several users
//! behind one connection. `AccessCheck` derives the tenant from them.

use http::{HeaderMap, HeaderName};

use crate::config::{COOKIE, TenancySettings};

/// Parts of header names that suggest that the header identifies somebody.
const TELLING: [&str; 15] = [
    "auth",
    "key",
    "token",
    "secret",
    "cookie",
    "credential",
    "password",
    "signature",
    "jwt",
    "tenant",
    "identity",
    "principal",
    "email",
    "account",
    "user",
];
/// Headers with such a name that identify nobody, or only come beside a credential.
const HARMLESS: [&str; 4] = [
    "chatgpt-account-id",
    "idempotency-key",
    "sec-websocket-key",
    "user-agent",
];
/// Prefixes of headers that the clients of providers and we ourselves define.
const HARMLESS_PREFIXES: [&str; 3] = ["x-stainless-", "x-trimtab-", "anthropic-"];
/// Headers that a reverse proxy adds: then the peer is not the sender.
const FORWARDING: [&str; 6] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
];

/// The credentials in these headers, with the names of their headers.
pub(super) fn presented_credentials<'a>(
    tenancy: &'a TenancySettings,
    headers: &'a HeaderMap,
) -> Vec<(&'a str, &'a [u8])> {
    let names = tenancy.credential_headers.iter().map(String::as_str);
    let all = names.flat_map(|name| {
        // Compared with the few headers of a request, which is faster than to parse each name.
        let is_it = move |header: &HeaderName| header.as_str().eq_ignore_ascii_case(name);
        let values = headers.iter().filter(move |(header, _)| is_it(header));
        values.map(move |(_, value)| (name, value.as_bytes()))
    });
    let all = all.filter(|(_, value)| !is_empty(value));
    let (cookies, mut found): (Vec<_>, Vec<_>) =
        all.partition(|(name, _)| name.eq_ignore_ascii_case(COOKIE));
    // A cookie counts only where there is no other credential: load balancers change theirs in the
    // middle of a conversation, and each change would make a new tenant.
    if found.is_empty() {
        found = cookies;
    }
    found
}

/// True if a header is there but holds no credential, as in a client without a key.
fn is_empty(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    value.is_empty() || value.eq_ignore_ascii_case(b"bearer")
}

/// True if these credentials are an access token, which its client renews every few hours. Another
/// one may then come in the middle of a conversation.
pub(super) fn is_access_token(credentials: &[(&str, &[u8])]) -> bool {
    let [(name, value)] = credentials else {
        return false;
    };
    let presented = std::str::from_utf8(value).ok();
    let Some((scheme, token)) = presented.and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let token = token.trim();
    // "eyJ" is how `{"` begins in base64: the header of a JSON web token.
    let is_jwt = token.starts_with("eyJ") && token.matches('.').count() == 2;
    name.eq_ignore_ascii_case("authorization")
        && scheme.eq_ignore_ascii_case("bearer")
        && (is_jwt || token.starts_with("sk-ant-oat"))
}

/// The user that the configured header names.
pub(super) fn user_header<'a>(
    tenancy: &TenancySettings,
    headers: &'a HeaderMap,
) -> Option<&'a [u8]> {
    let name = Some(tenancy.user_header.as_str()).filter(|name| !name.is_empty())?;
    let value = headers.get(name)?.as_bytes();
    (!value.is_empty()).then_some(value)
}

/// A header that suggests several users behind the peer: one of a reverse proxy, or one that may be
/// an unknown credential.
pub(super) fn foreign_sign<'a>(
    tenancy: &TenancySettings,
    headers: &'a HeaderMap,
) -> Option<&'a str> {
    // A header that we do not know may tell the users of a gateway apart. Its request then shares
    // nothing, instead of sharing one tenant with all of them.
    let known = tenancy.credential_headers.iter();
    let known: Vec<&String> = known.chain([&tenancy.user_header]).collect();
    let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut names = headers.keys().map(HeaderName::as_str);
    names.find(|name| is_forwarding(name) || (may_be_credential(name) && !is_known(name)))
}

fn is_forwarding(name: &str) -> bool {
    FORWARDING.contains(&name) || name.starts_with("x-forwarded-")
}

fn may_be_credential(name: &str) -> bool {
    let is_harmless = HARMLESS.contains(&name)
        || HARMLESS_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix));
    !is_harmless && TELLING.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::headers::of_pairs;

    #[test]
    fn cookie_counts_only_without_another_credential() {
        let tenancy = TenancySettings::default();
        let names = |pairs: &[(&'static str, &'static str)]| {
            let headers = of_pairs(pairs);
            let found = presented_credentials(&tenancy, &headers);
            found
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[("cookie", "a=b")]), ["cookie"]);
        let both = [("cookie", "a=b"), ("x-litellm-api-key", "k")];
        assert_eq!(names(&both), ["x-litellm-api-key"]);
        for empty in [("x-api-key", " "), ("authorization", "Bearer")] {
            assert_eq!(names(&[empty]), [""; 0]);
        }
    }

    #[test]
    fn access_tokens_are_told_from_keys() {
        let is_one = |value: &str| is_access_token(&[("authorization", value.as_bytes())]);
        assert!(is_one("Bearer sk-ant-oat01-abc"));
        let jwt = "bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln";
        assert!(is_one(jwt));
        for key in [
            "Bearer sk-proj-1",
            "Bearer sk-ant-api03-x",
            "Basic eyJ.a.b",
            "Bearer eyJx",
        ] {
            assert!(!is_one(key), "{key}");
        }
        assert!(!is_access_token(&[("x-api-key", jwt.as_bytes())]));
        let both = [("authorization", jwt.as_bytes()), ("x-api-key", b"k")];
        assert!(!is_access_token(&both));
    }

    #[test]
    fn headers_of_others_are_noticed() {
        let tenancy = TenancySettings::default();
        for name in ["x-company-auth", "x-forwarded-for", "via", "x-user-id"] {
            let headers = of_pairs(&[(name, "1")]);
            assert_eq!(foreign_sign(&tenancy, &headers), Some(name));
        }
        let plain = of_pairs(&[
            ("user-agent", "a"),
            ("idempotency-key", "b"),
            ("x-stainless-lang", "js"),
            ("anthropic-version", "v"),
            ("content-type", "application/json"),
            ("x-session-id", "s"),
            ("authorization", ""),
        ]);
        assert_eq!(foreign_sign(&tenancy, &plain), None);
    }
}
