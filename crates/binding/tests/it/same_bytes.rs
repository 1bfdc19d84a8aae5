//! The same log gives the same bytes as the Rust library, under every preset.

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::Dialect;
use trimtab::request::{binds_reasoning, changes};
use trimtab::session::{Limits, Moment, Session, Setup};
use trimtab::store::{FolderStore, MemoryStore, Put, SessionId, Store, copy_store};
use trimtab::wire::scan::BodyScan;
use trimtab::wire::splice::splice;
use trimtab::wire::validate::validate;
use trimtab_binding::BoundSession;

use crate::talk::{Round, open, open_in, request, rounds, rows};

/// A dialect and its name in the options.
pub(crate) type Spoken = (&'static str, Dialect);

const DIALECTS: [Spoken; 3] = [
    ("chat", Dialect::Chat),
    ("responses", Dialect::Responses),
    ("messages", Dialect::Messages),
];

/// Two stores that give the same refs, which are derived from a secret of the session. Its first
/// output creates the secret.
fn twin_stores() -> [Arc<dyn Store>; 2] {
    let (one, other) = (MemoryStore::new(), MemoryStore::new());
    one.put(&session_id(), Put::new("first", "")).unwrap();
    copy_store(&one, &other, &mut |_| {}).unwrap();
    [Arc::new(one), Arc::new(other)]
}

fn session_id() -> SessionId {
    SessionId::new("default").unwrap()
}

/// The window that the library gives for a request, message by message.
struct Library {
    session: Session,
    dialect: Dialect,
}

impl Library {
    fn new(store: Arc<dyn Store>, preset: &str, dialect: Dialect) -> Self {
        let setup = Setup {
            dialect,
            limits: Limits {
                window: Some(20_000),
                max_output: Some(1_000),
                bytes: None,
            },
            ..Setup::new(Policy::preset(preset).unwrap())
        };
        let session = Session::open(store, session_id(), setup).unwrap();
        Self { session, dialect }
    }

    fn window(&mut self, body: &[u8]) -> Vec<u8> {
        let scan = BodyScan::new(body, self.dialect).unwrap();
        let bound = binds_reasoning(&scan, None);
        self.session.set_bound_reasoning(bound).unwrap();
        let known = self.session.projection().log().len();
        for message in scan.messages(known) {
            self.session.admit(message.unwrap()).unwrap();
        }
        if let Some(pending) = self.session.check(Moment::BeforeCall).unwrap() {
            self.session.finish(pending).unwrap();
        }
        let _ = self.session.ready();
        self.session.window().unwrap();
        let projection = self.session.projection();
        let mut changes = changes(projection.log(), projection.last_window(), self.dialect);
        // A request that providers accept needs no repair.
        if projection.is_unedited() && validate(&scan).is_empty() {
            changes.clear();
        }
        splice(&scan, &changes).unwrap().body.into_owned()
    }
}

/// Checks that both give the same windows for these requests.
pub(crate) fn check_same(preset: &str, (name, dialect): Spoken, requests: &[Vec<u8>]) {
    let [one, other] = twin_stores();
    let bound = open_in(one, json!({"preset": preset, "dialect": name}));
    let mut library = Library::new(other, preset, dialect);
    for (call, body) in requests.iter().enumerate() {
        let (ours, expected) = (bound.window(body).unwrap().body, library.window(body));
        // Both may be too long to be printed.
        let mut bytes = ours.iter().zip(&expected);
        let differs = bytes.position(|(one, other)| one != other);
        let sizes = [ours.len(), expected.len()];
        let is_same = differs.is_none() && sizes[0] == sizes[1];
        assert!(
            is_same,
            "{preset}, {name}, call {call}: {differs:?} of {sizes:?}"
        );
    }
}

/// The requests of a conversation that grows by a round at each call.
fn requests(dialect: &str, all: &[Round]) -> Vec<Vec<u8>> {
    let counts = 1..=all.len();
    counts
        .map(|count| request(dialect, &all[..count]))
        .collect()
}

#[test]
fn window_has_the_bytes_of_the_library_under_every_preset() {
    for preset in PRESETS {
        for spoken in DIALECTS {
            check_same(preset.name, spoken, &requests(spoken.0, &rounds(12)));
        }
    }
}

/// Files have random names, so the file is written before the store is copied. The rounds are too
/// few for a compaction: refs of messages that name folders would differ.
#[test]
fn window_that_names_a_file_has_the_bytes_of_the_library() {
    let log = "one line of a large log\n".repeat(20_000);
    let mut all = rounds(3);
    all[2].outputs[1].clone_from(&log);
    let folder = tempfile::tempdir().unwrap();
    let twins = ["one", "two"].map(|name| folder.path().join(name));
    let store = FolderStore::open(&twins[0]).unwrap();
    let put = Put::new("call_2_b", log.as_str()).tool("read");
    let stored = store.put(&session_id(), put).unwrap();
    let file = store.spill(&session_id(), stored.id()).unwrap().path;
    drop(store);
    let copied = Command::new("cp").arg("-r").args(&twins).status().unwrap();
    assert!(copied.success());

    let [place, other] = twins.each_ref().map(|path| path.to_str().unwrap());
    let bound = open(json!({"preset": "archive", "store": place}));
    let twin = Arc::new(FolderStore::open(&twins[1]).unwrap());
    let mut library = Library::new(twin, "archive", Dialect::Chat);
    let mut last = String::new();
    for body in requests("chat", &all) {
        last = String::from_utf8(bound.window(&body).unwrap().body).unwrap();
        let expected = String::from_utf8(library.window(&body)).unwrap();
        assert_eq!(last.replace(place, other), expected);
    }
    assert!(last.contains(file.to_str().unwrap()), "{last}");
}

#[test]
fn reopened_session_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let options = json!({"preset": "steady", "store": folder.path().join("store")});
    let all = rounds(8);
    let body = request("chat", &all);
    let first = {
        let session = open(options.clone());
        for count in 1..all.len() {
            session.window(&request("chat", &all[..count])).unwrap();
        }
        session.window(&body).unwrap()
    };
    let again = open(options).window(&body).unwrap();
    assert_eq!(first.body, again.body);
    assert_eq!(first.sources, again.sources);
}

#[test]
fn sources_name_the_rows_that_are_the_hosts_own() {
    for preset in PRESETS {
        for (name, _) in DIALECTS {
            let session = open(json!({"preset": preset.name, "dialect": name}));
            let body = request(name, &rounds(10));
            let window = session.window(&body).unwrap();
            let (came, sent) = (rows(&body), rows(&window.body));
            assert_eq!(window.sources.len(), sent.len(), "{} {name}", preset.name);
            let own = window.sources.iter().zip(&sent);
            let own: Vec<(usize, &Value)> = own
                .filter_map(|(source, row)| Some(((*source)?, row)))
                .collect();
            assert!(own.is_sorted_by_key(|(at, _)| *at));
            assert!(own.iter().all(|(at, row)| came[*at] == **row));
            let others = window.sources.iter().zip(&sent);
            let others = others.filter(|(source, _)| source.is_none());
            let others: Vec<&Value> = others.map(|(_, row)| row).collect();
            let changed: Vec<Value> = serde_json::from_slice(&window.changed).unwrap();
            assert!(others.into_iter().eq(&changed), "{} {name}", preset.name);
            let text = String::from_utf8(window.body).unwrap();
            assert!(text.contains(r#""x_host":[1.5]"#), "{} {name}", preset.name);
        }
    }
}

/// A session may be shared by threads.
#[test]
fn bound_session_is_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<BoundSession>();
}
