//! A session that makes one call after another, as an agent does.

use std::fmt::Write as _;
use std::sync::Arc;

use trimtab::engine::decide::summary::answer::SummaryEnding;
use trimtab::engine::policy::Policy;
use trimtab::model::{Call, Dialect, Message, Output, Usage};
use trimtab::session::{Limits, Moment, Session, Setup, SummariserAnswer};
use trimtab::store::{MemoryStore, SessionId};

/// How large the model's window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It is full after fewer than a hundred rounds.
    Compacts,
    /// It holds everything.
    NeverFills,
}

impl Room {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Compacts, Self::NeverFills];

    fn tokens(self) -> u64 {
        match self {
            Self::Compacts => 16_000,
            Self::NeverFills => 1_000_000_000,
        }
    }
}

/// A session that makes one call after another.
pub(super) struct Talk {
    #[allow(dead_code, reason = "the benchmark does not read it")]
    pub(super) store: Arc<MemoryStore>,
    session: Session,
    rounds: usize,
}

impl Talk {
    /// A session that begins.
    pub(super) fn new(preset: &str, dialect: Dialect, room: Room) -> Self {
        let setup = Setup {
            dialect,
            limits: Limits {
                window: Some(room.tokens()),
                max_output: Some(1_000),
                bytes: None,
            },
            ..Setup::new(Policy::preset(preset).expect("a preset"))
        };
        let id = SessionId::new("growth").expect("a name");
        let store = Arc::new(MemoryStore::new());
        let session = Session::open(store.clone(), id, setup).expect("a session");
        let mut talk = Self {
            store,
            session,
            rounds: 0,
        };
        talk.admit(Message::user("Port the service to the new API."));
        talk
    }

    /// The same session after so many rounds.
    pub(super) fn at_round(mut self, rounds: usize) -> Self {
        while self.rounds < rounds {
            self.call();
        }
        self
    }

    /// The same session once its log has so many messages.
    #[allow(dead_code, reason = "the test counts rounds only")]
    pub(super) fn with_messages(mut self, messages: usize) -> Self {
        while self.session.projection().log().len() < messages {
            self.call();
        }
        self
    }

    /// All that an agent does for one call, from the last answer to the next window.
    pub(super) fn call(&mut self) -> usize {
        let round = self.rounds;
        self.rounds += 1;
        let id = format!("call_{round:05}");
        let arguments = format!("{{\"path\":\"src/module_{round:05}/handler.rs\"}}");
        let asks = Message::assistant("next").with_call(Call::new(&id, "read_file", arguments));
        self.admit(asks);
        self.pass(Moment::AfterAnswer);
        self.admit(Message::output(&id, output(round)));
        self.pass(Moment::AfterOutputs);
        self.pass(Moment::BeforeCall);
        let tokens = self.session.ready().expect("it fits").tokens;
        let messages = self.session.window().expect("it is valid").messages().len();
        let usage = Usage {
            input: tokens,
            output: 20,
            ..Usage::default()
        };
        self.session.record(&usage).expect("it is recorded");
        self.session.events();
        messages
    }

    /// The texts of the current window.
    #[allow(dead_code, reason = "the benchmark does not read them")]
    pub(super) fn window(&mut self) -> Vec<String> {
        let window = self.session.window().expect("it is valid");
        window.messages().map(|message| shown(message)).collect()
    }

    fn admit(&mut self, message: Message) {
        self.session.admit(message).expect("it is admitted");
    }

    /// Passes through a moment; a summary that is asked for is there at once.
    fn pass(&mut self, moment: Moment) {
        let Some(mut pending) = self.session.check(moment).expect("it is checked") else {
            return;
        };
        while pending.request().is_some() {
            pending.answer(SummariserAnswer::Text {
                text: "<summary>Some handlers are ported, the others are next.</summary>".into(),
                ending: SummaryEnding::Whole,
                usage: None,
            });
        }
        self.session.finish(pending).expect("it is finished");
    }
}

/// What a message says, and what its outputs show.
fn shown(message: &Message) -> String {
    let outputs = message.outputs().map(Output::text);
    outputs.fold(message.text().into_owned(), |text, output| text + &output)
}

/// What a tool gives back: two long outputs, then a short one. A hundred of them are more than
/// any preset leaves as they are. Numbers have a fixed width, so that late outputs are as long
/// as early ones: longer ones would fill the window in fewer rounds.
fn output(round: usize) -> String {
    let lines = if round % 3 == 2 { 10 } else { 90 };
    let mut text = String::new();
    for line in 0..lines {
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "    let item_{line} = lookup(\"key-{round:05}-{line}\")?;"
        );
    }
    text
}
