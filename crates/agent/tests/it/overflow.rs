//! Overflows of providers that count differently or have an unknown window are recovered.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trimtab_agent::TurnEnd;
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;
use trimtab_store::MemoryStore;
use trimtab_testkit::upstream::{Count, OverflowForm, RequestOutcome, Upstream, UpstreamOptions};

use super::common::{busy, http, preset, set};

/// The window that the provider has, and that we take for larger.
const TRUE_WINDOW: u64 = 16_000;

async fn recovers(name: &str, dialect: Dialect, form: OverflowForm) -> usize {
    let rounds = 33;
    let (source, done) = busy(rounds, false);
    let upstream = Upstream::start(UpstreamOptions {
        window: Some(TRUE_WINDOW),
        count: Count::Estimate,
        overflow: form,
        ..UpstreamOptions::new(source)
    })
    .await
    .unwrap();
    let mut set = set(
        http(dialect, &upstream.url()),
        Arc::new(MemoryStore::new()),
        |settings| {
            settings.policy = preset(name);
            settings.limits.window = Some(TRUE_WINDOW + 6_000);
        },
    );
    while done.load(Ordering::SeqCst) < rounds {
        let turn = set.agent.turn("go on").await;
        let turn = turn.unwrap_or_else(|error| panic!("{name} {dialect} {form:?}: {error}"));
        assert_eq!(turn.end, TurnEnd::Answered);
    }
    assert_eq!(upstream.violations(), Vec::<String>::new());
    let requests = upstream.requests();
    requests
        .iter()
        .filter(|received| received.outcome == RequestOutcome::Overflow)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_preset_recovers_in_every_dialect() {
    for preset in PRESETS.iter().filter(|preset| preset.fit()) {
        let mut overflows = 0;
        for dialect in Dialect::ALL {
            overflows += recovers(preset.name, dialect, OverflowForm::Status).await;
        }
        println!("{}: {overflows} overflows recovered", preset.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wording_is_recovered() {
    let forms = [
        OverflowForm::FirstEvent,
        OverflowForm::Failed,
        OverflowForm::LlamaCpp,
    ];
    for form in forms {
        for dialect in Dialect::ALL {
            let overflows = recovers("steady", dialect, form).await;
            assert!(
                overflows > 0,
                "{form:?} {dialect}: there was nothing to recover"
            );
        }
    }
}
