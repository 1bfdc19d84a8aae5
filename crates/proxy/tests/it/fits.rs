//! Every sent window fits: under every preset, in every dialect, with and without model rules.

use trimtab_engine::policy::{PRESETS, Policy};
use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, ProxyConfig};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{Count, ReplySource, RequestOutcome, Upstream, UpstreamOptions};

use crate::fake::post;
use crate::talk::{Talk, lines, path, said};
use crate::{config, proxy};

const WINDOW: u64 = 16_000;

/// What the strict provider wants to see.
pub(crate) const HEADERS: [(&str, &str); 3] = [
    ("authorization", "Bearer k"),
    ("x-api-key", "k"),
    ("anthropic-version", "2023-06-01"),
];

/// A model with a window that says the same to everything, and writes summaries.
async fn strict(count: Count) -> Upstream {
    let source = ReplySource::with(|received| {
        if received.last.contains("<summary>") {
            return ScriptedReply::text("<summary>\nfiles were read\n</summary>");
        }
        ScriptedReply::text("read")
    });
    Upstream::start(UpstreamOptions {
        window: Some(WINDOW),
        count,
        ..UpstreamOptions::new(source)
    })
    .await
    .unwrap()
}

/// Settings for a preset and what they say of the model.
#[derive(Clone, Copy, Debug)]
struct Setting {
    preset: &'static str,
    window: Option<u64>,
    max_output: Option<u64>,
    asked: u64,
}

fn settings(upstream: &Upstream, setting: Setting) -> ProxyConfig {
    let mut config = config(&upstream.url());
    setting.preset.clone_into(&mut config.preset);
    if setting.window.is_some() || setting.max_output.is_some() {
        config.models.push(ModelRule {
            model: "*".to_owned(),
            window: setting.window,
            max_output: setting.max_output,
            preset: None,
            mode: None,
        });
    }
    config
}

/// A conversation that grows far beyond the window, turn by turn and round by round. Gives the
/// largest prompt that was answered and how many requests were refused.
async fn play(dialect: Dialect, count: Count, setting: Setting) -> (u64, usize) {
    let upstream = strict(count).await;
    let (_running, base) = proxy(settings(&upstream, setting)).await;
    let mut talk = Talk::new(dialect, "read all files");
    talk.max_tokens = setting.asked;
    for round in 0..24 {
        talk.stream = round % 2 == 1;
        talk.round(&format!("c{round}"), &lines(20 + 60 * (round % 5)));
        let got = post(&base, path(dialect), &HEADERS, talk.body()).await;
        let text = got.text();
        assert_eq!(got.status, 200, "{dialect} {setting:?} {round}: {text}");
        assert_eq!(said(dialect, &text), "read", "{dialect} {setting:?}");
        if round % 6 == 5 {
            talk.says("read").user("and the next ones");
        }
    }
    assert_eq!(
        upstream.violations(),
        Vec::<String>::new(),
        "{dialect} {setting:?}"
    );
    let requests = upstream.requests();
    let answered = requests
        .iter()
        .filter(|request| request.outcome == RequestOutcome::Answered);
    let largest = answered.map(|request| request.tokens).max().unwrap();
    let refused = requests
        .iter()
        .filter(|request| request.outcome == RequestOutcome::Overflow)
        .count();
    (largest, refused)
}

/// The presets that make windows fit: all but the one that sends everything as it came.
fn fitting() -> impl Iterator<Item = &'static str> {
    let names = PRESETS.iter().map(|preset| preset.name);
    names.filter(|name| Policy::preset(name).unwrap().fit)
}

#[tokio::test]
async fn a_known_window_is_never_exceeded() {
    assert_eq!(fitting().count(), 6);
    for preset in fitting() {
        for dialect in Dialect::ALL {
            for (max_output, asked) in [(None, 500), (Some(8_000), 8_000), (Some(8_000), 9_000)] {
                for count in [Count::Bytes, Count::Estimate] {
                    let setting = Setting {
                        preset,
                        window: Some(WINDOW),
                        max_output,
                        asked,
                    };
                    let (largest, refused) = play(dialect, count, setting).await;
                    // What is learned of an answer may come too late for the next request.
                    assert!(refused <= 3, "{dialect} {count:?} {setting:?}: {largest}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_window_that_nobody_knows_is_found_out() {
    for preset in fitting() {
        for dialect in Dialect::ALL {
            for (max_output, asked) in [(None, 500), (None, 9_000), (Some(8_000), 9_000)] {
                let setting = Setting {
                    preset,
                    window: None,
                    max_output,
                    asked,
                };
                let (largest, _) = play(dialect, Count::Estimate, setting).await;
                assert!(largest <= WINDOW, "{dialect} {setting:?}: {largest}");
            }
        }
    }
}
