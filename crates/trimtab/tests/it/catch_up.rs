//! A session that catches up with another process has its window, and decides as one that is opened
//! again.

use std::sync::Arc;

use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::session::{Limits, Moment, Session, Setup};
use trimtab_model::{Call, Message};
use trimtab_store::{MemoryStore, SessionId, Store};

/// The calls of a conversation.
const CALLS: usize = 40;

fn open(store: &Arc<dyn Store>, preset: &str) -> Session {
    let setup = Setup {
        limits: Limits {
            window: Some(16_000),
            max_output: Some(500),
            bytes: None,
        },
        ..Setup::new(Policy::preset(preset).unwrap())
    };
    Session::open(Arc::clone(store), SessionId::new("s").unwrap(), setup).unwrap()
}

/// The messages of the window.
fn window(session: &mut Session) -> Vec<Arc<Message>> {
    session.window().unwrap().messages().cloned().collect()
}

/// One call: a round that the client adds, and the decisions before it is sent.
fn call(session: &mut Session, number: usize) {
    let id = format!("c{number}");
    let line = |at: usize| format!("{number}/{at}: {}\n", "word ".repeat((at * number) % 11));
    let output: String = (0..20 + number * 53 % 300).map(line).collect();
    let asks = Message::assistant("reading").with_call(Call::new(&id, "read", "{}"));
    session.admit(asks).unwrap();
    session.admit(Message::output(&id, output)).unwrap();
    for moment in [Moment::AfterOutputs, Moment::BeforeCall] {
        session.check(moment).unwrap();
    }
    if number % 7 == 3 {
        session.pin(number, true).unwrap();
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
            assert_eq!(window(session), window(&mut again), "{name} {number}");
            assert_eq!(session.positions(), again.positions(), "{name} {number}");
            call(session, number);
        }
    }
}
