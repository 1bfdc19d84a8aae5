//! Errors in a script.

use thiserror::Error;

/// An invalid script.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file is not JSON.
    #[error("the script is not JSON: {0}")]
    Json(String),
    /// The file is neither a list nor an object with a list.
    #[error(
        "the script is neither a list of replies nor an object with `replies`: {0}\n\
         hint: [{{\"text\": \"hello\"}}] is a script"
    )]
    Form(String),
    /// A reply is invalid.
    #[error("reply {number} of the script: {problem}")]
    Reply {
        /// Its number, counted from 1.
        number: usize,
        /// The fault.
        problem: String,
    },
}
