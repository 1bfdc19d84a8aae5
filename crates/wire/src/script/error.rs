//! What can be wrong with a script.

use thiserror::Error;

/// A script that cannot be used.
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
    /// One reply is wrong.
    #[error("reply {number} of the script: {problem}")]
    Reply {
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
}
