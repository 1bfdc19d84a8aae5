//! A conversation that is assembled line by line.

use std::collections::{BTreeMap, HashMap};

use trimtab_model::Message;

use super::{Conversation, TranscriptForm};

/// Records that a unit of a file, which is a line, gave a message or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MessageOrigin {
    /// Position of the message.
    pub(super) message: usize,
    /// Number of the unit.
    pub(super) unit: usize,
}

/// A conversation of a log, with the origins of its messages.
#[derive(Debug)]
pub(super) struct ReadConversation {
    /// The conversation.
    pub(super) conversation: Conversation,
    /// The unit of each message.
    pub(super) origins: Vec<MessageOrigin>,
    /// Units that the client no longer sends because the user went back, and those that say so.
    pub(super) taken_back: Vec<usize>,
}

impl ReadConversation {
    /// The conversation, unless it is empty.
    pub(super) fn unless_empty(
        conversation: Conversation,
        origins: Vec<MessageOrigin>,
        taken_back: Vec<usize>,
    ) -> Option<Self> {
        let some = !conversation.messages.is_empty();
        some.then_some(Self {
            conversation,
            origins,
            taken_back,
        })
    }
}

/// A growing conversation of a log.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// The conversation so far.
    pub(super) conversation: Conversation,
    /// The position of a message by its id in the log.
    places: HashMap<String, usize>,
    origins: Vec<MessageOrigin>,
    taken_back: Vec<usize>,
    /// The current unit.
    unit: usize,
}

/// A place in a thread to which the user may go back.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadPlace {
    pub(super) unit: usize,
    messages: usize,
}

impl Thread {
    fn new() -> Self {
        Self {
            conversation: Conversation::new(TranscriptForm::ClaudeCode),
            ..Self::default()
        }
    }

    /// The place after the current unit.
    pub(super) fn place(&self) -> ThreadPlace {
        ThreadPlace {
            unit: self.unit,
            messages: self.conversation.messages.len(),
        }
    }

    /// Takes back every message after `place`; false if there is none.
    pub(super) fn go_back_to(&mut self, place: ThreadPlace) -> bool {
        let conversation = &mut self.conversation;
        if conversation.messages.len() <= place.messages {
            return false;
        }
        conversation.messages.truncate(place.messages);
        while conversation.compactions.last() >= Some(&place.messages) {
            conversation.compactions.pop();
        }
        // Origins are in the order of the units, so only those after the place are touched.
        let kept = self
            .origins
            .partition_point(|origin| origin.unit <= place.unit);
        let after = self.origins.split_off(kept);
        // A later piece of a message that stays belongs to it.
        let (stay, gone): (Vec<_>, Vec<_>) = after
            .into_iter()
            .partition(|origin| origin.message < place.messages);
        self.origins.extend(stay);
        self.taken_back
            .extend(gone.into_iter().map(|origin| origin.unit));
        true
    }

    /// Takes back the current unit.
    pub(super) fn take_back_unit(&mut self) {
        self.taken_back.push(self.unit);
    }

    /// Adds a message.
    pub(super) fn push(&mut self, message: Message) {
        self.came(self.conversation.messages.len());
        self.conversation.messages.push(message);
    }

    /// Records that the current unit gave a message.
    fn came(&mut self, message: usize) {
        let unit = self.unit;
        self.origins.push(MessageOrigin { message, unit });
    }

    /// Adds a piece of the message `id`: a log may write one answer on several lines, with outputs
    /// in between.
    pub(super) fn push_piece(&mut self, id: Option<String>, message: Message) {
        let known = id.as_ref().and_then(|id| self.places.get(id)).copied();
        // It may have been taken back.
        let known = known.filter(|at| *at < self.conversation.messages.len());
        let at = known.unwrap_or(self.conversation.messages.len());
        self.came(at);
        let messages = &mut self.conversation.messages;
        // Claude Code writes each part of an answer on its own line, so pieces of one id become one
        // message again.
        if known.is_some()
            && let Some(first) = messages.get_mut(at)
        {
            first.parts.extend(message.parts);
            // Each line repeats the usage so far; the last one is complete.
            first.meta.usage = message.meta.usage.or(first.meta.usage);
            let reason = message.meta.stop_reason;
            first.meta.stop_reason = reason.or_else(|| first.meta.stop_reason.take());
            return;
        }
        if let Some(id) = id {
            self.places.insert(id, messages.len());
        }
        messages.push(message);
    }

    /// Records a compaction of the agent.
    pub(super) fn compacted(&mut self) {
        let at = self.conversation.messages.len();
        self.conversation.compactions.push(at);
    }
}

/// The conversations of one log: the main one and those of sub-agents.
#[derive(Debug, Default)]
pub(super) struct Threads {
    main: Option<Thread>,
    /// In the order of their start, with their names.
    side: BTreeMap<usize, (String, Thread)>,
    numbers: HashMap<String, usize>,
    /// The current unit.
    pub(super) unit: usize,
}

impl Threads {
    /// The thread of `agent`, created if necessary; none is the main one.
    pub(super) fn of(&mut self, agent: Option<String>) -> &mut Thread {
        let thread = if let Some(agent) = agent {
            let next = self.numbers.len();
            let number = *self.numbers.entry(agent.clone()).or_insert(next);
            let thread = self.side.entry(number);
            &mut thread.or_insert_with(|| (agent, Thread::new())).1
        } else {
            self.main.get_or_insert_with(Thread::new)
        };
        thread.unit = self.unit;
        thread
    }

    /// The non-empty conversations, named after their session.
    pub(super) fn finish(self, session: Option<&str>) -> Vec<ReadConversation> {
        let main = self.main.map(|thread| (None, thread));
        let side = self
            .side
            .into_values()
            .map(|(name, thread)| (Some(name), thread));
        main.into_iter()
            .chain(side)
            .filter_map(|(name, thread)| {
                let mut conversation = thread.conversation;
                // A sub-agent has no session id of its own.
                conversation.id = match (session, name) {
                    (Some(session), Some(name)) => Some(format!("{session}/{name}")),
                    (session, name) => name.or_else(|| session.map(str::to_owned)),
                };
                ReadConversation::unless_empty(conversation, thread.origins, thread.taken_back)
            })
            .collect()
    }
}

/// The origin of new messages in a list that had `before` messages when `unit` was read; without
/// new ones, the unit extended the last message.
pub(super) fn note_origins(
    messages: &[Message],
    before: usize,
    unit: usize,
) -> impl Iterator<Item = MessageOrigin> + use<> {
    let count = messages.len();
    // Without a new message the unit extended the last one.
    let first = before.min(count.saturating_sub(1));
    (first..count).map(move |message| MessageOrigin { message, unit })
}
