//! The front door: a session under a preset, and the case inside a conversation of it.
//!
//! Every preset keeps what the user said first and last, and carries out no plan that does not
//! make the window smaller. The conversations of the cases are of a few words each, so they are
//! put behind a task and a long answer, and before a question where the case leaves none. These
//! messages are the frame; results are given without it.

use std::sync::Arc;

use serde_json::Value;
use trimtab::engine::decide::summary::answer::SummaryEnding;
use trimtab::engine::normalise::{EntryChange, MessageSource, Slot};
use trimtab::engine::policy::Policy;
use trimtab::model::{Message, MessageKind, Role};
use trimtab::session::{
    Limits, ManualCompaction, PendingSummary, Session, SessionEvent, Setup, SummariserAnswer,
};
use trimtab::store::{MemoryStore, SessionId, Store};

use crate::ops::{Must, Ran, written};

const TASK: &str = "(frame) the task";
const ANSWER: &str = "(frame) a long answer";
const QUESTION: &str = "(frame) the question";

/// A preset by name.
pub(crate) fn preset(name: &str) -> Policy {
    Policy::preset(name).unwrap_or_default()
}

/// A session of its own under `policy`.
pub(crate) fn open(policy: Policy, limits: Limits) -> Ran<Session> {
    open_in(Arc::new(MemoryStore::new()), policy, limits)
}

/// The same in a store.
pub(crate) fn open_in(store: Arc<dyn Store>, policy: Policy, limits: Limits) -> Ran<Session> {
    // The texts of the designs name no tool of ours.
    let setup = Setup {
        limits,
        retrieval: None,
        ..Setup::new(policy)
    };
    let id = SessionId::new("case").must("session")?;
    Session::open(store, id, setup).must("session")
}

/// The session with these messages.
pub(crate) fn admitted(mut session: Session, messages: Vec<Message>) -> Ran<Session> {
    for message in messages {
        session.admit(message).must("admit")?;
    }
    Ok(session)
}

/// The messages that the session would send, without those that a repair made: cases that are
/// not about repairs leave them out.
pub(crate) fn window(session: &mut Session) -> Ran<Vec<Arc<Message>>> {
    let entries = session.window().must("window")?.entries().iter();
    let sent = entries.filter(|entry| entry.change != EntryChange::Made);
    let sent = sent.map(|entry| Arc::clone(&entry.message));
    Ok(sent.filter(|message| !is_frame(message)).collect())
}

/// Messages in the words of a case: what our store adds to an output is not in it.
pub(crate) fn in_words(messages: &[Arc<Message>]) -> Value {
    let mut list = written(messages.iter().map(|message| &**message));
    for message in list.as_array_mut().into_iter().flatten() {
        let fields = message.as_object_mut();
        fields.map(|fields| fields.remove("output_ref"));
    }
    list
}

/// How a summariser answers.
pub(crate) fn says(text: &str) -> SummariserAnswer {
    SummariserAnswer::Text {
        text: text.to_owned(),
        ending: SummaryEnding::Whole,
        usage: None,
    }
}

/// The question of the frame.
pub(crate) enum Question {
    /// None: the case has the newest message of the user.
    None,
    /// One that a budget for messages of the user does not count.
    Free,
    /// One without text, which takes nothing of any budget. No window sends it.
    Silent,
}

impl Question {
    fn message(&self) -> Option<Message> {
        match self {
            Self::None => None,
            Self::Free => Some(Message::user(format!("{QUESTION} <turn-aborted>"))),
            Self::Silent => Some(Message::user("")),
        }
    }
}

/// A case inside a conversation.
pub(crate) struct Framed {
    pub(crate) session: Session,
    /// How often the summariser was asked.
    pub(crate) asked: usize,
    /// What the session told.
    pub(crate) events: Vec<SessionEvent>,
    /// How many messages the case has.
    length: usize,
    /// Where the question of the frame stands that has no text.
    silent: Option<usize>,
}

impl Framed {
    /// The case with its frame under `policy`.
    pub(crate) fn new(
        policy: Policy,
        limits: Limits,
        case: Vec<Message>,
        question: &Question,
    ) -> Ran<Self> {
        let length = case.len();
        let system = case.iter().take_while(|one| one.role == Role::System);
        let front = system.count();
        let mut messages = case;
        let answer = format!("{ANSWER} {}", "and so on ".repeat(400));
        messages.insert(front, Message::user(TASK));
        messages.insert(front + 1, Message::assistant(answer));
        messages.extend(question.message());
        let silent = matches!(question, Question::Silent).then(|| messages.len() - 1);
        Ok(Self {
            session: admitted(open(policy, limits)?, messages)?,
            asked: 0,
            events: Vec::new(),
            length,
            silent,
        })
    }

    /// A conversation with nothing in it.
    pub(crate) fn bare(policy: Policy) -> Ran<Self> {
        Ok(Self {
            session: open(policy, Limits::default())?,
            asked: 0,
            events: Vec::new(),
            length: 0,
            silent: None,
        })
    }

    /// Compacts by hand, the summariser giving this answer. True if something changed.
    pub(crate) fn compact(&mut self, answer: &SummariserAnswer) -> Ran<bool> {
        let pending = self.session.compact(&ManualCompaction::default());
        match pending.must("compact")? {
            Some(pending) => self.finish(pending, answer),
            None => Ok(false),
        }
    }

    /// Finishes what waits for a summary.
    pub(crate) fn finish(
        &mut self,
        mut pending: PendingSummary,
        answer: &SummariserAnswer,
    ) -> Ran<bool> {
        while pending.request().is_some() {
            self.asked += 1;
            pending.answer(answer.clone());
        }
        let done = self.session.finish(pending).must("finish")?;
        self.events.extend(self.session.events());
        Ok(done)
    }

    /// The slots of the case, and of what was put in for it.
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.session.projection().slots().iter();
        let is_silent = |slot: &Slot| self.silent.map(MessageSource::Log) == Some(slot.source);
        slots.filter(move |slot| !is_frame(&slot.message) && !is_silent(slot))
    }

    /// The messages before repairs, where a case has outputs without calls, which no window
    /// sends.
    pub(crate) fn before_repairs(&self) -> Vec<Arc<Message>> {
        self.slots().map(|slot| Arc::clone(&slot.message)).collect()
    }

    /// True if every message of the case is still there.
    pub(crate) fn keeps_the_case(&self) -> bool {
        self.slots().filter(|slot| !is_made(slot)).count() == self.length
    }
}

fn is_made(slot: &Slot) -> bool {
    matches!(slot.source, MessageSource::Inserted(_)) && slot.message.meta.kind.is_some()
}

fn is_frame(message: &Message) -> bool {
    let text = message.text();
    [TASK, ANSWER, QUESTION]
        .iter()
        .any(|start| text.starts_with(start))
}

/// True for the summary of a compaction.
pub(crate) fn is_summary(message: &Message) -> bool {
    message.meta.kind == Some(MessageKind::Summary)
}
