//! The same log gives the same bytes as the Rust library, under every preset.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::Dialect;
use trimtab::request::{changes, loop_lost_reasoning};
use trimtab::session::{Limits, Moment, Session, Setup};
use trimtab::store::{FolderStore, Put, SessionId, Store};
use trimtab::wire::scan::BodyScan;
use trimtab::wire::splice::{BodyChange, splice};
use trimtab::wire::validate::validate;
use trimtab_binding::BoundSession;

use crate::talk::{open, request, rounds, rows};

const DIALECTS: [(&str, Dialect); 3] = [
    ("chat", Dialect::Chat),
    ("responses", Dialect::Responses),
    ("messages", Dialect::Messages),
];

/// Two copies of one store. Refs are derived from a secret of the session, which its first output
/// creates, so both give the same refs.
pub(crate) fn twin_stores() -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let twins = ["one", "two"].map(|name| folder.path().join(name));
    let store = FolderStore::open(&twins[0]).unwrap();
    let session = SessionId::new("default").unwrap();
    store.put(&session, Put::new("first", "")).unwrap();
    drop(store);
    let mut copy = Command::new("cp");
    let copied = copy.arg("-r").args(&twins).status().unwrap();
    assert!(copied.success());
    (folder, twins)
}

/// The window that the library gives for a request, message by message.
pub(crate) struct Library {
    session: Session,
    dialect: Dialect,
}

impl Library {
    pub(crate) fn new(store: &Path, preset: &str, dialect: Dialect) -> Self {
        let setup = Setup {
            dialect,
            limits: Limits {
                window: Some(20_000),
                max_output: Some(1_000),
                bytes: None,
            },
            ..Setup::new(Policy::preset(preset).unwrap())
        };
        let store = Arc::new(FolderStore::open(store).unwrap());
        let id = SessionId::new("default").unwrap();
        let session = Session::open(store, id, setup).unwrap();
        Self { session, dialect }
    }

    pub(crate) fn window(&mut self, body: &[u8]) -> Vec<u8> {
        let scan = BodyScan::new(body, self.dialect).unwrap();
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
        if loop_lost_reasoning(projection) {
            changes.push(BodyChange::StopThinking);
        }
        splice(&scan, &changes).unwrap().body.into_owned()
    }
}

#[test]
fn window_has_the_bytes_of_the_library_under_every_preset() {
    let all = rounds(12);
    for preset in PRESETS {
        for (name, dialect) in DIALECTS {
            let (_folder, [one, other]) = twin_stores();
            let bound = open(json!({"preset": preset.name, "dialect": name, "store": one}));
            let mut library = Library::new(&other, preset.name, dialect);
            for count in 1..=all.len() {
                let body = request(name, &all[..count]);
                let window = bound.window(&body).unwrap();
                let expected = library.window(&body);
                let [bound, library] =
                    [&window.body, &expected].map(|body| String::from_utf8_lossy(body));
                assert_eq!(bound, library, "{} {name} round {count}", preset.name);
            }
        }
    }
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
