//! One conversation, compacted in a session of its own.

use std::collections::HashSet;
use std::sync::Arc;

use trimtab::engine::compaction::audit::Coverage;
use trimtab::engine::policy::Policy;
use trimtab::request::sent;
use trimtab::session::{ByHand, Event, EventKind, Limits, Session, SessionError, Setup};
use trimtab::store::{Put, SessionId, Store};
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Ref, Role};
use trimtab_wire::splice::Sent;
use trimtab_wire::transcript::Conversation;

use super::summariser::Summariser;
use crate::exit::Failure;
use crate::verbs::output::place::explain;

/// How a conversation is to be compacted.
pub(super) struct Wishes {
    pub(super) policy: Policy,
    pub(super) limits: Limits,
    /// True if a result that does not fit the window is no result.
    pub(super) must_fit: bool,
    pub(super) instructions: String,
    pub(super) keep_turns: Option<usize>,
}

/// What became of a conversation.
pub(super) struct Carried {
    /// What is sent now, with positions in the conversation.
    pub(super) sent: Vec<Sent>,
    pub(super) session: SessionId,
    /// The transcript as it was.
    pub(super) original: Option<Ref>,
    pub(super) tokens_before: u64,
    pub(super) tokens_after: u64,
    pub(super) messages_before: usize,
    /// Messages of the conversation that are not in the window any more.
    pub(super) replaced: usize,
    /// Outputs that are shown shorter than they came.
    pub(super) shortened: Vec<Ref>,
    /// What was replaced.
    pub(super) refs: Vec<Ref>,
    pub(super) coverage: Option<Coverage>,
    /// Who wrote the summary; none if there is no summary.
    pub(super) summary_by_model: Option<bool>,
    /// What should be known besides.
    pub(super) notes: Vec<String>,
}

/// Why a conversation was not compacted.
pub(super) enum Failed {
    Store(trimtab::store::Error),
    Session(SessionError),
    Runtime(std::io::Error),
}

impl Failed {
    /// What to tell of it.
    pub(super) fn failure(&self, place: &std::path::Path) -> Failure {
        match self {
            Self::Store(error) | Self::Session(SessionError::Store(error)) => explain(place, error),
            Self::Session(error) => {
                let text = error.to_string();
                let (message, hint) = match text.split_once("\nhint: ") {
                    Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
                    None => (text, None),
                };
                Failure::Stuck { message, hint }
            }
            Self::Runtime(error) => Failure::Stuck {
                message: format!("cannot ask the model: {error}"),
                hint: None,
            },
        }
    }
}

impl From<SessionError> for Failed {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<trimtab::store::Error> for Failed {
    fn from(error: trimtab::store::Error) -> Self {
        Self::Store(error)
    }
}

/// Compacts a conversation.
pub(super) fn compact(
    (store, id): (Arc<dyn Store>, SessionId),
    conversation: &Conversation,
    original: Option<&[u8]>,
    wishes: Wishes,
    summariser: &Summariser,
) -> Result<Carried, Failed> {
    let put = |bytes: &[u8]| store.put(&id, Put::new("transcript", bytes).tool("compact"));
    let original = original.map(put).transpose()?;
    let tools = tools(conversation);
    let setup = Setup {
        dialect: conversation.form.dialect(),
        limits: wishes.limits,
        tools,
        ..Setup::new(wishes.policy)
    };
    let mut session = Session::open(Arc::clone(&store), id.clone(), setup)?;
    let positions = positions(conversation);
    let messages = positions
        .iter()
        .filter_map(|at| conversation.messages.get(*at));
    let mut before = Measure::default();
    for message in messages {
        before += Measure::of(message);
        session.admit(message.clone())?;
    }
    let by_hand = ByHand {
        instructions: wishes.instructions,
        keep_turns: wishes.keep_turns,
    };
    if let Some(pending) = session.compact(&by_hand)? {
        let answered = summariser.answer(pending, conversation);
        session.finish(answered.map_err(Failed::Runtime)?)?;
    }
    let mut notes = Vec::new();
    match session.ready() {
        Ok(_) => {}
        Err(error @ (SessionError::TooLarge(_) | SessionError::OverBudget { .. }))
            if !wishes.must_fit =>
        {
            notes.push(
                error
                    .to_string()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        Err(error) => return Err(error.into()),
    }
    let events = session.events();
    notes.extend(events.iter().filter_map(|event| event.note.clone()));
    let window = session.window()?;
    let after = window.measures().total();
    let sent = placed(sent(window), conversation, &positions);
    Ok(Carried {
        session: id,
        original,
        tokens_before: (before + tools).tokens(),
        tokens_after: (after + tools).tokens(),
        messages_before: positions.len(),
        replaced: positions.len() - sent.iter().filter(|entry| entry.from.is_some()).count(),
        shortened: shortened(&sent),
        refs: refs(&events),
        coverage: events.iter().rev().find_map(|event| event.coverage),
        summary_by_model: summary(&events),
        notes,
        sent,
    })
}

/// The positions of what the model was sent last: the system messages at the head and
/// everything since the last compaction.
fn positions(conversation: &Conversation) -> Vec<usize> {
    let messages = &conversation.messages;
    let start = conversation.compactions.last().copied().unwrap_or(0);
    let is_system = |message: &&Message| message.role == Role::System;
    let head = messages.iter().take(start).take_while(is_system).count();
    (0..head).chain(start..messages.len()).collect()
}

/// What is sent, with positions in the conversation. A message that a plan kept by putting it
/// in again is known by what it says, so that it keeps its bytes.
fn placed(mut sent: Vec<Sent>, conversation: &Conversation, positions: &[usize]) -> Vec<Sent> {
    for entry in &mut sent {
        entry.from = entry.from.and_then(|at| positions.get(at).copied());
    }
    let used: HashSet<usize> = sent.iter().filter_map(|entry| entry.from).collect();
    let free = positions.iter().filter(|at| !used.contains(at));
    let mut free: Vec<(usize, &Message)> = free
        .filter_map(|at| Some((*at, conversation.messages.get(*at)?)))
        .collect();
    for entry in sent.iter_mut().filter(|entry| entry.from.is_none()) {
        let same = |message: &Message| {
            message.role == entry.message.role && message.parts == entry.message.parts
        };
        if let Some(found) = free.iter().position(|(_, message)| same(message)) {
            entry.from = Some(free.remove(found).0);
        }
    }
    sent
}

fn tools(conversation: &Conversation) -> Measure {
    let mut measure = Measure::default();
    for tool in &conversation.tools {
        measure += Measure::of_text(tool.as_str());
    }
    measure
}

fn shortened(sent: &[Sent]) -> Vec<Ref> {
    let outputs = sent.iter().flat_map(|entry| entry.message.outputs());
    let trimmed = outputs.filter(|output| output.trimmed);
    trimmed.filter_map(|output| output.stored.clone()).collect()
}

fn refs(events: &[Event]) -> Vec<Ref> {
    let mut refs: Vec<Ref> = Vec::new();
    for found in events.iter().flat_map(|event| &event.refs) {
        if !refs.contains(found) {
            refs.push(found.clone());
        }
    }
    refs
}

fn summary(events: &[Event]) -> Option<bool> {
    let compacted = events
        .iter()
        .rev()
        .find(|event| event.kind == EventKind::Compacted);
    compacted.map(|event| event.by_model)
}
