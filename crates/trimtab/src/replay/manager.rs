//! The interface of what decides what is sent.

use std::sync::Arc;

use thiserror::Error;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Ref};

/// Decides what is sent at each call.
pub trait WindowManager {
    /// Adds the next message of the conversation.
    fn admit(&mut self, message: &Arc<Message>) -> Result<(), ManagerError>;

    /// The window for the next call.
    fn send(&mut self) -> Result<SentWindow, ManagerError>;

    /// The refs of outputs that `window`, the last one, does not show in full. They take as long to
    /// find as the conversation is, so they are asked for only where they matter.
    fn refs(&mut self, _window: &[Arc<Message>]) -> Vec<ShownRef> {
        Vec::new()
    }

    /// Tells it that the prompt cache has nothing for the next call.
    fn cache_is_cold(&mut self) {}

    /// The decisions since the previous window, as text; empty if there were none.
    fn decided(&mut self) -> String {
        String::new()
    }

    /// The number of times that old rounds were replaced.
    fn compactions(&self) -> u64 {
        0
    }

    /// The number of times that a model would have been asked for a summary.
    fn own_calls(&self) -> u64 {
        0
    }
}

/// The window of one call.
#[derive(Clone, Debug, Default)]
pub struct SentWindow {
    /// The messages.
    pub messages: Vec<Arc<Message>>,
    /// The refs of outputs that it does not show in full, where they were asked for.
    pub refs: Vec<ShownRef>,
    /// The measure of the tools that are sent in addition to those of the recording.
    pub added_tools: Measure,
}

/// The ref of an output that a window does not show in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRef {
    /// Position in the log of the message with the output.
    pub position: usize,
    /// The id of its call.
    pub call_id: String,
    /// The ref; its text occurs in the window.
    pub stored: Ref,
}

/// Why a manager failed, as text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ManagerError(pub String);
