//! Long sessions under every preset, in every dialect.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trimtab_agent::tools::ToolSet;
use trimtab_agent::{Agent, AgentEvent, TurnEnd};
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;
use trimtab_store::{FolderStore, MemoryStore, SessionId, Store};
use trimtab_testkit::is_long;
use trimtab_testkit::upstream::{Count, RequestOutcome, Upstream, UpstreamOptions};

use super::common::{
    Produce, Sizes, WINDOW, all_is_redeemable, all_was_well, busy, http, preset, set, window,
};

fn rounds() -> usize {
    if is_long() { 500 } else { 44 }
}

fn sizes() -> Sizes {
    Sizes {
        largest: 10_000_000,
        large: if is_long() { 10_000_000 } else { 200_000 },
    }
}

/// One session: as many turns as it takes, then everything is looked at.
async fn session(name: &str, dialect: Dialect, store: Arc<dyn Store>) {
    let (source, done) = busy(rounds(), true);
    let upstream = Upstream::start(UpstreamOptions {
        window: Some(WINDOW),
        count: Count::Estimate,
        sign: true,
        keep_bodies: true,
        ..UpstreamOptions::new(source)
    })
    .await
    .unwrap();
    let mut set = set(
        http(dialect, &upstream.url()),
        Arc::clone(&store),
        |settings| {
            settings.policy = preset(name);
            settings.tools = ToolSet::none().with(Produce(sizes()));
        },
    );
    let mut turns = 0;
    while done.load(Ordering::SeqCst) < rounds() {
        turns += 1;
        let turn = set.agent.turn(format!(
            "work on part {turns}, and never touch the payments"
        ));
        let turn = turn
            .await
            .unwrap_or_else(|error| panic!("{name} {dialect}: {error}"));
        assert_eq!(turn.end, TurnEnd::Answered);
        // What was asked and answered is of no further interest; keep the memory low.
        all_was_well(&upstream, WINDOW, name);
        for received in upstream.requests() {
            assert_eq!(
                received.outcome,
                RequestOutcome::Answered,
                "{name} {dialect}"
            );
        }
        upstream.clear_requests();
    }
    set.agent.settle().await.unwrap();
    assert!(all_is_redeemable(&set.agent, sizes()) >= rounds() / 2);
    refs_of_events_are_redeemable(&mut set.events, &set.agent);
    let before = window(&mut set.agent);
    let settings = set.agent.settings().clone();
    drop(set.agent);
    let id = SessionId::new("s").unwrap();
    let (mut again, _events) = Agent::open(store, id, settings).unwrap();
    assert_eq!(
        window(&mut again),
        before,
        "{name} {dialect}: another window after reopening"
    );
}

fn refs_of_events_are_redeemable(events: &mut trimtab_agent::AgentEvents, agent: &Agent) {
    while let Ok(event) = events.try_recv() {
        if let AgentEvent::Session(event) = event {
            for gone in &event.refs {
                let store = agent.session().store();
                store.metadata(agent.session().id(), gone.id()).unwrap();
            }
        }
    }
}

async fn every_preset(dialect: Dialect) {
    for preset in PRESETS.iter().filter(|preset| preset.fit()) {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = if is_long() {
            Arc::new(FolderStore::open(folder.path()).unwrap())
        } else {
            Arc::new(MemoryStore::new())
        };
        session(preset.name, dialect, store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_preset_in_chat_completions() {
    every_preset(Dialect::Chat).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_preset_in_responses() {
    every_preset(Dialect::Responses).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_preset_in_messages() {
    every_preset(Dialect::Messages).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_works_with_a_folder_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).unwrap();
    session("steady", Dialect::Messages, Arc::new(store)).await;
}
