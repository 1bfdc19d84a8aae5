//! The tools of the model, confined to a workspace.
//!
//! A [`Tool`] has a [`ToolDefinition`] for the model and works in a [`Workspace`]. It never fails
//! towards the agent: an error is an [`ToolOutcome`] that the model can read and act on. Dropping
//! its future aborts the work.

mod arguments;
mod confined_path;
mod confirm;
mod environment;
mod limit;
mod list;
mod named_file;
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
pub use confirm::{Confirm, FileChange, Question, QuestionKind};
pub use environment::CommandEnvironment;
pub use list::ListFolder;
pub use named_file::NamedFile;
pub use processes::end_all_commands;
pub use protected::is_protected;
pub use read::ReadFile;
pub(crate) use retrieval::AnswerRoom;
pub use retrieval::RetrievalTool;
pub use search::SearchFiles;
pub use set::ToolSet;
pub use shell::{Shell, ShellLimits};
pub use trimtab_engine::view::tools::ToolDefinition;
pub use workspace::{Workspace, WorkspaceError};
pub use write::WriteFile;

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

/// The future of a tool call.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>>;

/// A tool of the model.
///
/// ```
/// use serde_json::{Value, json};
/// use trimtab_agent::tools::{ToolDefinition, ToolOutcome, Tool, ToolFuture, Workspace};
///
/// struct Dice;
///
/// impl Tool for Dice {
///     fn definition(&self) -> ToolDefinition {
///         ToolDefinition::new("dice", "Throws a die.", json!({"type": "object", "properties": {}}))
///     }
///
///     fn call<'a>(&'a self, _: &'a Value, _: &'a Workspace) -> ToolFuture<'a> {
///         Box::pin(async { ToolOutcome::text("4") })
///     }
/// }
/// ```
pub trait Tool: Send + Sync {
    /// The definition that the model sees.
    fn definition(&self) -> ToolDefinition;

    /// Executes a call. `arguments` is a JSON object, but may not match the schema. The future may
    /// be dropped at any time and must then leave nothing running.
    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> ToolFuture<'a>;

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
pub struct ToolOutcome {
    /// The text for the model.
    pub text: String,
    /// True if the tool failed; the text then says why.
    pub is_error: bool,
}

impl ToolOutcome {
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

impl<T: Into<String>, E: std::fmt::Display> From<Result<T, E>> for ToolOutcome {
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
