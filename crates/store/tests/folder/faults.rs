//! Compares the store with a map, under disk errors and restarts.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;
use trimtab_store::{CollectOptions, FolderOptions, FolderStore, OutputForm, Put, Store, Stream};

use super::{Home, Random, files, rounds, session};

#[derive(Clone, Debug)]
enum Step {
    Put {
        session: u8,
        call: u8,
        size: usize,
        seed: u8,
    },
    PutStream {
        session: u8,
        call: u8,
        size: usize,
        seed: u8,
    },
    Delete {
        session: u8,
        which: prop::sample::Index,
    },
    DeleteSession {
        session: u8,
    },
    Append {
        session: u8,
        size: usize,
    },
    Link {
        child: u8,
        parent: u8,
    },
    Spill {
        session: u8,
        which: prop::sample::Index,
    },
    Collect,
    Reopen,
    /// The disk fails at the n-th step from here.
    Fail {
        after: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let size = || prop_oneof![0..200_usize, 60_000..70_000_usize, 150_000..400_000_usize];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (0..3_u8, 0..4_u8, size(), 0..3_u8)
            .prop_map(|(session, call, size, seed)| Step::Put { session, call, size, seed }),
        3 => (0..3_u8, 0..4_u8, size(), 0..3_u8)
            .prop_map(|(session, call, size, seed)| Step::PutStream { session, call, size, seed }),
        2 => (0..3_u8, index()).prop_map(|(session, which)| Step::Delete { session, which }),
        1 => (0..3_u8).prop_map(|session| Step::DeleteSession { session }),
        3 => (0..3_u8, 0..2_000_usize).prop_map(|(session, size)| Step::Append { session, size }),
        1 => (0..3_u8, 0..3_u8).prop_map(|(child, parent)| Step::Link { child, parent }),
        1 => (0..3_u8, index()).prop_map(|(session, which)| Step::Spill { session, which }),
        1 => Just(Step::Collect),
        2 => Just(Step::Reopen),
        2 => (0..12_i64).prop_map(|after| Step::Fail { after }),
    ]
}

fn bytes(size: usize, seed: u8) -> Vec<u8> {
    Random(u64::from(seed) + 1).bytes(size)
}

/// What the store must hold.
#[derive(Default)]
struct Model {
    outputs: BTreeMap<(u8, String), Vec<u8>>,
    logs: BTreeMap<u8, Vec<Vec<u8>>>,
}

impl Model {
    fn pick(&self, session: u8, which: prop::sample::Index) -> Option<String> {
        let ids: Vec<_> = self
            .outputs
            .keys()
            .filter(|(owner, _)| *owner == session)
            .collect();
        (!ids.is_empty()).then(|| ids[which.index(ids.len())].1.clone())
    }
}

struct Machine {
    home: Home,
    countdown: Arc<AtomicI64>,
    store: Option<FolderStore>,
    model: Model,
}

fn name(session: u8) -> trimtab_store::SessionId {
    super::session(&format!("s{session}"))
}

impl Machine {
    fn new() -> Self {
        let mut machine = Self {
            home: Home::new(),
            countdown: Arc::new(AtomicI64::new(i64::MAX)),
            store: None,
            model: Model::default(),
        };
        machine.reopen();
        machine
    }

    fn reopen(&mut self) {
        self.store = None;
        self.countdown.store(i64::MAX, Ordering::Relaxed);
        let countdown = Arc::clone(&self.countdown);
        let fault = move |_| {
            if countdown.fetch_sub(1, Ordering::Relaxed) <= 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Ok(())
        };
        self.store = Some(
            FolderOptions::new()
                .fault(fault)
                .open(&self.home.store)
                .unwrap(),
        );
    }

    fn failing(&self) -> bool {
        self.countdown.load(Ordering::Relaxed) < 0
    }

    fn run(&mut self, step: &Step) {
        let store = self.store.as_ref().unwrap();
        match step {
            Step::Put {
                session,
                call,
                size,
                seed,
            } => {
                let bytes = bytes(*size, *seed);
                let stored = store.put(&name(*session), Put::new(&format!("c{call}"), &bytes));
                self.note(*session, stored, bytes);
            }
            Step::PutStream {
                session,
                call,
                size,
                seed,
            } => {
                let bytes = bytes(*size, *seed);
                let mut reader = &bytes[..];
                let put = format!("c{call}");
                let put = Put::from_reader(&put, &mut reader);
                let stored = store.put(&name(*session), put);
                self.note(*session, stored, bytes);
            }
            Step::Delete { session, which } => self.delete(*session, *which),
            Step::DeleteSession { session } => {
                let deleted = store.delete_session(&name(*session));
                assert!(deleted.is_ok() || self.failing() || !self.knows(*session));
                self.model.outputs.retain(|(owner, _), _| owner != session);
                self.model.logs.remove(session);
            }
            Step::Append { session, size } => {
                let entry = bytes(*size, 1);
                let log = self.model.logs.entry(*session).or_default();
                let position = log.len() as u64;
                let next = store
                    .append(&name(*session), Stream::Log, position, &[&entry])
                    .unwrap();
                assert_eq!(next, position + 1);
                log.push(entry);
            }
            Step::Link { child, parent } => {
                // Refused or not: what a session holds does not change.
                let _ = store.link(&name(*child), &name(*parent));
            }
            Step::Spill { session, which } => self.spill(*session, *which),
            Step::Collect => {
                let collected = store.collect(&CollectOptions::default());
                assert!(collected.is_ok() || self.failing());
            }
            Step::Reopen => self.reopen(),
            Step::Fail { after } => self.countdown.store(*after, Ordering::Relaxed),
        }
    }

