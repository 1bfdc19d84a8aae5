//! The headers that we read, add and remove, on the way to the upstream and back to the client.

use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, HeaderName, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::{HeaderMap, HeaderValue};

use crate::config::ProxyMode;

/// The beta features that a request to Anthropic asks for.
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
/// The prefix of our headers.
const PREFIX: &str = "x-trimtab-";
/// Request: the token of this proxy.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-trimtab-token");
/// Request: the mode of this request.
const MODE: HeaderName = HeaderName::from_static("x-trimtab-mode");
/// The values of that header.
const MODES: [&str; 3] = ["on", "observe", "bypass"];
/// Request: `true` is short for the mode `bypass`.
const BYPASS: HeaderName = HeaderName::from_static("x-trimtab-bypass");
/// Request: the preset of the session from this request on.
pub(crate) const PRESET: HeaderName = HeaderName::from_static("x-trimtab-preset");
/// Request and response: the name of the session.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("x-trimtab-session");
/// Response: the id of the request in our logs.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-trimtab-request-id");
/// Response: what was done.
pub(crate) const ACTION: HeaderName = HeaderName::from_static("x-trimtab-action");
/// Response: why the request passed unchanged.
pub(crate) const REASON: HeaderName = HeaderName::from_static("x-trimtab-reason");
/// Response: the estimated tokens of the original prompt.
pub(crate) const TOKENS_BEFORE: HeaderName = HeaderName::from_static("x-trimtab-tokens-before");
/// Response: the estimated tokens of the sent prompt.
pub(crate) const TOKENS_AFTER: HeaderName = HeaderName::from_static("x-trimtab-tokens-after");
/// Response: the number of smaller requests after an overflow.
pub(crate) const RECOVERIES: HeaderName = HeaderName::from_static("x-trimtab-recoveries");

/// Response: the repairs without which the provider would have rejected the request.
pub(crate) const REPAIRS: HeaderName = HeaderName::from_static("x-trimtab-repairs");

/// Headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
];

/// The name of the client: the first word of `User-Agent`.
pub(crate) fn client_name(headers: &HeaderMap) -> String {
    let name = header_text(headers, &USER_AGENT).unwrap_or_default();
    let word = name.split_whitespace().next().unwrap_or_default();
    // Headers of clients appear in logs and on the dashboard, so their length is bounded.
    word.chars().take(60).collect()
}

/// The `traceparent` header of a request, or an empty string.
pub(crate) fn trace_parent(headers: &HeaderMap) -> String {
    let name = HeaderName::from_static("traceparent");
    let text = header_text(headers, &name).unwrap_or_default();
    text.chars().take(60).collect()
}

/// Removes headers that concern one connection only, and those that `Connection` names.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// The headers of a request for the upstream.
pub(crate) fn to_upstream(mut headers: HeaderMap) -> HeaderMap {
    strip_hop_by_hop(&mut headers);
    // The HTTP client sets `Host` for the upstream's address, and the length from the body, which
    // may have been edited. `Expect` was answered by our own server.
    for name in [HOST, CONTENT_LENGTH, EXPECT] {
        headers.remove(name);
    }
    strip_ours(&mut headers);
    headers
}

/// Removes headers with our prefix.
fn strip_ours(headers: &mut HeaderMap) {
    // Collected first, because a map cannot be changed while its keys are borrowed.
    let ours: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(PREFIX))
        .cloned()
        .collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Prepares the headers of an answer for the client, which takes those with our prefix for ours.
pub(crate) fn to_client(headers: &mut HeaderMap) {
    strip_hop_by_hop(headers);
    strip_ours(headers);
}

/// The headers of a request for the upstream if we read the answer, which must not be compressed.
pub(crate) fn to_upstream_uncompressed(headers: HeaderMap) -> HeaderMap {
    let mut headers = to_upstream(headers);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

/// Removes the encoding, after the body was decompressed.
pub(crate) fn remove_encoding(headers: &mut HeaderMap) {
    headers.remove(CONTENT_ENCODING);
}

/// Adds a value to the provider's beta features, unless the client has it there. All are in one
/// header, because some gateways read only one header of a name.
pub(crate) fn add_beta(headers: &mut HeaderMap, beta: &'static str) {
    let lists = headers.get_all(&BETA).iter();
    let named = lists.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|list| list.split(',')).map(str::trim);
    let mut named: Vec<&str> = named.filter(|one| !one.is_empty()).collect();
    if !named.contains(&beta) {
        named.push(beta);
        let list = named.join(",");
        set_header(headers, BETA, &list);
    }
}

/// The mode that the headers of a request set.
pub(crate) fn mode(headers: &HeaderMap) -> Option<ProxyMode> {
    if header_text(headers, &BYPASS).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Some(ProxyMode::Bypass);
    }
    match header_text(headers, &MODE)?.to_ascii_lowercase().as_str() {
        "on" => Some(ProxyMode::On),
        "observe" => Some(ProxyMode::Observe),
        "bypass" => Some(ProxyMode::Bypass),
        _ => None,
    }
}

/// The mistake in the first of our request headers that has an impossible value. `policies` lists
/// the names that the preset may have.
pub(crate) fn wrong_value<'p>(
    headers: &HeaderMap,
    policies: impl Fn() -> Vec<&'p str>,
) -> Option<String> {
    let mut mistakes = [MODE, BYPASS, PRESET].into_iter().filter_map(|name| {
        let value = String::from_utf8_lossy(headers.get(&name)?.as_bytes());
        let allowed = if name == PRESET {
            policies()
        } else if name == MODE {
            MODES.to_vec()
        } else {
            vec!["true", "false"]
        };
        let value = value.trim();
        let lower = value.to_ascii_lowercase();
        // Names of policies are in the user's settings, where the case counts.
        let is_known = |known: &&str| *known == value || (name != PRESET && *known == lower);
        // A blank header counts as none, like in `header_text`.
        if value.is_empty() || allowed.iter().any(is_known) {
            return None;
        }
        let shown: String = value.chars().take(60).collect();
        let allowed = allowed.join(", ");
        Some(format!(
            "the header {name} has the unknown value {shown:?}\nhint: allowed values: {allowed}"
        ))
    });
    mistakes.next()
}

/// The first value of a header, if it is text and not blank.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then_some(value)
}

/// Sets a header. An invalid value is ignored.
pub(crate) fn set_header(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Headers for tests.
#[cfg(test)]
pub(crate) fn of_pairs(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    pairs.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_headers_are_not_forwarded() {
        let sent = to_upstream(of_pairs(&[
            ("connection", "keep-alive, x-mine"),
            ("x-mine", "1"),
            ("te", "trailers"),
            ("host", "evil"),
            ("x-trimtab-session", "s"),
            ("authorization", "Bearer k"),
            ("anthropic-beta", "a,b"),
        ]));
        let names: Vec<&str> = sent.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["authorization", "anthropic-beta"]);
    }

    #[test]
    fn modes_by_header() {
        let of = |name, value| mode(&of_pairs(&[(name, value)]));
        assert_eq!(of("x-trimtab-mode", "Observe"), Some(ProxyMode::Observe));
        assert_eq!(of("x-trimtab-bypass", "true"), Some(ProxyMode::Bypass));
    }
}
