//! A session that catches up with another process has its window, and decides as one that is opened
//! again. So does a fork.

use std::sync::Arc;

use trimtab::engine::policy::PRESETS;
use trimtab::model::{Call, Message};
use trimtab::session::{Moment, Session, SharedBeginning};
use trimtab::store::{MemoryStore, SessionId, Store};

use crate::common::{limits, messages, open_in, opened_again, run, setup};

/// The calls of a conversation.
const CALLS: usize = 40;

fn open(store: &Arc<dyn Store>, preset: &str) -> Session {
    open_in(store, setup(preset, limits(16_000, 500)))
}

/// One call: a round that the client adds, and the decisions before it is sent.
fn call(session: &mut Session, number: usize) {
    let id = format!("c{number}");
    let line = |at: usize| format!("{number}/{at}: {}\n", "word ".repeat((at * number) % 11));
    let output: String = (0..20 + number * 53 % 300).map(line).collect();
    run(session, Call::new(&id, "read", "{}"), output);
    for moment in [Moment::AfterOutputs, Moment::BeforeCall] {
        session.check(moment).unwrap();
    }
    if number % 11 == 5 {
        session.undo().unwrap();
    }
    // A design that may not compact by itself does not fit at some time.
    session.ready().ok();
}

#[test]
fn session_that_catches_up_has_the_window_of_one_that_is_opened_again() {
    for preset in PRESETS {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut sessions = [open(&store, preset.name), open(&store, preset.name)];
        sessions[0].admit(Message::user("begin")).unwrap();
        for number in 0..CALLS {
            // In no order, so that one is behind by one call or by several.
            let session = &mut sessions[number * number % 3 % 2];
            session.catch_up().unwrap();
            let (mut again, name) = (open(&store, preset.name), preset.name);
            assert_eq!(messages(session), messages(&mut again), "{name} {number}");
            assert_eq!(session.positions(), again.positions(), "{name} {number}");
            call(session, number);
        }
    }
}

/// Fails if a session differs from what is in its store.
#[track_caller]
fn assert_as_stored(session: &mut Session, preset: &str) {
    let mut stored = opened_again(session);
    let name = format!("{preset} {}", stored.id());
    assert_eq!(session.positions(), stored.positions(), "{name}");
    assert_eq!(messages(session), messages(&mut stored), "{name}");
    let measures = |session: &Session| {
        let length = session.projection().log().len();
        let measures = (0..length).map(|at| session.projection().measure(at).copied());
        measures.collect::<Vec<_>>()
    };
    assert_eq!(measures(session), measures(&stored), "{name}");
}

#[test]
fn fork_is_the_session_that_is_opened_from_its_copy() {
    for preset in PRESETS {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut origin = open(&store, preset.name);
        origin.admit(Message::user("begin")).unwrap();
        (0..CALLS).for_each(|number| call(&mut origin, number));
        // Both orders of a journal: as it was made, and as it is read from a store.
        for (origin, way) in [(&origin, "live"), (&open(&store, preset.name), "opened")] {
            let all = origin.projection().log().len();
            for (messages, goes_on) in (1..=all).step_by(7).zip([false, true].into_iter().cycle()) {
                let id = SessionId::new(format!("{way}-{messages}")).unwrap();
                let beginning = SharedBeginning { messages, goes_on };
                let forked = origin.fork(Arc::clone(&store), id, origin.setup().clone(), beginning);
                let mut fork = forked.unwrap();
                assert_as_stored(&mut fork, preset.name);
                let further = SharedBeginning {
                    messages: all.min(messages + messages % 11),
                    goes_on: true,
                };
                assert_eq!(fork.follow(origin, further).unwrap(), messages);
                assert_eq!(fork.projection().log().len(), further.messages);
                assert_as_stored(&mut fork, preset.name);
                call(&mut fork, CALLS + messages);
                assert_as_stored(&mut fork, preset.name);
            }
        }
    }
}
