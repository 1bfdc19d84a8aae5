//! What the model can do, confined to a workspace.
//!
//! A [`Tool`] has a [`Definition`] for the model and does its work in a [`Workspace`]. It never
//! fails as far as the loop is concerned: what went wrong is an [`Outcome`] that the model can
//! read and act on. Dropping its work breaks it off.

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

/// The work of a tool, which gives its outcome.
pub type Work<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Something that the model can do.
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
    /// What the model is told about it.
    fn definition(&self) -> Definition;

    /// Does what the model asks for. `arguments` is a JSON object, but need not follow the
    /// schema. May be dropped at any time, and must then leave nothing running.
    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> Work<'a>;

    /// True if its outputs are shown whole, and no compaction may take its rounds out of the
    /// window.
    fn is_protected(&self) -> bool {
        false
    }

    /// True if it changes nothing: such calls of one answer are carried out at the same time.
    fn only_reads(&self) -> bool {
        false
    }
}

/// What a tool gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The text for the model.
    pub text: String,
    /// True if the tool could not do what it was asked for; the text then says why.
    pub is_error: bool,
}

impl Outcome {
    /// What the tool found or did.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
        }
    }

    /// Why the tool could not do it.
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

/// Runs work that blocks, such as reading files, away from the loop.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(format!("the tool broke down: {error}")))
}

#[cfg(test)]
mod tests;
