//! A conversation that is sent again from its beginning, to a store that knows it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use trimtab_model::Dialect;
use trimtab_proxy::ProxyConfig;
use trimtab_store::{MemoryStore, SessionId, Store, Stream};

use crate::fake::{Upstream, post};
use crate::managed::{echo, windowed};
use crate::stores::{Failing, Wrong};
use crate::talk::{Talk, lines, path};
use crate::{config, proxy_with};

/// The rounds of the conversation, which is several windows long.
const ROUNDS: usize = 16;

/// What a run of the conversation sent.
struct Run {
    sessions: BTreeSet<String>,
    /// The bodies of the client.
    came: Vec<String>,
    /// The bodies that reached the upstream.
    sent: Vec<String>,
}

impl Run {
    /// How many requests do not begin with the messages of the one before.
    fn prefix_changes(&self, dialect: Dialect) -> usize {
        let sent: Vec<Vec<Value>> = self.sent.iter().map(|body| list(dialect, body)).collect();
        let pairs = sent.windows(2);
        pairs.filter(|pair| !pair[1].starts_with(&pair[0])).count()
    }
}

fn list(dialect: Dialect, body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    let field = match dialect {
        Dialect::Responses => "input",
        Dialect::Chat | Dialect::Messages => "messages",
    };
    body[field].as_array().unwrap().clone()
}

fn preset(upstream: &Upstream, name: &str) -> ProxyConfig {
    ProxyConfig {
        preset: name.to_owned(),
        ..windowed(config(&upstream.url()), 20_000)
    }
}

/// Sends the conversation from its beginning, through a proxy of its own.
async fn run(dialect: Dialect, upstream: &Upstream, name: &str, store: &Arc<dyn Store>) -> Run {
    let (running, base) = proxy_with(preset(upstream, name), Arc::clone(store)).await;
    let before = upstream.seen().len();
    let mut talk = Talk::new(dialect, "read all files");
    let (mut sessions, mut came) = (BTreeSet::new(), Vec::new());
    for round in 0..ROUNDS {
        talk.round(&format!("c{round}"), &lines(150 + round));
        let got = post(&base, path(dialect), &[], talk.body()).await;
        assert_eq!(got.status, 200);
        sessions.insert(got.header("x-trimtab-session").to_owned());
        came.push(talk.body());
    }
    running.shutdown().await;
    let sent = upstream.seen().split_off(before);
    // Requests for summaries are not the client's.
    let sent = sent.iter().map(crate::fake::Asked::text);
    let sent = sent.filter(|body| body.contains("read all files"));
    Run {
        sessions,
        came,
        sent: sent.collect(),
    }
}

#[tokio::test]
async fn known_conversation_under_another_preset_is_edited_as_seldom_as_a_new_one() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let fresh: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let first = run(dialect, &upstream, "steady", &fresh).await;
        let few = first.prefix_changes(dialect);
        assert!(few > 0 && few < ROUNDS / 2, "{dialect}: {few}");
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        run(dialect, &upstream, "none", &store).await;
        for again in 0..2 {
            let known = run(dialect, &upstream, "steady", &store).await;
            let changes = known.prefix_changes(dialect);
            // One more for the change of the preset.
            assert!(
                changes <= few + 1,
                "{dialect}, run {again}: {changes}, not {few}"
            );
            assert!(known.sessions.len() <= 3, "{dialect}: {:?}", known.sessions);
        }
    }
}

#[tokio::test]
async fn conversation_sent_again_under_the_same_preset_is_sent_as_before() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let first = run(dialect, &upstream, "steady", &store).await;
        let second = run(dialect, &upstream, "steady", &store).await;
        for (at, (one, other)) in first.sent.iter().zip(&second.sent).enumerate() {
            assert_eq!(list(dialect, one), list(dialect, other), "{dialect}: {at}");
        }
    }
}

#[tokio::test]
async fn outputs_sent_again_have_their_views_of_the_first_time() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut bodies: Vec<Vec<Vec<Value>>> = Vec::new();
        for _ in 0..3 {
            let settings = ProxyConfig {
                preset: "refs".to_owned(),
                ..windowed(config(&upstream.url()), 200_000)
            };
            let (running, base) = proxy_with(settings, Arc::clone(&store)).await;
            let before = upstream.seen().len();
            let mut talk = Talk::new(dialect, "read all files");
            for round in 0..5 {
                talk.round(&format!("c{round}"), &lines(8_000 + round));
                post(&base, path(dialect), &[], talk.body()).await;
            }
            running.shutdown().await;
            let sent = upstream.seen().split_off(before);
            assert!(sent[4].body.len() < talk.body().len() / 2);
            bodies.push(sent.iter().map(|one| list(dialect, &one.text())).collect());
        }
        assert_eq!(bodies[0], bodies[1], "{dialect}");
        assert_eq!(bodies[0], bodies[2], "{dialect}");
    }
}

