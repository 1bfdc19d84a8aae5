//! Reloaded settings apply to running conversations.

use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, ProxyConfig};

use crate::fake::{Reply, Upstream, post};
use crate::talk::{Talk, answer, lines, path};
use crate::{config, proxy};

/// The settings, deciding by `preset`; `short` shows next to nothing of an output.
fn settings(upstream: &str, preset: &str) -> ProxyConfig {
    let short = r#"
        [policies.short]
        preset = "refs"
        [policies.short.views]
        default = { shape = "head_lines", max_bytes = 200, max_line_chars = 80 }
    "#;
    let policies = ProxyConfig::from_toml(short).unwrap().policies;
    ProxyConfig {
        preset: preset.to_owned(),
        policies,
        ..config(upstream)
    }
}

async fn echo(dialect: Dialect) -> Upstream {
    Upstream::start(move |_, _| Reply::json(200, answer(dialect, "well", 500))).await
}

#[tokio::test]
async fn reloaded_policy_applies_to_new_outputs() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let (running, base) = proxy(settings(&upstream.url(), "refs")).await;
        let mut talk = Talk::new(dialect, "read the files");
        talk.round("c1", &lines(500));
        let got = post(&base, path(dialect), &[], talk.body()).await;
        let session = got.header("x-trimtab-session").to_owned();
        assert_eq!(got.header("x-trimtab-action"), "unchanged");
        running.reload(settings(&upstream.url(), "short")).unwrap();
        talk.round("c2", &lines(600));
        let got = post(&base, path(dialect), &[], talk.body()).await;
        assert_eq!(got.header("x-trimtab-session"), session);
        assert_eq!(got.header("x-trimtab-action"), "edited");
        let seen = upstream.seen();
        let list = |at: usize| {
            let name = if dialect == Dialect::Responses {
                "input"
            } else {
                "messages"
            };
            seen[at].json()[name].as_array().unwrap().clone()
        };
        // What was sent stays; what is new is shown as the new policy says.
        let (before, after) = (list(0), list(1));
        assert_eq!(before[..], after[..before.len()], "{dialect}");
        assert!(!seen[1].text().contains("line 555: "), "{dialect}");
    }
}

#[tokio::test]
async fn requested_policy_survives_a_reload() {
    let dialect = Dialect::Chat;
    let upstream = echo(dialect).await;
    let (running, base) = proxy(settings(&upstream.url(), "refs")).await;
    let mut talk = Talk::new(dialect, "read the files");
    talk.round("c1", "a");
    let asked = [("x-trimtab-preset", "short")];
    post(&base, path(dialect), &asked, talk.body()).await;
    running
        .reload(settings(&upstream.url(), "archive"))
        .unwrap();
    talk.round("c2", &lines(600));
    post(&base, path(dialect), &[], talk.body()).await;
    assert!(!upstream.seen()[1].text().contains("line 555: "));
    // Until another one is asked for.
    talk.round("c3", &lines(600).replace("line", "row"));
    let other = [("x-trimtab-preset", "refs")];
    post(&base, path(dialect), &other, talk.body()).await;
    let sent = upstream.seen()[2].text();
    assert!(sent.contains("row 555: ") && !sent.contains("line 555: "));
}

#[test]
fn output_limit_must_leave_room_for_messages() {
    let rule = |max_output: u64| ProxyConfig {
        models: vec![ModelRule {
            model: "*".to_owned(),
            window: Some(20_000),
            max_output: Some(max_output),
            preset: None,
            mode: None,
        }],
        ..ProxyConfig::default()
    };
    assert!(rule(12_000).check().is_ok());
    for wrong in [0, 20_000] {
        let said = rule(wrong).check().unwrap_err().to_string();
        let named = format!("models[0].max_output = {wrong}");
        assert!(said.contains(&named), "{said}");
    }
}
