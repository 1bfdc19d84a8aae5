//! The kinds of errors, and what helps.

use serde::{Deserialize, Serialize};

/// The meaning of a provider's answer for the size of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverflowKind {
    /// The prompt alone does not fit the window.
    Prompt,
    /// The prompt fits, but not together with the requested answer.
    PromptAndAnswer,
    /// The request has too many bytes.
    Bytes,
    /// The answer stopped because the window was full.
    AnswerCut,
    /// The prompt was larger than the window without an error; only the usage shows it.
    Silent,
    /// An image, a file or all media together are too large or too many.
    Media,
    /// One field of the request is too long.
    Field,
    /// The request has too many messages.
    Items,
    /// The requested answer is longer than the model can ever give.
    AnswerLimit,
    /// The rate limit is exceeded.
    RateLimit,
    /// The credit or allowance is used up.
    Quota,
    /// The account's plan excludes long prompts.
    LongWindow,
    /// Calls and outputs do not pair up.
    Pairing,
    /// Reasoning was changed, or is at an invalid position.
    Reasoning,
    /// The provider is overloaded, broken or unreachable.
    Server,
    /// Anything else, including no error.
    #[default]
    Other,
}

impl OverflowKind {
    /// True if the request itself was too large for the window or the endpoint.
    pub const fn is_overflow(self) -> bool {
        matches!(
            self,
            Self::Prompt | Self::PromptAndAnswer | Self::Bytes | Self::AnswerCut | Self::Silent
        )
    }

    /// The default action.
    pub const fn action(self) -> OverflowAction {
        match self {
            Self::Prompt | Self::AnswerCut | Self::Silent | Self::Items | Self::LongWindow => {
                OverflowAction::Compact
            }
            Self::PromptAndAnswer | Self::AnswerLimit => OverflowAction::LowerReserve,
            Self::Bytes | Self::Media | Self::Field => OverflowAction::ShrinkBytes,
            Self::RateLimit | Self::Server => OverflowAction::BackOff,
            Self::Pairing => OverflowAction::Repair,
            Self::Reasoning => OverflowAction::StripReasoning,
            Self::Quota | Self::Other => OverflowAction::None,
        }
    }
}

/// What helps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverflowAction {
    /// Send fewer tokens.
    Compact,
    /// Request a shorter answer, and compact only if that is not enough.
    LowerReserve,
    /// Send fewer bytes: media and the largest outputs first.
    ShrinkBytes,
    /// Send the same request later.
    BackOff,
    /// Repair the pairs of calls and outputs.
    Repair,
    /// Send the request without the rejected reasoning.
    StripReasoning,
    /// Nothing helps.
    #[default]
    None,
}

/// Whether the answer states the error explicitly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// It does.
    #[default]
    Stated,
    /// It does not: treat it as an overflow only if the request was large.
    IfLarge,
}
