//! A conversation that is put together line by line.

use std::collections::{BTreeMap, HashMap};

use trimtab_model::{Message, Part, Usage};

use super::{Conversation, Form};

/// One conversation of a log, growing.
#[derive(Debug)]
pub(super) struct Thread {
    /// What it is so far.
    pub(super) conversation: Conversation,
    /// Where the message with an id of the log's stands.
    places: HashMap<String, usize>,
}

impl Thread {
    fn new(form: Form) -> Self {
        Self {
            conversation: Conversation::new(form),
            places: HashMap::new(),
        }
    }

    /// Adds a message.
    pub(super) fn push(&mut self, message: Message) {
        self.conversation.messages.push(message);
    }

    /// Adds a piece of the message that the log calls `id`: a log may write one answer down
    /// in several lines, with outputs in between.
    pub(super) fn push_piece(&mut self, id: Option<String>, message: Message) {
        let messages = &mut self.conversation.messages;
        if let Some(known) = id.as_ref().and_then(|id| self.places.get(id))
            && let Some(first) = messages.get_mut(*known)
        {
            first.parts.extend(message.parts);
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

    /// Notes that the agent compacted here.
    pub(super) fn compacted(&mut self) {
        let at = self.conversation.messages.len();
        self.conversation.compactions.push(at);
    }
}

/// The conversations of one log: the user's own and those of sub-agents.
#[derive(Debug, Default)]
pub(super) struct Threads {
    main: Option<Thread>,
    /// In the order they began, with their names.
    side: BTreeMap<usize, (String, Thread)>,
    numbers: HashMap<String, usize>,
}

impl Threads {
    /// The thread of `agent`, which is new the first time; none is the user's own.
    pub(super) fn of(&mut self, form: Form, agent: Option<String>) -> &mut Thread {
        let Some(agent) = agent else {
            return self.main.get_or_insert_with(|| Thread::new(form));
        };
        let next = self.numbers.len();
        let number = *self.numbers.entry(agent.clone()).or_insert(next);
        let thread = self.side.entry(number);
        &mut thread.or_insert_with(|| (agent, Thread::new(form))).1
    }

    /// The conversations that have messages, named after their session.
    pub(super) fn finish(self, session: Option<&str>) -> Vec<Conversation> {
        let main = self.main.map(|thread| (None, thread));
        let side = self
            .side
            .into_values()
            .map(|(name, thread)| (Some(name), thread));
        main.into_iter()
            .chain(side)
            .map(|(name, thread)| {
                let mut conversation = thread.conversation;
                conversation.id = match (session, name) {
                    (Some(session), Some(name)) => Some(format!("{session}/{name}")),
                    (session, name) => name.or_else(|| session.map(str::to_owned)),
                };
                conversation
            })
            .filter(|conversation| !conversation.messages.is_empty())
            .collect()
    }
}

/// A thought of the model, if there is any text in it.
pub(super) fn thought(text: Option<String>) -> Option<Part> {
    text.filter(|text| !text.is_empty()).map(Part::reasoning)
}

/// Usage whose cached tokens are inside its prompt figure.
pub(super) fn usage_inside(prompt: u64, cache_read: u64, output: u64) -> Usage {
    Usage {
        input: prompt.saturating_sub(cache_read),
        cache_creation: 0,
        cache_read: cache_read.min(prompt),
        output,
    }
}
