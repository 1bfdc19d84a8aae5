//! The log: every message as the client sent it, append-only.
//!
//! It also remembers what decisions ask about it on every call, so that no call walks it.

mod provider_parts;

use std::sync::Arc;

use provider_parts::ProviderParts;
use trimtab_model::{Message, Role};

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
