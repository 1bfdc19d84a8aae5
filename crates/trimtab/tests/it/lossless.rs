//! The promise *Lossless*: what a window leaves out is had back by its ref, byte for byte.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use trimtab::engine::policy::Policy;
use trimtab::engine::view::trim::OutputBudget;
use trimtab::engine::view::{HeadLinesCut, LimitsCut, MiddleCut, PrefixCut, Shape, StructureCut};
use trimtab::model::{Call, Message, Output};
use trimtab::session::{Limits, Moment, Session, Setup};
use trimtab::store::{FolderStore, MemoryStore, OutputForm, SessionId, Store};
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

/// The words of a text that look like refs.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| word.len() == 16)
}

/// What is stored under a ref; none if the word is not a ref.
pub(crate) fn stored(store: &dyn Store, session: &SessionId, id: &str) -> Option<String> {
    let stored = store.open(session, id, OutputForm::Text).ok()?;
    Some(String::from_utf8(stored.bytes().unwrap()).unwrap())
}

/// The text of a window, and everything behind its refs and behind the refs in that.
pub(crate) fn in_reach(store: &dyn Store, session: &SessionId, window: String) -> String {
    let mut next: Vec<String> = words(&window).map(str::to_owned).collect();
    let mut read = window;
    let mut known = HashSet::new();
    while let Some(id) = next.pop() {
        if known.insert(id.clone())
            && let Some(text) = stored(store, session, &id)
        {
            next.extend(words(&text).map(str::to_owned));
            read.push_str(&text);
        }
    }
    read
}

/// An output of this many lines of one of five kinds.
fn printed(lines: usize, kind: usize, seed: usize) -> String {
    let line = |n: usize| match kind {
        0 => format!("src/module_{seed}/file_{n}.rs:{n}: let value_{n} = state.next_token();\n"),
        1 => format!("[{n}] step {n} of build {seed} finished without a word\n"),
        2 => format!("{{\"id\": {n}, \"name\": \"entry-{seed}-{n}\", \"ok\": true}}\n"),
        3 => format!("\u{6f22}\u{5b57} {n} \u{e9}t\u{e9} {seed}\n"),
        _ => "the same line again and again\n".to_owned(),
    };
    (0..lines).map(line).collect()
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn output_that_is_not_whole_is_behind_a_ref_of_the_window(
        rounds in prop::collection::vec(
            (prop::collection::vec((0..300usize, 0..5usize), 1..4), 0..6usize),
            1..40,
        ),
        window in prop::sample::select(vec![4_000, 8_000, 20_000, 40_000]),
    ) {
        let mut setup = Setup::new(Policy::preset("steady").unwrap());
        setup.limits = Limits { window: Some(window), max_output: Some(1), bytes: None };
        let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("s").unwrap());
        let mut session = Session::open(store.clone(), id.clone(), setup).unwrap();
        session.admit(Message::user("begin")).unwrap();
        for (number, (outputs, said)) in rounds.into_iter().enumerate() {
            let calls = (0..outputs.len()).map(|call| format!("c{number}_{call}"));
            let asks = calls.clone().fold(Message::assistant("step"), |asks, call| {
                asks.with_call(Call::new(call, "read", format!("{{\"path\":\"file_{}\"}}", number % 7)))
            });
            session.admit(asks).unwrap();
            for (call, (lines, kind)) in calls.zip(outputs) {
                session.admit(Message::output(call, printed(lines, kind, number % 5))).unwrap();
            }
            if said == 0 {
                session.admit(Message::assistant("done")).unwrap();
                session.admit(Message::user(format!("now the next thing, number {number}"))).unwrap();
            }
            session.check(Moment::BeforeCall).unwrap();
            session.ready().unwrap();
        }
        let window = session.window().unwrap().messages().map(|message| {
            let outputs = message.outputs().map(Output::text);
            outputs.fold(message.text().into_owned(), |text, output| text + &output)
        });
        let reached = in_reach(&*store, &id, window.collect::<Vec<_>>().join("\n"));
        for whole in session.projection().log().messages().iter().flat_map(|said| said.outputs()) {
            prop_assert!(reached.contains(&*whole.text()), "{} is out of reach", whole.call_id);
        }
    }
}
