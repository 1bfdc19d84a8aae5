//! Compacts one conversation in a new session of the store.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use trimtab::engine::policy::Policy;
use trimtab::engine::policy::SummaryPlacement;
use trimtab::engine::view::tools::READ;
use trimtab::request::sent_messages;
use trimtab::session::{
    Limits, ManualCompaction, Session, SessionError, SessionEvent, SessionEventKind, Setup,
};
use trimtab::store::{Put, SessionId, Store};
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind, Part, Ref, Role};
use trimtab_wire::splice::SentMessage;
use trimtab_wire::transcript::Conversation;

use super::earlier_run::{self, is_own_summary};
use super::summariser::CompactSummariser;
use crate::exit::Failure;
use crate::verbs::output::store_location::explain;

/// A lease that does not end.
const FOREVER: Duration = Duration::MAX;

/// The options of a compaction.
pub(super) struct CompactOptions {
    pub(super) policy: Policy,
    pub(super) limits: Limits,
    /// True if a result that does not fit the window is an error.
    pub(super) must_fit: bool,
    pub(super) instructions: String,
    pub(super) keep_turns: Option<usize>,
    /// The command that reads a ref.
    pub(super) read_command: String,
}

/// The result of a compaction.
pub(super) struct CompactedConversation {
    /// The new window, with positions in the original conversation.
    pub(super) sent: Vec<SentMessage>,
    pub(super) session: SessionId,
    /// The command that reads a ref.
    pub(super) read_command: String,
    /// The ref of the original transcript.
    pub(super) original: Option<Ref>,
    pub(super) tokens_before: u64,
    pub(super) tokens_after: u64,
    pub(super) messages_before: usize,
    /// The number of messages that left the window.
    pub(super) replaced: usize,
    /// Outputs that are shown shorter than before.
    pub(super) shortened: Vec<Ref>,
    /// The refs of the replaced messages.
    pub(super) refs: Vec<Ref>,
    /// True if a model wrote the summary, false if it is deterministic, none without a summary.
    pub(super) summary_by_model: Option<bool>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// The reasons why a compaction fails.
pub(super) enum CompactError {
    Store(trimtab::store::Error),
    Session(SessionError),
    Runtime(std::io::Error),
}

impl CompactError {
    /// The failure to report.
    pub(super) fn failure(&self, place: &std::path::Path) -> Failure {
        match self {
            Self::Store(error) | Self::Session(SessionError::Store(error)) => {
                explain(&place.display(), error)
            }
            Self::Session(error) => {
                let text = error.to_string();
                let (message, hint) = match text.split_once("\nhint: ") {
                    Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
                    None => (text, None),
                };
                Failure::WithHint { message, hint }
            }
            Self::Runtime(error) => Failure::WithHint {
                message: format!("cannot call the model: {error}"),
                hint: None,
            },
        }
    }
}

impl From<SessionError> for CompactError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<trimtab::store::Error> for CompactError {
    fn from(error: trimtab::store::Error) -> Self {
        Self::Store(error)
    }
}

/// Compacts a conversation.
pub(super) fn compact(
    (store, id): (Arc<dyn Store>, SessionId),
    conversation: &Conversation,
    original: Option<&[u8]>,
    options: CompactOptions,
    summariser: &CompactSummariser,
) -> Result<CompactedConversation, CompactError> {
    earlier_run::link(store.as_ref(), &id, &conversation.messages)?;
    // Store the transcript first: nothing may be replaced before the original is safe.
    let put = |bytes: &[u8]| store.put(&id, Put::new("transcript", bytes).tool("compact"));
    let original = original.map(put).transpose()?;
    let tools = tools(conversation);
    let setup = Setup {
        dialect: conversation.form.dialect(),
        limits: options.limits,
        tools,
        ..Setup::new(with_summary_as_message(options.policy))
    };
    let mut session = Session::open(Arc::clone(&store), id.clone(), setup)?;
    let positions = positions(conversation);
    let messages = positions
        .iter()
        .filter_map(|at| conversation.messages.get(*at));
    let mut before = tools;
    let is_left = |at: &&usize| **at < conversation.already_compacted;
    let mut already_compacted = positions.iter().filter(is_left).count();
    for message in messages {
        before += Measure::of(message);
        // Requests have no place for the number of messages behind a summary, so all of them count.
        let is_own = conversation.already_compacted == 0 && is_own_summary(message);
        if is_own {
            already_compacted = positions.len();
        }
        session.admit(with_summary_marked(message, is_own))?;
    }
    let manual = ManualCompaction {
        instructions: options.instructions,
        keep_turns: options.keep_turns,
        already_compacted,
    };
    let pending = session.compact(&manual)?;
    let is_planned = pending.is_some();
    if let Some(pending) = pending {
        let answered = summariser.answer(pending, conversation);
        session.finish(answered.map_err(CompactError::Runtime)?)?;
    }
    // After the summary, because only now the window has its final size.
    let too_large = too_large(&mut session, options.must_fit)?;
    // Only a removal by name removes what nobody else has any more.
    store.lease(std::slice::from_ref(&id), FOREVER)?;
    let mut notes: Vec<String> = too_large.into_iter().collect();
    let events = session.events();
    // If no round was replaced, the report says so itself.
    let is_news = |event: &&SessionEvent| is_planned || event.kind != SessionEventKind::NoOp;
    let news = events.iter().filter(is_news);
    notes.extend(news.filter_map(|event| event.note.clone()));
    // Map the window back to positions of the transcript, so that kept messages keep their bytes.
    let mut sent = placed(sent_messages(session.window()?), conversation, &positions);
    add_read_command(&mut sent, conversation, &options.read_command);
    let mut after = tools;
    for entry in &sent {
        after += Measure::of(&entry.message);
    }
    Ok(CompactedConversation {
        session: id,
        read_command: options.read_command,
        original,
        tokens_before: before.tokens(),
        tokens_after: after.tokens(),
        messages_before: positions.len(),
        replaced: positions.len()
            - sent
                .iter()
                .filter(|entry| entry.log_position.is_some())
                .count(),
        shortened: shortened(&sent),
        refs: refs(&events),
        summary_by_model: summary(&events),
        notes,
        sent,
    })
}

/// A message of the transcript as the session gets it. A summary of an earlier run gets its kind,
/// and is a user message: a system message would be taken for instructions, which no plan replaces.
fn with_summary_marked(message: &Message, is_own: bool) -> Message {
    let mut message = message.clone();
    if message.is_summary() && message.role == Role::System {
        message.role = Role::User;
    }
    if is_own && message.role == Role::User {
        message.meta.kind = Some(MessageKind::Summary);
    }
    message
}

/// The policy with its summary as a message of its own. The system prompt belongs to the client:
/// what we add to it cannot be told from it by the next run, which must replace it.
fn with_summary_as_message(mut policy: Policy) -> Policy {
    if let SummaryPlacement::System { prefix } = &policy.compaction.placement {
        let prefix = prefix.trim_start().to_owned();
        policy.compaction.placement = SummaryPlacement::Message { prefix };
    }
    policy
}

/// The warning if the window does not fit, or an error if it must.
fn too_large(session: &mut Session, must_fit: bool) -> Result<Option<String>, CompactError> {
    match session.ready() {
        Ok(_) => Ok(None),
        Err(error @ (SessionError::TooLarge(_) | SessionError::OverBudget { .. })) if !must_fit => {
            let text = error.to_string();
            Ok(text.lines().next().map(str::to_owned))
        }
        Err(error) => Err(error.into()),
    }
}

/// The positions of the last window: the leading system messages and everything since the last
/// compaction.
fn positions(conversation: &Conversation) -> Vec<usize> {
    let messages = &conversation.messages;
    let start = conversation.compactions.last().copied().unwrap_or(0);
    let is_system = |message: &&Message| message.role == Role::System;
    let head = messages.iter().take(start).take_while(is_system).count();
    (0..head).chain(start..messages.len()).collect()
}

/// The window with positions in the conversation. A plan can keep a message by withdrawing it and
/// inserting a copy; such a copy is matched by its content, so that it keeps its bytes.
fn placed(
    mut sent: Vec<SentMessage>,
    conversation: &Conversation,
    positions: &[usize],
) -> Vec<SentMessage> {
    for entry in &mut sent {
        entry.log_position = entry.log_position.and_then(|at| positions.get(at).copied());
    }
    let used: HashSet<usize> = sent.iter().filter_map(|entry| entry.log_position).collect();
    let mut free: HashMap<String, VecDeque<usize>> = HashMap::new();
    for at in positions.iter().filter(|at| !used.contains(at)) {
        if let Some(message) = conversation.messages.get(*at) {
            // Equal messages are matched in order, hence a queue per content.
            free.entry(content_of(message)).or_default().push_back(*at);
        }
    }
    for entry in sent.iter_mut().filter(|entry| entry.log_position.is_none()) {
        let same = free.get_mut(&content_of(&entry.message));
        entry.log_position = same.and_then(VecDeque::pop_front);
    }
    sent
}

/// The content of a message, without the place of its stored outputs.
fn content_of(message: &Message) -> String {
    let mut parts = message.parts.clone();
    for part in &mut parts {
        if let Part::Output(output) = part {
            output.stored = None;
            output.tool = None;
        }
    }
    format!("{} {parts:?}", message.role.as_str())
}

fn tools(conversation: &Conversation) -> Measure {
    let mut measure = Measure::default();
    for tool in &conversation.tools {
        measure += Measure::of_tools(tool.as_str());
    }
    measure
}

/// Adds the command that reads refs to the summary, unless the client has a tool for it. Most
/// clients have none.
fn add_read_command(sent: &mut [SentMessage], conversation: &Conversation, command: &str) {
    let has_tool = |name: &str| {
        conversation
            .tools
            .iter()
            .any(|tool| tool.as_str().contains(name))
    };
    if has_tool(READ) {
        return;
    }
    let is_summary = |entry: &&mut SentMessage| {
        entry.log_position.is_none() && entry.message.meta.kind == Some(MessageKind::Summary)
    };
    let Some(summary) = sent.iter_mut().find(is_summary) else {
        return;
    };
    let message = Arc::make_mut(&mut summary.message);
    let text = message.parts.iter_mut().rev().find_map(|part| match part {
        Part::Text(text) => Some(&mut text.text),
        _ => None,
    });
    if let Some(text) = text {
        let _ = write!(text, "\n{}", earlier_run::read_line(command));
    }
}

fn shortened(sent: &[SentMessage]) -> Vec<Ref> {
    let outputs = sent.iter().flat_map(|entry| entry.message.outputs());
    let trimmed = outputs.filter(|output| output.trimmed);
    trimmed.filter_map(|output| output.stored.clone()).collect()
}

fn refs(events: &[SessionEvent]) -> Vec<Ref> {
    let mut refs: Vec<Ref> = Vec::new();
    for found in events.iter().flat_map(|event| &event.refs) {
        if !refs.contains(found) {
            refs.push(found.clone());
        }
    }
    refs
}

fn summary(events: &[SessionEvent]) -> Option<bool> {
    let compacted = events
        .iter()
        .rev()
        .find(|event| event.kind == SessionEventKind::Compacted);
    compacted.map(|event| event.by_model)
}
