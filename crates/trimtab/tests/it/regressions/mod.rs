//! What users of other tools complained about, theme by theme: none of it happens here.

mod limits;
mod recovery;
mod summaries;
mod survivors;
mod thoughts;

use std::ops::Range;

use trimtab::model::{Call, Message};
use trimtab::session::{ManualCompaction, PendingSummary, Session, SessionEvent, SessionEventKind};

use crate::common::{self, limits, managed, setup, setup_of, summary, texts, usage};

fn open(preset: &str, window: u64) -> Session {
    common::open(setup(preset, limits(window, 500)))
}

fn round(session: &mut Session, number: usize, output: &str) {
    let id = format!("call_{number}");
    let call = Call::new(&id, "bash", format!("{{\"command\":\"step {number}\"}}"));
    admit(session, Message::assistant("on it").with_call(call));
    admit(session, Message::output(&id, output));
}

/// Rounds whose outputs repeat a line so many times.
fn rounds(session: &mut Session, numbers: Range<usize>, word: &str, lines: usize) {
    for number in numbers {
        round(session, number, &format!("{word} {number}\n").repeat(lines));
    }
}

fn answered(mut pending: PendingSummary, text: &str) -> (PendingSummary, Vec<Message>) {
    let mut asked = Vec::new();
    while let Some(request) = pending.request() {
        asked.extend(request.messages);
        pending.answer(summary(text));
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

fn kinds(events: &[SessionEvent]) -> Vec<SessionEventKind> {
    events.iter().map(|event| event.kind).collect()
}
