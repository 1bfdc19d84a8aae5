//! The log: every message as it came, append-only.

use std::sync::Arc;

use trimtab_model::Message;

/// Every message of a conversation as it came.
///
/// Nothing in it is ever changed or removed; what the window leaves out is still here.
#[derive(Clone, Debug, Default)]
pub struct Log {
    messages: Vec<Arc<Message>>,
}

impl Log {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message and gives its position.
    pub fn append(&mut self, message: impl Into<Arc<Message>>) -> usize {
        self.messages.push(message.into());
        self.messages.len() - 1
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
        Self {
            messages: messages.into_iter().map(Into::into).collect(),
        }
    }
}
