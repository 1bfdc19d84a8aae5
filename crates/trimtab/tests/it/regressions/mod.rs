//! What users of other tools complained about, theme by theme: none of it happens here.

mod limits;
mod recovery;
mod summaries;
mod survivors;
mod thoughts;

use std::sync::Arc;

use trimtab::engine::decide::summary::answer::SummaryEnding;
use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::{Call, Dialect, Message, Usage};
use trimtab::session::{
    Limits, ManualCompaction, PendingSummary, Session, SessionEvent, SessionEventKind, Setup,
    SummariserAnswer,
};
use trimtab::store::{MemoryStore, SessionId, Store};

fn open_with(policy: Policy, limits: Limits) -> Session {
    let setup = Setup {
        dialect: Dialect::Messages,
        limits,
        ..Setup::new(policy)
    };
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    Session::open(store, SessionId::new("s").unwrap(), setup).unwrap()
}

fn open(preset: &str, window: u64) -> Session {
    let limits = Limits {
        window: Some(window),
        max_output: Some(500),
        bytes: None,
    };
    open_with(Policy::preset(preset).unwrap(), limits)
}

fn managed() -> impl Iterator<Item = &'static str> {
    PRESETS
        .iter()
        .filter(|preset| preset.fit())
        .map(|preset| preset.name)
}

fn round(session: &mut Session, number: usize, output: &str) {
    let id = format!("call_{number}");
    let call = Call::new(&id, "bash", format!("{{\"command\":\"step {number}\"}}"));
    admit(session, Message::assistant("on it").with_call(call));
    admit(session, Message::output(&id, output));
}

fn answered(mut pending: PendingSummary, text: &str) -> (PendingSummary, Vec<Message>) {
    let mut asked = Vec::new();
    while let Some(request) = pending.request() {
        asked.extend(request.messages);
        pending.answer(SummariserAnswer::Text {
            text: text.to_owned(),
            ending: SummaryEnding::Whole,
            usage: None,
        });
    }
    (pending, asked)
}

fn admit(session: &mut Session, message: Message) {
    session.admit(message).unwrap();
}

/// A compaction by hand, before its summary is written.
fn by_hand(session: &mut Session) -> PendingSummary {
    let pending = session.compact(&ManualCompaction::default());
    pending.unwrap().unwrap()
}

/// True if a compaction with this summary was executed.
fn finished(session: &mut Session, pending: PendingSummary, summary: &str) -> bool {
    session.finish(answered(pending, summary).0).unwrap()
}

fn texts(session: &mut Session) -> Vec<String> {
    let window = session.window().unwrap();
    window
        .messages()
        .map(|message| message.text().into_owned())
        .collect()
}

fn kinds(events: &[SessionEvent]) -> Vec<SessionEventKind> {
    events.iter().map(|event| event.kind).collect()
}

fn usage(prompt: u64) -> Usage {
    Usage {
        input: prompt,
        ..Usage::default()
    }
}
