//! Whatever decides what is sent.

use std::sync::Arc;

use thiserror::Error;
use trimtab_model::{Message, Ref};

/// Decides what is sent at each call.
pub trait WindowManager {
    /// Takes in the next message of the conversation.
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), ManagerError>;

    /// The window for the next call.
    fn send(&mut self) -> Result<SentWindow, ManagerError>;

    /// The next call finds nothing in the prompt cache.
    fn cache_is_cold(&mut self) {}

    /// What was decided since the window before, in words; empty if nothing was.
    fn decided(&mut self) -> String {
        String::new()
    }

    /// How often old rounds were replaced so far.
    fn compactions(&self) -> u64 {
        0
    }

    /// How often a model would have been asked for a summary so far.
    fn own_calls(&self) -> u64 {
        0
    }
}

/// What is sent at one call.
#[derive(Clone, Debug, Default)]
pub struct SentWindow {
    /// The messages.
    pub messages: Vec<Arc<Message>>,
    /// For outputs that are not whole in it, the ref under which it shows them.
    pub refs: Vec<ShownRef>,
}

/// The ref under which a window shows an output that is not whole in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRef {
    /// Position in the log of the message that holds the output.
    pub position: usize,
    /// The call that it answers.
    pub call_id: String,
    /// The ref; its text occurs in the window.
    pub stored: Ref,
}

/// A manager could not do its work, in words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ManagerError(pub String);
