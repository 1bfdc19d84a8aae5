//! The promise *Lossless*: what a window leaves out is had back by its ref, byte for byte.

use std::sync::Arc;

use proptest::prelude::*;
use trimtab::admission::Admission;
use trimtab::engine::normalise::Options;
use trimtab::engine::plan::{Edit, Plan, Reason};
use trimtab::engine::view::policy::{ViewPolicy, Views};
use trimtab::engine::view::trim::trim_outputs;
use trimtab::engine::view::{HeadLines, Limits, Middle, Prefix, Shape, Structure};
use trimtab::engine::window::Projection;
use trimtab::model::{Call, Message, Output};
use trimtab::store::{FolderStore, MemoryStore, SessionId, Store};
use trimtab_testkit::{cases, history::hostile_text};

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::HeadLines(HeadLines {
            max_bytes: 60,
            max_line_chars: 20
        })),
        Just(Shape::Middle(Middle {
            max: Some(20),
            ..Middle::default()
        })),
        Just(Shape::Limits(Limits {
            max_lines: 4,
            spill_chars: 900,
            ..Limits::default()
        })),
        Just(Shape::Prefix(Prefix { chars: 30 })),
        Just(Shape::Structure(Structure { cap: 300 })),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(hostile_text(), 0..12).prop_map(|lines| lines.join("\n"))
}

/// A session in which each output answered a call, and old ones were trimmed at the end.
fn session(store: &Arc<dyn Store>, id: &SessionId, shape: Shape, outputs: &[String]) -> Projection {
    let policy = ViewPolicy {
        default: shape,
        ..ViewPolicy::default()
    };
    let admission = Admission::new(Arc::clone(store), id.clone(), Views::new(&policy).unwrap());
    let mut projection = Projection::new(Options::default());
    admission
        .admit(&mut projection, Message::user("go"))
        .unwrap();
    for (number, text) in outputs.iter().enumerate() {
        let call = Call::new(format!("c{number}"), "read", "{}");
        admission
            .admit(&mut projection, Message::assistant("").with_call(call))
            .unwrap();
        admission
            .admit(&mut projection, Message::output(format!("c{number}"), text))
            .unwrap();
    }
    let messages: Vec<Message> = projection
        .slots()
        .iter()
        .map(|slot| Message::clone(&slot.message))
        .collect();
    let trims = trim_outputs(&messages, 60, |_| false).into_iter();
    let edits = trims.map(|change| Edit::Show {
        message: change.message,
        part: change.part,
        output: change.output,
    });
    projection.carry_out(Plan::new(Reason::OutputsOverBudget, edits.collect()));
    projection
}

/// The outputs of the window, in order.
fn shown(projection: &mut Projection) -> Vec<Output> {
    let window = projection.window().unwrap();
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
        let mut projection = session(&store, &id, shape, &outputs);
        for (output, whole) in shown(&mut projection).iter().zip(&outputs) {
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
            let mut projection = session(&store, &id, shape.clone(), &outputs);
            shown(&mut projection)
        };
        let store: Arc<dyn Store> = Arc::new(FolderStore::open(&path).unwrap());
        for (output, whole) in before.iter().zip(&outputs) {
            let stored = output.stored.as_ref().unwrap();
            prop_assert_eq!(store.get(&id, stored.id()).unwrap(), whole.as_bytes());
        }
        // The same session again: the same refs, and so the same window.
        let mut again = session(&store, &id, shape, &outputs);
        prop_assert_eq!(shown(&mut again), before);
    }
}
