//! The log: every message as it came, append-only.

use std::sync::Arc;

use trimtab_model::{Message, Role};

/// Every message of a conversation as it came.
///
/// Nothing in it is ever changed or removed; what the window leaves out is still here.
#[derive(Clone, Debug, Default)]
pub struct Log {
    messages: Vec<Arc<Message>>,
    /// Positions of what the model said.
    answers: Vec<usize>,
}

impl Log {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message and gives its position.
    pub fn append(&mut self, message: impl Into<Arc<Message>>) -> usize {
        let (message, position) = (message.into(), self.messages.len());
        if message.role == Role::Assistant {
            self.answers.push(position);
        }
        self.messages.push(message);
        position
    }

    /// How many messages of the model stand at `position` or behind it.
    pub fn answers_since(&self, position: usize) -> usize {
        self.answers.len() - self.answers.partition_point(|at| *at < position)
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The message at `position`.
    pub fn get(&self, position: usize) -> Option<&Arc<Message>> {
        self.messages.get(position)
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// True if nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for Log {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        let mut log = Self::default();
        for message in messages {
            log.append(message);
        }
        log
    }
}
