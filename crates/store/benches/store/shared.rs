//! The shared store beside the store in a folder, and its growth.

use std::sync::Arc;

use trimtab_store::{
    FolderStore, LineRange, OutputForm, Put, SessionId, SharedOptions, StagedStore, Store, Stream,
};
use trimtab_testkit::bench::BenchComparison;
use trimtab_testkit::servers::{FaultyRelay, ObjectServer, PostgresServer};

use crate::writes::text;

/// The rows of the logs whose growth is measured.
const ROWS: [u64; 2] = [1_000, 1_000_000];

pub(crate) fn all() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    // Commits must reach the disk here, as they do in the folder.
    server
        .sql("postgres", "ALTER SYSTEM SET fsync = on")
        .unwrap();
    server.sql("postgres", "SELECT pg_reload_conf()").unwrap();
    requests();
    round_trips();
    large_outputs();
    growth();
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// A store in a new database, with an object store if there is one.
fn shared() -> Option<Arc<dyn Store>> {
    let options = SharedOptions::new(PostgresServer::shared()?.new_database().unwrap());
    let options = match ObjectServer::shared() {
        Some(server) => {
            let bucket = server.new_bucket().unwrap();
            options.blobs(ObjectServer::url(&bucket, server.address()))
        }
        None => options,
    };
    Some(Arc::new(options.open().unwrap()))
}

/// A conversation that a proxy has in memory.
struct HotConversation {
    store: Arc<dyn Store>,
    staged: StagedStore,
    requests: u64,
}

impl HotConversation {
    fn new(store: Arc<dyn Store>) -> Self {
        let staged = StagedStore::new(Arc::clone(&store));
        store.touch(&session("hot")).unwrap();
        Self {
            store,
            staged,
            requests: 0,
        }
    }

    /// What a proxy asks of the store for one request: whether anything has changed, and then to
    /// write two messages, a plan and an output of 4 KB.
    fn request(&mut self) {
        let (hot, at) = (session("hot"), self.requests);
        let (_, positions) = self.store.positions(std::slice::from_ref(&hot)).unwrap();
        assert_eq!(positions, [(2 * at, at)]);
        let message = text(600, at);
        let output = text(4_000, at);
        let call = format!("call {at}");
        self.staged.put(&hot, Put::new(&call, &output)).unwrap();
        let entries: [&[u8]; 2] = [&message, &message];
        self.staged
            .append(&hot, Stream::Log, 2 * at, &entries)
            .unwrap();
        self.staged
            .append(&hot, Stream::Journal, at, &[b"plan"])
            .unwrap();
        self.staged.flush().unwrap();
        self.requests += 1;
    }
}

fn requests() {
    let Some(shared) = shared() else { return };
    let home = tempfile::tempdir().unwrap();
    let folder = Arc::new(FolderStore::open(home.path().join("store")).unwrap());
    let (mut one, mut other) = (HotConversation::new(folder), HotConversation::new(shared));
    BenchComparison::new("the store's part of a request", 300)
        .candidate("in a folder", move || one.request())
        .candidate("in PostgreSQL", move || other.request())
        .run();
}

/// How often a request waits for the database.
fn round_trips() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let relay = FaultyRelay::start(server.address()).unwrap();
    let (direct, relayed) = (server.address().to_string(), relay.address().to_string());
    let database = server.new_database().unwrap().replace(&direct, &relayed);
    let store: Arc<dyn Store> = Arc::new(SharedOptions::new(database).open().unwrap());
    let mut hot = HotConversation::new(store);
    // The first requests open connections and prepare statements.
    for _ in 0..20 {
        hot.request();
    }
    let before = relay.round_trips();
    for _ in 0..100 {
        hot.request();
    }
    let hundredths = relay.round_trips() - before;
    println!(
        "\nround trips of a request: {}.{:02}",
        hundredths / 100,
        hundredths % 100
    );
}

fn large_outputs() {
    let Some(shared) = shared() else { return };
    let home = tempfile::tempdir().unwrap();
    let folder: Arc<dyn Store> = Arc::new(FolderStore::open(home.path().join("store")).unwrap());
    let put = |store: Arc<dyn Store>, mut n: u64| {
        move || {
            n += 1;
            let bytes = text(10_000_000, n);
            store
                .put(&session("large"), Put::new("call", &bytes))
                .unwrap()
        }
    };
    BenchComparison::new("durable put of 10 MB", 7)
        .candidate("in a folder", put(Arc::clone(&folder), 0))
        .candidate("in an object store", put(Arc::clone(&shared), 0))
        .run();
    let read = |store: Arc<dyn Store>| {
        let output = store.list(&session("large")).unwrap().remove(0);
        move || {
            let id = output.reference.id();
            let opened = store.open(&session("large"), id, OutputForm::Text).unwrap();
            opened.lines(LineRange::new(50_000, 100)).unwrap()
        }
    };
    BenchComparison::new("100 lines in the middle of 10 MB, again and again", 100)
        .candidate("in a folder", read(folder))
        .candidate("in an object store", read(shared))
        .run();
}

/// A request in a conversation with a short and with a long history.
fn growth() {
    let Some(shared) = shared() else { return };
    let mut compared = BenchComparison::new("append to a log, and read its end", 200);
    for rows in ROWS {
        let name = session(&format!("{rows} rows"));
        let entry = text(300, rows);
        let batch: Vec<&[u8]> = vec![&entry; 1_000];
        for at in (0..rows).step_by(1_000) {
            shared.append(&name, Stream::Log, at, &batch).unwrap();
        }
        let (store, mut at) = (Arc::clone(&shared), rows);
        compared = compared.candidate(format!("{rows} rows"), move || {
            store.append(&name, Stream::Log, at, &[&entry]).unwrap();
            at += 1;
            store.read(&name, Stream::Log, at - 10, 10).unwrap()
        });
    }
    compared.run();
}
