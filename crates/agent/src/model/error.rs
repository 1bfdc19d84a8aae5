//! Errors of a model call.

use std::time::Duration;

use thiserror::Error;
use trimtab::request::is_stale_reasoning;
use trimtab_wire::overflow::{OverflowAction, OverflowVerdict};

/// The event that did not happen in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPhase {
    /// The first byte of an answer.
    FirstByte,
    /// More of an answer that has started.
    More,
}

impl std::fmt::Display for WaitPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FirstByte => "no answer",
            Self::More => "nothing more of the answer",
        })
    }
}

/// The reasons why a model call fails. No text contains a key.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// This request does not fit, but another window may. `verdict` says what helps.
    #[error("the request does not fit the model: {message}")]
    Overflow {
        /// The classified answer of the provider.
        verdict: Box<OverflowVerdict>,
        /// The provider's message.
        message: String,
    },
    /// The key is missing, wrong, or lacks permission.
    #[error(
        "{url} refused the key (HTTP {status}): {message}\nhint: set the right key in the environment variable {variable}"
    )]
    Key {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        message: String,
        /// The variable that holds the key.
        variable: &'static str,
    },
    /// The model or the address does not exist.
    #[error(
        "{url} has no model `{model}` (HTTP {status}): {message}\nhint: check the name of the model and the base URL"
    )]
    NoModel {
        /// The address.
        url: String,
        /// The requested model.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        message: String,
    },
    /// The request was rejected for another reason.
    #[error("{url} refused the request (HTTP {status}): {message}")]
    Refused {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        message: String,
    },
    /// The provider is overloaded, broken, or asks to wait.
    #[error("{url} cannot answer now (HTTP {status}): {message}\nhint: try again later")]
    Busy {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        message: String,
        /// The delay that the provider asks for.
        retry_after: Option<Duration>,
    },
    /// No server is reachable.
    #[error("cannot reach {url}: {why}\nhint: check the base URL and the network")]
    Unreachable {
        /// The address.
        url: String,
        /// The network error.
        why: String,
    },
    /// The server is not a model API.
    #[error(
        "{url} does not speak this dialect: it answered HTTP {status} with {what}\nhint: check the base URL"
    )]
    NotAnApi {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// A description of the answer.
        what: String,
    },
    /// A timeout.
    #[error("{url}: {wait} within {} s", .after.as_secs())]
    TimedOut {
        /// The address.
        url: String,
        /// The event that did not happen.
        wait: WaitPhase,
        /// The time limit.
        after: Duration,
    },
    /// The answer was cut off.
    #[error("the answer broke off: {why}")]
    Cut {
        /// The reason.
        why: String,
    },
    /// The script does not match the conversation.
    #[error("the scripted model: {0}")]
    Script(String),
}

impl ModelError {
    /// True if the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Cut { .. }
        )
    }

    /// True if the model refused reasoning that it binds to other messages or tools.
    pub fn is_stale_reasoning(&self) -> bool {
        match self {
            Self::Refused { message, .. } | Self::Overflow { message, .. } => {
                is_stale_reasoning(message.as_bytes())
            }
            _ => false,
        }
    }

    /// The error without its hint, for an error that a retry may fix.
    pub(crate) fn without_hint(&self) -> String {
        let mut told = self.to_string();
        if let Some(at) = told.find("\nhint: ") {
            told.truncate(at);
        }
        told
    }

    /// The delay that the provider asks for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// True if another window may be accepted.
pub(super) fn wants_another_window(verdict: &OverflowVerdict) -> bool {
    matches!(
        verdict.action,
        OverflowAction::Compact
            | OverflowAction::LowerReserve
            | OverflowAction::ShrinkBytes
            | OverflowAction::Repair
            | OverflowAction::StripReasoning
    )
}
