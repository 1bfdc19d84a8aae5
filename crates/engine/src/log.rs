//! The log: every message as it came, append-only.

use std::sync::Arc;

use trimtab_model::{Message, Role};

/// The task is told in so many messages of the user at most: some clients put their instructions
/// and what they know of the workspace before it.
const TASK_MESSAGES: usize = 4;

/// Every message of a conversation as it came.
///
/// Nothing in it is ever changed or removed; what the window leaves out is still here.
#[derive(Clone, Debug, Default)]
pub struct Log {
    messages: Vec<Arc<Message>>,
    /// Positions of what the model said.
    answers: Vec<usize>,
    /// Where the opening ends, once it has ended.
    opening_end: Option<usize>,
    /// How many messages of the opening are the user's.
    opening_users: usize,
    /// What [`Self::newest_real_user`] gives.
    newest_real_user: Option<usize>,
}

impl Log {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message and gives its position.
    pub fn append(&mut self, message: impl Into<Arc<Message>>) -> usize {
        let message = message.into();
        let at = self.messages.len();
        if self.opening_end.is_none() {
            self.opening_users += usize::from(message.role == Role::User);
            let ends = message.role == Role::Assistant || self.opening_users > TASK_MESSAGES;
            self.opening_end = ends.then_some(at);
        }
        if message.role == Role::Assistant {
            self.answers.push(at);
        }
        if message.is_real_user() {
            self.newest_real_user = Some(at);
        }
        self.messages.push(message);
        at
    }

    /// How many messages of the model stand at `position` or behind it.
    pub fn answers_since(&self, position: usize) -> usize {
        self.answers.len() - self.answers.partition_point(|at| *at < position)
    }

    /// How many messages stand before the first answer and hold the task.
    ///
    /// ```
    /// # use trimtab_engine::log::Log;
    /// # use trimtab_model::Message;
    /// let log: Log = [Message::user("fix it"), Message::assistant("done")].into_iter().collect();
    /// assert_eq!(log.opening(), 1);
    /// ```
    pub fn opening(&self) -> usize {
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
        let mut log = Self::new();
        for message in messages {
            log.append(message);
        }
        log
    }
}
