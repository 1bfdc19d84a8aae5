//! What can go wrong with an agent.

use thiserror::Error;
use trimtab::session::SessionError;

use crate::model::ModelError;

/// Why a turn did not come to its end. The session lives on: the next turn begins where this
/// one stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model gave no answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The session could not do its part: the store failed, or no window can be made to fit.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] trimtab_store::Error),
}
