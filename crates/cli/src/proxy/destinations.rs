//! Tells the user where requests go, if that is not the provider's own address.

use trimtab::provider::Provider;
use trimtab::redact::redact_address;
use trimtab_model::Dialect;
use trimtab_proxy::UpstreamConfig;

use super::settings::ResolvedProxy;

/// The address of Gemini's API.
pub const GEMINI: &str = "https://generativelanguage.googleapis.com";

/// One line for each upstream that is not the own address of its provider.
pub fn destinations(resolved: &ResolvedProxy) -> Vec<String> {
    let upstreams = resolved.proxy.upstreams();
    let others = upstreams.iter().filter(|upstream| !is_own(upstream));
    let line = |upstream: &UpstreamConfig| {
        let from = resolved.upstreams_from.as_ref().unwrap_or(&upstream.name);
        let (url, prefix) = (redact_address(&upstream.url), &upstream.prefix);
        let under = if prefix.is_empty() {
            String::new()
        } else {
            format!(" under {prefix}")
        };
        let what = names(&upstream.dialects);
        format!("trimtab: {what}{under} go to {url}, set by {from}")
    };
    others.map(line).collect()
}

/// The names of the dialects.
fn names(dialects: &[Dialect]) -> String {
    let names: Vec<String> = dialects.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [] => "all requests".to_owned(),
        names => names.join(" and "),
    }
}

/// True if the upstream is the own address of the provider whose dialects it takes.
fn is_own(upstream: &UpstreamConfig) -> bool {
    // Gemini has none of our dialects, so it is not among the providers below.
    if upstream.url == GEMINI {
        return true;
    }
    let address = upstream.address("/");
    let provider = address
        .as_ref()
        .and_then(|uri| Provider::of_host(uri.host()?));
    // Requests over plain HTTP can be intercepted, so they are reported even to the right host.
    let is_https = address
        .as_ref()
        .is_some_and(|uri| uri.scheme_str() == Some("https"));
    let is_for = |provider: Provider| {
        let takes = |dialect| provider.dialects().contains(dialect);
        !upstream.dialects.is_empty() && upstream.dialects.iter().all(takes)
    };
    is_https && provider.is_some_and(is_for)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_address_with_another_dialect_is_reported() {
        let at = |url: &str, dialects: &[Dialect]| {
            is_own(&UpstreamConfig::new("u", url).for_dialects(dialects.iter().copied()))
        };
        assert!(at("https://api.anthropic.com", &[Dialect::Messages]));
        assert!(at("https://api.openai.com/v1", &[Dialect::Chat]));
        assert!(!at("http://api.openai.com", &[Dialect::Chat]));
        assert!(!at("https://api.openai.com", &[Dialect::Messages]));
        assert!(!at("https://api.openai.com", &[]));
        assert!(!at("https://api.openai.com.evil.test", &[Dialect::Chat]));
    }
}
