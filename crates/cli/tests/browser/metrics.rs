//! `/metrics`, `/healthz` and `/readyz`, as machines read them.

use std::collections::BTreeMap;

use http::Method;

use crate::stage::{PlayedDemo, ask};

/// The samples of an exposition, by name with labels. Fails on any line that the format does not
/// allow, and on samples without a type.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut samples = BTreeMap::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name, kind).is_none(), "two types: {line}");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            "{line}"
        );
        let parts = ["_bucket", "_sum", "_count"];
        let family = parts.iter().find_map(|part| {
            name.strip_suffix(part)
                .filter(|name| types.contains_key(name))
        });
        assert!(
            types.contains_key(family.unwrap_or(name)),
            "no type: {line}"
        );
        let before = samples.insert(series.to_owned(), value.parse().unwrap());
        assert!(before.is_none(), "twice: {line}");
    }
    samples
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_the_session_that_was_played() {
    let demo = PlayedDemo::start();
    let url = |path: &str| format!("{}{path}", demo.url);
    let answer = ask(Method::GET, &url("/metrics"), &[], Vec::new()).await;
    assert!(
        answer
            .header("content-type")
            .starts_with("text/plain; version=0.0.4")
    );
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let samples = samples(&text);
    let value = |series: &str| {
        samples
            .get(series)
            .copied()
            .unwrap_or_else(|| panic!("no {series}\n{text}"))
    };
    assert!(value("trimtab_requests_total{action=\"edited\",status=\"2xx\"}") > 10.0);
    let (before, after) = ("when=\"before\"", "when=\"after\"");
    let tokens = |when: &str| value(&format!("trimtab_prompt_tokens_total{{{when}}}"));
    assert!(tokens(before) > tokens(after) && tokens(after) > 0.0);
    assert!(value("trimtab_usage_tokens_total{kind=\"cache_read\"}") > 0.0);
    let switches = samples
        .iter()
        .filter(|(name, _)| name.starts_with("trimtab_switch_points_total{"));
    assert!(switches.map(|(_, value)| value).sum::<f64>() > 0.0);
    assert!(value("trimtab_cache_breaks_total{by=\"trimtab\"}") > 0.0);
    for stage in ["plan", "answer", "total"] {
        let count = value(&format!("trimtab_stage_seconds_count{{stage=\"{stage}\"}}"));
        let last = value(&format!(
            "trimtab_stage_seconds_bucket{{stage=\"{stage}\",le=\"+Inf\"}}"
        ));
        assert!(count > 30.0 && (count - last).abs() < 0.5, "{stage}");
    }
    assert!(value("trimtab_store_outputs") > 10.0 && value("trimtab_store_bytes") > 1e5);
    assert!((value("trimtab_store_usable") - 1.0).abs() < 0.5);
    // Nothing that came from outside.
    for secret in ["claude-sonnet", "x-api-key", "proxy/", "bug"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let documented = include_str!("../../../../docs/metrics.md");
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for name in names.map(|line| line.split(' ').next().unwrap()) {
        assert!(
            documented.contains(&format!("`{name}`")),
            "docs/metrics.md: no {name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_readiness_reveal_no_secret() {
    let demo = PlayedDemo::start();
    for path in ["/healthz", "/livez", "/readyz"] {
        let url = format!("{}{path}", demo.url);
        let answer = ask(Method::GET, &url, &[], Vec::new()).await;
        assert_eq!(answer.status, 200, "{path}");
        let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(json["status"], "ok", "{path}");
        let managing = (path == "/readyz").then_some(true);
        assert_eq!(json["managing"].as_bool(), managing, "{path}");
    }
}
