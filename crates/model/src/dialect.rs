//! The wire formats of providers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The wire format of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `OpenAI` Chat Completions, and everything compatible with it.
    #[default]
    Chat,
    /// `OpenAI` Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Messages];
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chat => "Chat Completions",
            Self::Responses => "Responses",
            Self::Messages => "Messages",
        })
    }
}
