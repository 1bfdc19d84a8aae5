//! Errors of the agent.

use thiserror::Error;
use trimtab::session::SessionError;

use crate::model::ModelError;

/// The reasons why a turn fails. The session stays usable: the next turn continues where this one
/// stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The session failed: the store failed, or no window fits.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] trimtab_store::Error),
}
