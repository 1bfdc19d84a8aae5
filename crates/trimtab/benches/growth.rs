//! What one more call of a session costs, at its hundredth round and at its five thousandth.

#![expect(
    clippy::expect_used,
    reason = "a benchmark may stop where a test would"
)]

use std::fmt::Write as _;
use std::sync::Arc;

use trimtab::engine::policy::Policy;
use trimtab::model::{Call, Message, Usage};
use trimtab::session::{Limits, Moment, Session, Setup};
use trimtab::store::{MemoryStore, SessionId};
use trimtab_testkit::bench::Comparison;

const ROUNDS: [usize; 3] = [100, 1_000, 5_000];
const CALLS: usize = 300;

fn main() {
    for preset in ["steady", "refs"] {
        let title = format!("one more call under {preset}");
        let mut comparison = Comparison::new(title, CALLS);
        for rounds in ROUNDS {
            let mut talk = Talk::new(preset);
            for _ in 0..rounds {
                talk.call();
            }
            let name = format!("at round {rounds}");
            comparison = comparison.candidate(name, move || talk.call());
        }
        comparison.run();
    }
}

/// A session that is called again and again.
struct Talk {
    session: Session,
    rounds: usize,
}

impl Talk {
    fn new(preset: &str) -> Self {
        let mut setup = Setup::new(Policy::preset(preset).expect("a preset"));
        setup.limits = Limits {
            window: Some(20_000_000),
            max_output: Some(8_000),
            bytes: None,
        };
        let id = SessionId::new("growth").expect("a name");
        let store = Arc::new(MemoryStore::new());
        let mut session = Session::open(store, id, setup).expect("a session");
        let asks = Message::user("Port the service to the new API.");
        session.admit(asks).expect("it is admitted");
        Self { session, rounds: 0 }
    }

    /// All that an agent does for one call.
    fn call(&mut self) -> u64 {
        let round = self.rounds;
        self.rounds += 1;
        let id = format!("call_{round}");
        let arguments = format!("{{\"path\":\"src/module_{round}/handler.rs\"}}");
        let asks = Message::assistant("next").with_call(Call::new(&id, "read_file", arguments));
        let session = &mut self.session;
        session.admit(asks).expect("it is admitted");
        let output = Message::output(&id, output(round));
        session.admit(output).expect("it is admitted");
        for moment in [Moment::AfterOutputs, Moment::BeforeCall] {
            session.check(moment).expect("it is checked");
        }
        let tokens = session.ready().expect("it fits").tokens;
        let usage = Usage {
            input: tokens,
            output: 20,
            ..Usage::default()
        };
        session.record(&usage).expect("it is recorded");
        session.events();
        tokens
    }
}

fn output(round: usize) -> String {
    let mut text = String::new();
    for line in 0..20 {
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "    let item_{line} = lookup(\"key-{round}-{line}\")?;"
        );
    }
    text
}
