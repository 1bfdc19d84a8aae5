//! Why a call of a host failed.

use trimtab::config::ConfigError;
use trimtab::session::SessionError;
use trimtab::store::Error as StoreError;

/// The kind of an error, for hosts that turn errors into exceptions of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// What the host gave cannot be used.
    BadInput,
    /// A part of the request that must stay is alone larger than the window.
    TooLarge,
    /// The store failed.
    Store,
    /// A window could not be made. The host should send its request as it is.
    Internal,
}

/// Why a call of a host failed. The text names the object, and ends with a `hint:` line if there
/// is a way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindingError {
    /// The options cannot be read.
    #[error("the options of the session cannot be read: {0}\nhint: see docs/packages.md")]
    Options(String),
    /// A setting cannot be used.
    #[error("{}", with_hint(.0))]
    Settings(#[from] ConfigError),
    /// The request is not in the session's dialect.
    #[error(
        "the request cannot be read as {dialect}: {why}\nhint: give an object with the field \
         '{field}', or open the session with another dialect"
    )]
    Request {
        /// The dialect.
        dialect: String,
        /// The field that holds the messages in it.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The usage cannot be read.
    #[error("the usage cannot be read: {0}\nhint: give the provider's usage object as JSON")]
    Usage(String),
    /// There is no summary to answer.
    #[error("no summary was asked for\nhint: call check or compact first")]
    NoSummary,
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The window does not go with the request.
    #[error("the window cannot be written: {0}\nhint: send the request as it is")]
    Mismatch(String),
    /// Another call of the same session panicked.
    #[error("an earlier call of this session failed\nhint: open the session again")]
    Poisoned,
}

impl BindingError {
    /// Its kind.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Options(_)
            | Self::Settings(_)
            | Self::Request { .. }
            | Self::Usage(_)
            | Self::NoSummary
            | Self::Session(SessionError::Glob(_) | SessionError::WindowUnknown(_)) => {
                ErrorCode::BadInput
            }
            Self::Session(SessionError::TooLarge(_) | SessionError::OverBudget { .. }) => {
                ErrorCode::TooLarge
            }
            Self::Session(SessionError::Store(_) | SessionError::Entry { .. }) | Self::Store(_) => {
                ErrorCode::Store
            }
            Self::Session(_) | Self::Mismatch(_) | Self::Poisoned => ErrorCode::Internal,
        }
    }

    /// True if another process has written to the session: open it again and retry.
    pub(crate) fn is_conflict(&self) -> bool {
        let (Self::Session(SessionError::Store(error)) | Self::Store(error)) = self else {
            return false;
        };
        matches!(error, StoreError::Conflict { .. } | StoreError::Lost)
    }
}

fn with_hint(error: &ConfigError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}