#[tokio::test]
async fn preset_none_sends_a_known_conversation_unchanged() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let edited = run(dialect, &upstream, "steady", &store).await;
        assert_ne!(edited.came.last(), edited.sent.last());
        let none = run(dialect, &upstream, "none", &store).await;
        assert_eq!(none.came, none.sent, "{dialect}");
        assert_eq!(none.sessions.len(), 1, "{dialect}: {:?}", none.sessions);
    }
}

#[tokio::test]
async fn preset_none_chosen_for_a_session_sends_it_unchanged_from_the_next_call_on() {
    let dialect = Dialect::Chat;
    let upstream = echo(dialect).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (_running, base) = proxy_with(preset(&upstream, "steady"), store).await;
    let mut talk = Talk::new(dialect, "read all files");
    for round in 0..ROUNDS {
        talk.round(&format!("c{round}"), &lines(150 + round));
        post(&base, path(dialect), &[], talk.body()).await;
    }
    assert_ne!(upstream.seen().last().unwrap().text(), talk.body());
    let mut headers = vec![("x-trimtab-preset", "none")];
    for round in ROUNDS..ROUNDS + 2 {
        talk.round(&format!("c{round}"), &lines(150 + round));
        post(&base, path(dialect), &headers, talk.body()).await;
        // A later request that names no preset does not change it back.
        headers.clear();
        assert_eq!(upstream.seen().last().unwrap().text(), talk.body());
    }
}

/// A conversation of six rounds that was sent round by round, and its state after the third.
async fn sent_rounds(dialect: Dialect, base: &str) -> (Talk, String) {
    let mut talk = Talk::new(dialect, "read all files");
    talk.has_tools = false;
    let (mut earlier, mut session) = (talk.clone(), String::new());
    for round in 0..6 {
        talk.round(&format!("c{round}"), &lines(50 + round));
        let got = post(base, path(dialect), &[], talk.body()).await;
        got.header("x-trimtab-session").clone_into(&mut session);
        if round == 2 {
            earlier = talk.clone();
        }
    }
    (earlier, session)
}

/// Waits until the log of a session has a call and its output.
async fn written(store: &dyn Store, session: &SessionId, call: &str) {
    let id = format!("\"{call}\"");
    for _ in 0..30_000 {
        let log = store.read(session, Stream::Log, 0, 100).unwrap();
        let log = log.iter().map(|entry| String::from_utf8_lossy(entry));
        if log.filter(|entry| entry.contains(&id)).count() == 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{call} was not written");
}

#[tokio::test]
async fn client_that_goes_back_does_not_wait_for_the_copy_of_its_log() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let store = Arc::new(Failing::new(Wrong::Never));
        let settings = windowed(config(&upstream.url()), 200_000);
        let (running, base) = proxy_with(settings, Arc::clone(&store) as Arc<dyn Store>).await;
        let (mut earlier, session) = sent_rounds(dialect, &base).await;
        let origin = SessionId::new(session.as_str()).unwrap();
        written(&*store, &origin, "c5").await;
        store.hold_writes(true);
        for round in 3..5 {
            let got = post(&base, path(dialect), &[], earlier.body()).await;
            let forked = got.header("x-trimtab-session").to_owned();
            assert_eq!(got.header("x-trimtab-reason"), "", "{dialect}");
            assert_eq!(forked, format!("{session}.1"), "{dialect}");
            assert_eq!(upstream.seen().last().unwrap().text(), earlier.body());
            earlier.round(&format!("other{round}"), &lines(50 + round));
        }
        store.hold_writes(false);
        running.shutdown().await;
        let forked = SessionId::new(format!("{session}.1")).unwrap();
        let copied = store.read(&forked, Stream::Log, 0, 100).unwrap();
        let first = store.read(&origin, Stream::Log, 0, 100).unwrap();
        // The last request had one round of its own.
        assert_eq!(copied[..copied.len() - 2], first[..copied.len() - 2]);
        assert_eq!(copied.len(), first.len() - 4, "{dialect}");
    }
}

#[tokio::test]
async fn branch_that_was_interrupted_after_its_link_is_passed_over() {
    let dialect = Dialect::Chat;
    let upstream = echo(dialect).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let settings = || windowed(config(&upstream.url()), 200_000);
    let (running, base) = proxy_with(settings(), Arc::clone(&store)).await;
    let (mut earlier, session) = sent_rounds(dialect, &base).await;
    running.shutdown().await;
    let begun = SessionId::new(format!("{session}.1")).unwrap();
    store
        .link(&begun, &SessionId::new("other").unwrap())
        .unwrap();
    let (_running, base) = proxy_with(settings(), store).await;
    earlier.round("other", &lines(50));
    let got = post(&base, path(dialect), &[], earlier.body()).await;
    assert_eq!(got.header("x-trimtab-reason"), "");
    assert_eq!(got.header("x-trimtab-session"), format!("{session}.2"));
}