    fn delete(&mut self, session: u8, which: prop::sample::Index) {
        let Some(id) = self.model.pick(session, which) else {
            return;
        };
        let store = self.store.as_ref().unwrap();
        // A file that cannot be removed is reported, but the output is gone.
        if store.delete(&name(session), &id).is_err() {
            assert!(self.failing());
        }
        let gone = store.metadata(&name(session), &id);
        assert!(gone.is_err_and(|error| error.is_not_found()));
        self.model.outputs.remove(&(session, id));
    }

    fn spill(&self, session: u8, which: prop::sample::Index) {
        let Some(id) = self.model.pick(session, which) else {
            return;
        };
        match self.store.as_ref().unwrap().spill(&name(session), &id) {
            Ok(spilled) => {
                let expected = &self.model.outputs[&(session, id)];
                assert_eq!(&std::fs::read(spilled.path).unwrap(), expected);
            }
            Err(_) => assert!(self.failing()),
        }
    }

    fn knows(&self, session: u8) -> bool {
        self.model.logs.contains_key(&session)
            || self
                .model
                .outputs
                .keys()
                .any(|(owner, _)| *owner == session)
    }

    fn note(
        &mut self,
        session: u8,
        stored: trimtab_store::Result<trimtab_model::Ref>,
        bytes: Vec<u8>,
    ) {
        match stored {
            Ok(reference) => {
                let key = (session, reference.id().to_owned());
                self.model.outputs.insert(key, bytes);
            }
            Err(error) => assert!(self.failing(), "{error}"),
        }
    }

    /// Everything is as the model says; nothing else is half there.
    fn check(&mut self) {
        self.countdown.store(i64::MAX, Ordering::Relaxed);
        let store = self.store.as_ref().unwrap();
        for ((owner, id), bytes) in &self.model.outputs {
            let stored = store.open(&name(*owner), id, OutputForm::Whole).unwrap();
            assert!(stored.bytes().unwrap() == *bytes, "{id}");
        }
        for owner in 0..3 {
            let log = store
                .read(&name(owner), Stream::Log, 0, usize::MAX)
                .unwrap();
            assert_eq!(
                log,
                self.model.logs.get(&owner).cloned().unwrap_or_default()
            );
            for metadata in store.list(&name(owner)).unwrap() {
                let key = (owner, metadata.reference.id().to_owned());
                assert!(
                    self.model.outputs.contains_key(&key),
                    "not acknowledged, but there"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: u32::try_from(rounds(60, 3_000)).unwrap(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn store_behaves_like_a_map_under_faults(steps in prop::collection::vec(step(), 1..40)) {
        let mut machine = Machine::new();
        for step in &steps {
            machine.run(step);
        }
        machine.check();
        machine.reopen();
        machine.check();
    }
}

/// Bytes that do not compress, so that they get a file.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed + 100);
    (0..len).map(|_| random.next().to_le_bytes()[3]).collect()
}

/// The disk fails at each step of a put in turn: nothing half-written, and it works afterwards.
#[test]
fn put_survives_a_failure_at_every_step() {
    let machine = Machine::new();
    let s = session("s0");
    let mut failed = 0;
    for after in 0.. {
        let bytes = noise(after, 500_000);
        machine
            .countdown
            .store(i64::try_from(after).unwrap(), Ordering::Relaxed);
        let store = machine.store.as_ref().unwrap();
        let stored = store.put(&s, Put::new("c", &bytes));
        let enough = !machine.failing();
        machine.countdown.store(i64::MAX, Ordering::Relaxed);
        let Err(error) = stored else {
            assert!(enough || after > 0);
            break;
        };
        assert!(matches!(error, trimtab_store::Error::Full), "{error}");
        assert!(store.list(&s).unwrap().is_empty());
        let again = store.put(&s, Put::new("c", &bytes)).unwrap();
        assert_eq!(store.get(&s, again.id()).unwrap(), bytes);
        store.delete(&s, again.id()).unwrap();
        failed += 1;
    }
    assert!(
        failed >= 5,
        "create, write, sync, rename and the folder's sync: {failed}"
    );
    let left = files(&machine.home.store.join("blobs"));
    assert!(left.len() <= 2 + failed, "{left:?}");
}
