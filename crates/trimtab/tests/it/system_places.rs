//! Where the client's system messages stand in windows of Messages.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use trimtab::model::{Call, Message, MessageKind, Part, Role};
use trimtab::session::Session;
use trimtab_testkit::cases;

use crate::common::{any_managed, limits, open, ready, setup};

const WINDOW: u64 = 5_000;

/// One round: how many lines its output has, and whether the system and the user say something
/// behind it.
#[derive(Clone, Copy, Debug)]
struct NotedRound {
    lines: usize,
    system: bool,
    user: bool,
}

fn round() -> impl Strategy<Value = NotedRound> {
    (0..160usize, any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(lines, system, user)| {
        NotedRound {
            lines,
            system,
            user,
        }
    })
}

/// The messages of a round, as a client sends them with its next request.
fn messages(number: usize, round: NotedRound) -> Vec<Message> {
    let id = format!("call_{number}");
    let line = |line: usize| format!("file_{number}_{line}.rs took {} ms\n", line * 31 % 1009);
    let output: String = (0..round.lines).map(line).collect();
    let mut messages = vec![
        Message::assistant("I read on.").with_call(Call::new(&id, "read", "{}")),
        Message::output(&id, output),
    ];
    if round.user {
        messages.push(Message::assistant("Read."));
        messages.push(Message::user(format!("question {number}")));
    }
    if round.system {
        messages.push(Message::system(format!("note {number}.")));
    }
    messages
}

/// The window of the next call.
fn window(session: &mut Session) -> Vec<Arc<Message>> {
    ready(session).unwrap();
    let window = session.window().unwrap();
    // A summary in the system's name goes into the field for the system prompt.
    let is_prompt = |message: &&Arc<Message>| message.meta.kind == Some(MessageKind::Summary);
    let messages = window.messages().skip_while(is_prompt);
    messages.cloned().collect()
}

/// The rules of the provider: behind the user's side, before an answer or the end.
fn assert_accepted(window: &[Arc<Message>]) -> Result<(), TestCaseError> {
    prop_assert_ne!(window[0].role, Role::System);
    for pair in window.windows(2) {
        let (before, after) = (pair[0].role, pair[1].role);
        if after == Role::System {
            prop_assert!(matches!(before, Role::User | Role::Tool), "{before:?}");
        }
        if before == Role::System {
            prop_assert_eq!(after, Role::Assistant);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn system_messages_are_accepted_complete_and_in_order(
        preset in any_managed(),
        rounds in prop::collection::vec(round(), 1..30),
    ) {
        let mut session = open(setup(preset, limits(WINDOW, 300)));
        session.admit(Message::user("read all files")).unwrap();
        let mut notes = String::new();
        for (number, round) in rounds.into_iter().enumerate() {
            window(&mut session);
            for message in messages(number, round) {
                session.admit(message).unwrap();
            }
            if round.system {
                let _ = write!(notes, "note {number}.");
            }
            let window = window(&mut session);
            assert_accepted(&window)?;
            let system = window.iter().filter(|message| message.role == Role::System);
            let parts = system.flat_map(|message| &message.parts);
            let said: String = parts.filter_map(Part::as_text).collect();
            prop_assert_eq!(&said, &notes);
        }
    }
}
