//! Checks whether an upstream answers, accepts our key, and agrees with our clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{Method, StatusCode};
use serde_json::Value;
use trimtab::provider::Provider;
use trimtab_model::Dialect;
use trimtab_proxy::UpstreamConfig;
use trimtab_wire::auth::key_headers;

use super::check::DoctorCheck;
use crate::proxy::http::{HttpAnswer, HttpClient};

/// How long an upstream may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// A larger clock difference breaks signatures, tokens and cache lifetimes.
const SKEW: Duration = Duration::from_mins(1);

/// Requests the models of `upstream`. `key` looks up keys in the environment.
pub(super) async fn check(
    http: &HttpClient,
    upstream: &UpstreamConfig,
    key: impl Fn(&str) -> Option<String>,
) -> Vec<DoctorCheck> {
    let name = format!("upstream {}", upstream.name);
    let variable = provider(upstream).map(Provider::key_variable);
    let key = variable
        .and_then(key)
        .filter(|key| may_send_key(upstream, key));
    let headers = headers(upstream, key.as_deref());
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let url = upstream.address("/v1/models").unwrap_or_default();
    let url = url.to_string();
    let asked = http.send(Method::GET, &url, &headers, Vec::new(), PATIENCE);
    match asked.await {
        Ok(answer) => {
            let mut checks = vec![classify(
                &name,
                upstream,
                variable.zip(key.as_ref()).map(|(name, _)| name),
                &answer,
            )];
            checks.extend(clock(&answer, UNIX_EPOCH + trimtab::store::since_epoch()));
            checks
        }
        Err(why) => vec![DoctorCheck::problem(
            name,
            format!("{}: {why}", upstream.url),
            "check the address, the network and the firewall; --upstream sets another address",
        )],
    }
}

