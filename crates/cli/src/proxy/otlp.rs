//! Reads the target of traces and metrics from the variables of OpenTelemetry.

use trimtab_proxy::OtlpTarget;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// The collector named in the environment, if any.
pub(super) fn target() -> Option<OtlpTarget> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some(OtlpTarget {
        endpoint: variable(ENDPOINT)?,
        headers: headers(&variable(HEADERS).unwrap_or_default()),
    })
}

/// Parses the headers in the form of the variable: `name=value,name=value`.
fn headers(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_split_at_commas() {
        let pairs = headers("Authorization=Basic abc=, x-team = tools");
        let expected = [("authorization", "Basic abc="), ("x-team", "tools")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(pairs, expected);
    }
}
