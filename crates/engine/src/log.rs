//! The log: every message as the client sent it, append-only.
//!
//! It also remembers what decisions ask about it on every call, so that no call walks it.

mod provider_parts;

use std::ops::Range;
use std::sync::Arc;

use provider_parts::ProviderParts;
use trimtab_model::{Message, Output, Role, Treatment};

/// The opening has at most this many user messages. Some clients send their instructions, and what
/// they know of the workspace, as separate messages before the task.
const TASK_MESSAGES: usize = 4;

/// Every message of a conversation, unchanged.
///
/// Nothing in it is ever changed or removed; it still has what the window leaves out.
#[derive(Clone, Debug, Default)]
pub struct Log {
    messages: Vec<Arc<Message>>,
    /// Positions of the assistant messages.
    answers: Vec<usize>,
    /// The position behind the opening, once it is known.
    opening_end: Option<usize>,
    /// The number of user messages in the opening.
    opening_users: usize,
    /// See [`Self::newest_real_user`].
    newest_real_user: Option<usize>,
    provider: ProviderParts,
}

impl Log {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message and returns its position.
    pub fn append(&mut self, message: impl Into<Arc<Message>>) -> usize {
        let message = message.into();
        let at = self.messages.len();
        if self.opening_end.is_none() {
            self.opening_users += usize::from(message.role == Role::User);
            // A message beyond the limit ends the opening before itself, so that a client which
            // only ever sends user messages does not make its whole conversation the task.
            let ends = message.role == Role::Assistant || self.opening_users > TASK_MESSAGES;
            self.opening_end = ends.then_some(at);
        }
        if message.role == Role::Assistant {
            self.answers.push(at);
        }
        if message.is_real_user() {
            self.newest_real_user = Some(at);
        }
        self.provider.add(at, &message);
        self.messages.push(message);
        at
    }

    /// The first position that plans may change. The provider has summarised the messages before it
    /// by itself: it ignores them, except for its newest summary, which must stay as it came.
    ///
    /// ```
    /// # use trimtab_engine::log::Log;
    /// # use trimtab_model::{Message, Opaque, Part, RawJson, Role};
    /// let type_name = "compaction".to_owned();
    /// let summary = Part::Opaque(Opaque { type_name, raw: RawJson::of("") });
    /// let answer = Message::new(Role::Assistant, vec![summary]);
    /// let log: Log = [Message::user("go"), answer, Message::user("and now?")].into_iter().collect();
    /// assert_eq!(log.front(), 2);
    /// ```
    pub fn front(&self) -> usize {
        self.provider.front
    }

    /// True if a part of the message at a position is always sent as it came, if it is sent: a
    /// program reads it, it loads a tool, or it is in front of [`Self::front`].
    pub fn is_whole(&self, position: usize, part: usize) -> bool {
        let message = self.get(position);
        let part = message.and_then(|message| message.parts.get(part));
        let loads = part.is_some_and(|part| part.has(Treatment::Always));
        loads || self.provider.is_whole(position)
    }

    /// True if no plan hides the message at a position.
    pub fn stays(&self, position: usize) -> bool {
        self.provider.stays(position)
    }

    /// True if a program reads an output that comes next.
    pub fn is_for_program(&self, output: &Output) -> bool {
        output.is_for_program(None) || self.provider.has_call(&output.call_id)
    }

    /// The position of the first call of a program that has no result yet. The provider accepts
    /// nothing of ours behind it.
    pub(crate) fn open_program(&self) -> Option<usize> {
        self.provider.open_program()
    }

    /// The runs of messages that no plan hides.
    pub(crate) fn staying(&self) -> Vec<Range<usize>> {
        self.provider.staying(self.len())
    }

    /// The number of assistant messages at `position` and behind it.
    pub fn answers_since(&self, position: usize) -> usize {
        // The positions rise, so a binary search is enough.
        self.answers.len() - self.answers.partition_point(|at| *at < position)
    }

    /// The number of messages before the first answer: they contain the task.
    ///
    /// ```
    /// # use trimtab_engine::log::Log;
    /// # use trimtab_model::Message;
    /// let log: Log = [Message::user("fix it"), Message::assistant("done")].into_iter().collect();
    /// assert_eq!(log.opening(), 1);
    /// ```
    pub fn opening(&self) -> usize {
        // Until the model has answered, everything said so far is the opening.
        self.opening_end.unwrap_or(self.messages.len())
    }

    /// The position of the newest message that a person wrote.
    pub fn newest_real_user(&self) -> Option<usize> {
        self.newest_real_user
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The message at `position`.
    pub fn get(&self, position: usize) -> Option<&Arc<Message>> {
        self.messages.get(position)
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// True if it has no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for Log {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        let mut log = Self::new();
        for message in messages {
            log.append(message);
        }
        log
    }
}