/// The provider whose key an upstream takes, if all its dialects belong to one provider.
fn provider(upstream: &UpstreamConfig) -> Option<Provider> {
    let mut kinds = upstream.dialects.iter().copied().map(Provider::of_dialect);
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

/// False for a provider's own address with a key of another provider.
fn may_send_key(upstream: &UpstreamConfig, key: &str) -> bool {
    let address = upstream.address("/");
    let provider = address.and_then(|uri| Provider::of_host(uri.host()?));
    provider.is_none_or(|provider| provider.may_issue(key))
}

fn headers(upstream: &UpstreamConfig, key: Option<&str>) -> Vec<(&'static str, String)> {
    let is_messages = upstream.dialects.contains(&Dialect::Messages);
    let dialect = if is_messages {
        Dialect::Messages
    } else {
        Dialect::Chat
    };
    key_headers(dialect, key)
}

/// Interprets the answer. `key` is the name of the variable whose key was sent.
fn classify(
    name: &str,
    upstream: &UpstreamConfig,
    key: Option<&str>,
    answer: &HttpAnswer,
) -> DoctorCheck {
    let url = &upstream.url;
    let status = answer.status;
    let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if !status.is_server_error() && !is_like_provider(answer) {
        return DoctorCheck::warning(
            name,
            format!(
                "{url} answers, but not like a model server: {}",
                describe(answer)
            ),
            "check the address and its path; a model server answers GET /v1/models in JSON",
        );
    }
    match key {
        Some(key) if refused => DoctorCheck::problem(
            name,
            format!("{url} rejects the key in {key} ({status})"),
            format!("set {key} to a valid key for this server"),
        ),
        Some(key) if status.is_success() => {
            DoctorCheck::ok(name, format!("{url} answers and accepts the key in {key}"))
        }
        None if refused || status.is_success() => {
            DoctorCheck::ok(name, format!("{url} answers; no key was sent"))
        }
        _ if status.is_server_error() => DoctorCheck::warning(
            name,
            format!("{url} answers with {status}"),
            "the server is reachable but failing; try again later",
        ),
        // A server without a list of models can still be useful.
        _ => DoctorCheck::ok(
            name,
            format!("{url} answers ({status} for its list of models)"),
        ),
    }
}

/// True if the answer looks like that of a model server: a list of models, an error in JSON, or a
/// bare rejection of the key.
fn is_like_provider(answer: &HttpAnswer) -> bool {
    let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
    match body {
        Some(Value::Object(body)) if answer.status.is_success() => {
            let is_list = |field: &str| body.get(field).is_some_and(Value::is_array);
            is_list("data") || is_list("models")
        }
        Some(Value::Object(_)) => true,
        // Some servers return a bare list of models.
        Some(Value::Array(_)) => answer.status.is_success(),
        Some(_) => false,
        None => answer.body.is_empty() && !answer.status.is_success(),
    }
}

/// A short description of an answer.
fn describe(answer: &HttpAnswer) -> String {
    let kind = match answer.header("content-type") {
        "" => "no content type",
        kind => kind,
    };
    let server = match answer.header("server") {
        "" => String::new(),
        server => format!(", from {server}"),
    };
    format!("{}, {kind}{server}", answer.status)
}

/// Compares the date of an answer with `now`.
fn clock(answer: &HttpAnswer, now: SystemTime) -> Option<DoctorCheck> {
    let theirs = httpdate::parse_http_date(answer.header("date")).ok()?;
    let apart = now
        .duration_since(theirs)
        .or_else(|_| theirs.duration_since(now))
        .ok()?;
    let message = format!("differs from the upstream's by {} seconds", apart.as_secs());
    (apart > SKEW).then(|| {
        DoctorCheck::warning(
            "clock",
            message,
            "set the clock of this machine, for example with NTP",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckState;
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    fn answer(status: u16, date: &'static str) -> HttpAnswer {
        let mut headers = HeaderMap::new();
        headers.insert("date", HeaderValue::from_static(date));
        HttpAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::new(),
        }
    }

    #[test]
    fn keys_go_only_to_upstreams_of_their_kind() {
        let kind = |dialects: &[Dialect]| {
            provider(&UpstreamConfig::new("u", "http://h").for_dialects(dialects.iter().copied()))
        };
        assert_eq!(kind(&[Dialect::Messages]), Some(Provider::Anthropic));
        let openai = kind(&[Dialect::Chat, Dialect::Responses]);
        assert_eq!(openai, Some(Provider::OpenAi));
        assert_eq!(kind(&[]), None);
        assert_eq!(kind(&Dialect::ALL), None);
    }

    #[test]
    fn upstream_answers_are_classified() {
        let upstream = UpstreamConfig::new("u", "http://h");
        let state = |status, key| classify("u", &upstream, key, &answer(status, "")).state;
        assert_eq!(state(401, Some("K")), CheckState::Problem);
        assert_eq!(state(401, None), CheckState::Ok);
        assert_eq!(state(404, Some("K")), CheckState::Ok);
        assert_eq!(state(503, None), CheckState::Warning);
    }

    #[test]
    fn answer_of_another_kind_of_server_is_a_warning() {
        let upstream = UpstreamConfig::new("u", "http://h");
        let state = |status, body: &'static str| {
            let answer = HttpAnswer {
                body: Bytes::from_static(body.as_bytes()),
                ..answer(status, "")
            };
            classify("u", &upstream, None, &answer).state
        };
        for (status, body) in [
            (200, "<html>"),
            (404, "<h1>no</h1>"),
            (200, "{}"),
            (200, ""),
        ] {
            assert_eq!(state(status, body), CheckState::Warning, "{status} {body}");
        }
        for (status, body) in [
            (200, r#"{"data": []}"#),
            (404, r#"{"error": {}}"#),
            (403, ""),
        ] {
            assert_eq!(state(status, body), CheckState::Ok, "{status} {body}");
        }
    }

    #[test]
    fn clock_differences_are_detected() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let theirs = httpdate::parse_http_date(date).unwrap();
        let at = |now| clock(&answer(200, date), now).map(|check| check.state);
        assert_eq!(at(theirs + Duration::from_secs(30)), None);
        assert_eq!(
            at(theirs + Duration::from_secs(90)),
            Some(CheckState::Warning)
        );
        assert_eq!(
            at(theirs - Duration::from_secs(90)),
            Some(CheckState::Warning)
        );
    }
}
