//! What an upstream remembers between requests.

use std::collections::HashMap;
use std::sync::Arc;

use super::ReceivedRequest;
use super::cache::PromptFronts;

/// What an upstream remembers between requests.
#[derive(Debug, Default)]
pub(super) struct UpstreamState {
    pub(super) received: Vec<Arc<ReceivedRequest>>,
    /// How many requests came.
    pub(super) serial: usize,
    /// How many answers were asked for.
    pub(super) asked: usize,
    pub(super) conversations: HashMap<String, ScriptPosition>,
    /// The fronts of all prompts.
    pub(super) fronts: PromptFronts,
    /// Those that were marked to be cached.
    pub(super) written: PromptFronts,
    /// Calls and items that were answered together with a sealed thought: its id. Empty for
    /// calls that were answered while thinking was disabled.
    pub(super) thoughts: HashMap<String, String>,
}

/// How far a conversation is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScriptPosition {
    /// How many replies were given.
    pub(super) step: usize,
    /// True if the next reply has spoiled once.
    pub(super) spoiled: bool,
}
