//! Sessions as the tests open them, and what is read from their windows.

use std::sync::Arc;

use proptest::prelude::*;
use trimtab::engine::decide::summary::answer::SummaryEnding;
use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::{Call, Dialect, Message, Usage};
use trimtab::session::{
    Limits, Moment, ReadyWindow, Session, SessionError, Setup, SummariserAnswer,
};
use trimtab::store::{MemoryStore, SessionId, Store};

/// The presets that make every window fit.
pub(crate) fn managed() -> impl Iterator<Item = &'static str> {
    let managed = PRESETS.iter().filter(|preset| preset.fit());
    managed.map(|preset| preset.name)
}

pub(crate) fn any_managed() -> impl Strategy<Value = &'static str> {
    prop::sample::select(managed().collect::<Vec<_>>())
}

pub(crate) fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.to_vec())
}

pub(crate) fn limits(window: u64, max_output: u64) -> Limits {
    Limits {
        window: Some(window),
        max_output: Some(max_output),
        bytes: None,
    }
}

/// The setup of a preset for Messages.
pub(crate) fn setup(preset: &str, limits: Limits) -> Setup {
    setup_of(Policy::preset(preset).unwrap(), limits)
}

pub(crate) fn setup_of(policy: Policy, limits: Limits) -> Setup {
    Setup {
        dialect: Dialect::Messages,
        limits,
        ..Setup::new(policy)
    }
}

/// A session in a store of its own.
pub(crate) fn open(setup: Setup) -> Session {
    open_in(&(Arc::new(MemoryStore::new()) as Arc<dyn Store>), setup)
}

pub(crate) fn open_in(store: &Arc<dyn Store>, setup: Setup) -> Session {
    Session::open(Arc::clone(store), SessionId::new("s").unwrap(), setup).unwrap()
}

/// The session as another process opens it.
pub(crate) fn opened_again(session: &Session) -> Session {
    let (store, setup) = (session.store(), session.setup().clone());
    Session::open(Arc::clone(store), session.id().clone(), setup).unwrap()
}

/// Admits a call of a tool and its output.
pub(crate) fn run(session: &mut Session, call: Call, output: impl Into<String>) {
    let output = Message::output(&call.id, output.into());
    let asks = Message::assistant("").with_call(call);
    session.admit(asks).unwrap();
    session.admit(output).unwrap();
}

/// What happens before every call; a summary that is asked for fails.
pub(crate) fn ready(session: &mut Session) -> Result<ReadyWindow, SessionError> {
    if let Some(pending) = session.check(Moment::BeforeCall).unwrap() {
        session.finish(pending).unwrap();
    }
    session.ready()
}

pub(crate) fn messages(session: &mut Session) -> Vec<Arc<Message>> {
    session.window().unwrap().messages().cloned().collect()
}

pub(crate) fn texts(session: &mut Session) -> Vec<String> {
    let messages = messages(session).into_iter();
    messages
        .map(|message| message.text().into_owned())
        .collect()
}

/// A prompt of so many tokens.
pub(crate) fn usage(input: u64) -> Usage {
    Usage {
        input,
        ..Usage::default()
    }
}

/// A whole answer of a summariser.
pub(crate) fn summary(text: impl Into<String>) -> SummariserAnswer {
    SummariserAnswer::Text {
        text: text.into(),
        ending: SummaryEnding::Whole,
        usage: None,
    }
}
