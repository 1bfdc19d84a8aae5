//! The promise *Lossless*: what a window leaves out is had back by its ref, byte for byte.

use std::sync::Arc;

use proptest::prelude::*;
use trimtab::engine::policy::Policy;
use trimtab::engine::view::trim::OutputBudget;
use trimtab::engine::view::{HeadLinesCut, LimitsCut, MiddleCut, PrefixCut, Shape, StructureCut};
use trimtab::model::{Call, Message, Output};
use trimtab::session::{Moment, Session, Setup};
use trimtab::store::{FolderStore, MemoryStore, SessionId, Store};
use trimtab_testkit::{cases, history::hostile_text};

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::HeadLines(HeadLinesCut {
            max_bytes: 60,
            max_line_chars: 20
        })),
        Just(Shape::Middle(MiddleCut {
            max: Some(20),
            ..MiddleCut::default()
        })),
        Just(Shape::Limits(LimitsCut {
            max_lines: 4,
            spill_chars: 900,
            ..LimitsCut::default()
        })),
        Just(Shape::Prefix(PrefixCut { chars: 30 })),
        Just(Shape::Structure(StructureCut {
            cap: 300,
            ..StructureCut::default()
        })),
        Just(Shape::Structure(StructureCut {
            cap: 600,
            room_percent: 10,
            near_percent: 1,
        })),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(hostile_text(), 0..12).prop_map(|lines| lines.join("\n"))
}

/// A session whose outputs get this shape, and become placeholders above 60 tokens.
fn open(store: &Arc<dyn Store>, id: &SessionId, shape: Shape) -> Session {
    let mut policy = Policy::preset("refs").unwrap();
    policy.views.default = shape;
    policy.ageing.placeholder.budget = OutputBudget {
        tokens: Some(60),
        ..OutputBudget::default()
    };
    Session::open(Arc::clone(store), id.clone(), Setup::new(policy)).unwrap()
}

/// A session in which each output answered a call, and old ones were trimmed at the end.
fn session(store: &Arc<dyn Store>, id: &SessionId, shape: Shape, outputs: &[String]) -> Session {
    let mut session = open(store, id, shape);
    session.admit(Message::user("go")).unwrap();
    for (number, text) in outputs.iter().enumerate() {
        let call = Call::new(format!("c{number}"), "read", "{}");
        let asks = Message::assistant("").with_call(call);
        session.admit(asks).unwrap();
        let output = Message::output(format!("c{number}"), text);
        session.admit(output).unwrap();
    }
    session.check(Moment::BeforeCall).unwrap();
    session
}

/// The outputs of the window, in order.
fn shown(session: &mut Session) -> Vec<Output> {
    let window = session.window().unwrap();
    window
        .messages()
        .flat_map(|message| message.outputs().cloned().collect::<Vec<_>>())
        .collect()
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn every_output_is_had_back(shape in shape(), outputs in prop::collection::vec(text(), 1..8)) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let id = SessionId::new("s").unwrap();
        let mut session = session(&store, &id, shape, &outputs);
        for (output, whole) in shown(&mut session).iter().zip(&outputs) {
            let stored = output.stored.as_ref().unwrap();
            prop_assert_eq!(store.get(&id, stored.id()).unwrap(), whole.as_bytes());
            prop_assert!(output.trimmed || output.text() == *whole);
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn also_after_the_store_was_opened_again(
        shape in shape(),
        outputs in prop::collection::vec(text(), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (path, id) = (folder.path().join("store"), SessionId::new("s").unwrap());
        let before = {
            let store: Arc<dyn Store> = Arc::new(FolderStore::open(&path).unwrap());
            let mut session = session(&store, &id, shape.clone(), &outputs);
            shown(&mut session)
        };
        let store: Arc<dyn Store> = Arc::new(FolderStore::open(&path).unwrap());
        for (output, whole) in before.iter().zip(&outputs) {
            let stored = output.stored.as_ref().unwrap();
            prop_assert_eq!(store.get(&id, stored.id()).unwrap(), whole.as_bytes());
        }
        let mut again = open(&store, &id, shape);
        prop_assert_eq!(shown(&mut again), before);
    }
}
