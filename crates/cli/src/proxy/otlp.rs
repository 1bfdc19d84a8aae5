//! Where traces and metrics go, by the variables that OpenTelemetry names.

use trimtab_proxy::OtlpTarget;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// The collector that the environment names; none if it names none.
pub(super) fn target() -> Option<OtlpTarget> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some(OtlpTarget {
        endpoint: variable(ENDPOINT)?,
        headers: headers(&variable(HEADERS).unwrap_or_default()),
    })
}

/// Headers as the variable has them: `name=value,name=value`.
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
