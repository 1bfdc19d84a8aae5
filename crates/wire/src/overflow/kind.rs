//! What went wrong and what helps.

use serde::{Deserialize, Serialize};

/// What a provider's answer means for the size of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The prompt alone does not fit the window.
    Prompt,
    /// The prompt fits, but not together with the answer that was asked for.
    PromptAndAnswer,
    /// The request has too many bytes.
    Bytes,
    /// The answer stopped because the window was full.
    AnswerCut,
    /// The prompt was larger than the window and nobody said so: only usage shows it.
    Silent,
    /// An image, a file or all media together are too large or too many.
    Media,
    /// One field of the request is too long.
    Field,
    /// The request has too many messages.
    Items,
    /// The answer that was asked for is longer than the model can ever give.
    AnswerLimit,
    /// Too much was sent in too short a time.
    RateLimit,
    /// Paid-for credit or allowance is used up.
    Quota,
    /// Long prompts are not part of the plan of this account.
    LongWindow,
    /// Calls and outputs do not pair up.
    Pairing,
    /// Reasoning was changed, or stands where it must not.
    Reasoning,
    /// The provider is overloaded, broken or out of reach.
    Server,
    /// Anything else, and no error at all.
    #[default]
    Other,
}

impl Kind {
    /// Whether the request itself was too large for the window or for the endpoint.
    pub const fn is_overflow(self) -> bool {
        matches!(
            self,
            Self::Prompt | Self::PromptAndAnswer | Self::Bytes | Self::AnswerCut | Self::Silent
        )
    }

    /// What helps, unless a rule says otherwise.
    pub const fn action(self) -> Action {
        match self {
            Self::Prompt | Self::AnswerCut | Self::Silent | Self::Items | Self::LongWindow => {
                Action::Compact
            }
            Self::PromptAndAnswer | Self::AnswerLimit => Action::LowerReserve,
            Self::Bytes | Self::Media | Self::Field => Action::ShrinkBytes,
            Self::RateLimit | Self::Server => Action::BackOff,
            Self::Pairing => Action::Repair,
            Self::Reasoning => Action::StripReasoning,
            Self::Quota | Self::Other => Action::None,
        }
    }
}

/// What helps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Send fewer tokens.
    Compact,
    /// Ask for a shorter answer, and compact only if that is not enough.
    LowerReserve,
    /// Send fewer bytes: media and the largest outputs first.
    ShrinkBytes,
    /// Send the same again later.
    BackOff,
    /// Mend the pairs of calls and outputs.
    Repair,
    /// Send without the reasoning that was refused.
    StripReasoning,
    /// Nothing that can be done to the request's size or shape.
    #[default]
    None,
}

/// Whether the answer itself says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// It does.
    #[default]
    Stated,
    /// It says nothing: hold it for an overflow only if the request was large.
    IfLarge,
}
