//! What can go wrong with a model call.

use std::time::Duration;

use thiserror::Error;
use trimtab_wire::overflow::{Action, Verdict};

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A connection.
    Connect,
    /// The first byte of an answer.
    FirstByte,
    /// More of an answer that had begun.
    More,
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection",
            Self::FirstByte => "no answer",
            Self::More => "nothing more of the answer",
        })
    }
}

/// Why a model gave no answer. No text here holds a key.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The request as it was cannot pass; another window may. `verdict` says what helps.
    #[error("the request does not fit the model: {message}")]
    Overflow {
        /// What the provider's answer means.
        verdict: Box<Verdict>,
        /// The provider's words.
        message: String,
    },
    /// The key is missing, wrong, or not allowed to do this.
    #[error(
        "{url} refused the key (HTTP {status}): {message}\nhint: set the right key in the environment variable {variable}"
    )]
    Key {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
        /// The variable that holds the key.
        variable: &'static str,
    },
    /// There is no such model, or no such address.
    #[error(
        "{url} has no model `{model}` (HTTP {status}): {message}\nhint: check the name of the model and the base URL"
    )]
    NoModel {
        /// The address.
        url: String,
        /// The model that was asked for.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
    },
    /// The request was refused for another reason.
    #[error("{url} refused the request (HTTP {status}): {message}")]
    Refused {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
    },
    /// The provider is overloaded or broken, or asks to wait.
    #[error("{url} cannot answer now (HTTP {status}): {message}\nhint: try again later")]
    Busy {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// Nothing is there.
    #[error("cannot reach {url}: {why}\nhint: check the base URL and the network")]
    Unreachable {
        /// The address.
        url: String,
        /// What the network says.
        why: String,
    },
    /// Something is there that is no model API.
    #[error(
        "{url} does not speak this dialect: it answered HTTP {status} with {what}\nhint: check the base URL"
    )]
    NotAnApi {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What came instead of an answer.
        what: String,
    },
    /// Nothing came in time.
    #[error("{url}: {wait} within {} s", .after.as_secs())]
    TimedOut {
        /// The address.
        url: String,
        /// What was waited for.
        wait: Wait,
        /// For how long.
        after: Duration,
    },
    /// The answer stopped before its end.
    #[error("the answer broke off: {why}")]
    Cut {
        /// How.
        why: String,
    },
    /// The script of a scripted model does not go on like this.
    #[error("the scripted model: {0}")]
    Script(String),
}

impl ModelError {
    /// True if the same request may pass a little later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Cut { .. }
        )
    }

    /// What went wrong, without the way out: for an error that may still pass by itself.
    pub(crate) fn without_hint(&self) -> String {
        let mut told = self.to_string();
        if let Some(at) = told.find("\nhint: ") {
            told.truncate(at);
        }
        told
    }

    /// How long the provider asks to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Whether another window may pass where this one did not.
pub(super) fn wants_another_window(verdict: &Verdict) -> bool {
    matches!(
        verdict.action,
        Action::Compact
            | Action::LowerReserve
            | Action::ShrinkBytes
            | Action::Repair
            | Action::StripReasoning
    )
}
