//! What an upstream remembers between requests.

use std::collections::HashMap;
use std::sync::Arc;

use super::Received;
use super::cache::Fronts;

/// What an upstream remembers between requests.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) received: Vec<Arc<Received>>,
    /// How many requests came.
    pub(super) serial: usize,
    /// How many answers were asked for.
    pub(super) asked: usize,
    pub(super) conversations: HashMap<String, Conversation>,
    /// The fronts of all prompts.
    pub(super) fronts: Fronts,
    /// Those that were marked to be cached.
    pub(super) written: Fronts,
    /// Calls and items that were answered together with a sealed thought: its id. Empty for
    /// calls that were answered while thinking was disabled.
    pub(super) thoughts: HashMap<String, String>,
}

/// How far a conversation is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conversation {
    /// How many replies were given.
    pub(super) step: usize,
    /// True if the next reply has spoiled once.
    pub(super) spoiled: bool,
}
