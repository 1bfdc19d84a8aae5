//! The tools of the model, confined to a workspace.
//!
//! A [`Tool`] has a [`Definition`] for the model and works in a [`Workspace`]. It never fails
//! towards the agent: an error is an [`Outcome`] that the model can read and act on. Dropping its
//! future aborts the work.

mod arguments;
mod attach;
mod beneath;
mod confirm;
mod environment;
mod limit;
mod list;
mod processes;
mod protected;
mod read;
mod retrieval;
mod search;
mod set;
mod shell;
mod text;
mod walk;
mod workspace;
mod write;

pub use arguments::parse;
pub use attach::NamedFile;
pub use confirm::{Confirm, FileChange, Question, QuestionKind};
pub use environment::CommandEnvironment;
pub use list::List;
pub use processes::end_all_commands;
pub use protected::is_protected;
pub use read::ReadFile;
pub(crate) use retrieval::AnswerRoom;
pub use retrieval::Redeem;
pub use search::Search;
pub use set::Tools;
pub use shell::{Shell, ShellLimits};
pub use trimtab_engine::view::tools::Definition;
pub use workspace::{Workspace, WorkspaceError};
pub use write::WriteFile;

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

/// The future of a tool call.
pub type Work<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A tool of the model.
///
/// ```
/// use serde_json::{Value, json};
/// use trimtab_agent::tools::{Definition, Outcome, Tool, Work, Workspace};
///
/// struct Dice;
///
/// impl Tool for Dice {
///     fn definition(&self) -> Definition {
///         Definition::new("dice", "Throws a die.", json!({"type": "object", "properties": {}}))
///     }
///
///     fn call<'a>(&'a self, _: &'a Value, _: &'a Workspace) -> Work<'a> {
///         Box::pin(async { Outcome::text("4") })
///     }
/// }
/// ```
pub trait Tool: Send + Sync {
    /// The definition that the model sees.
    fn definition(&self) -> Definition;

    /// Executes a call. `arguments` is a JSON object, but may not match the schema. The future may
    /// be dropped at any time and must then leave nothing running.
    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> Work<'a>;

    /// True if outputs are always shown in full and no compaction may remove its rounds.
    fn is_protected(&self) -> bool {
        false
    }

    /// True if the tool changes nothing. Such calls of one answer run in parallel.
    fn only_reads(&self) -> bool {
        false
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The text for the model.
    pub text: String,
    /// True if the tool failed; the text then says why.
    pub is_error: bool,
}

impl Outcome {
    /// A successful result.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
        }
    }

    /// A failure with its reason.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: true,
        }
    }
}

impl<T: Into<String>, E: std::fmt::Display> From<Result<T, E>> for Outcome {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(text) => Self::text(text),
            Err(error) => Self::error(format!("error: {error}")),
        }
    }
}

/// Runs blocking work, such as reading files, on another thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(format!("the tool broke down: {error}")))
}

#[cfg(test)]
mod tests;
