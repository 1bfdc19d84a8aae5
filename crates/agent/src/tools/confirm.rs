//! Asks the user for permission.

use tokio::sync::{mpsc, oneshot};

/// Decides whether the model may do something that needs permission.
#[derive(Clone, Debug)]
pub enum Confirm {
    /// Always allowed.
    Always,
    /// Never allowed.
    Never,
    /// The receiver decides. A question dropped without an answer means no.
    Ask(mpsc::Sender<Question>),
}

/// The kind of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// An action beyond the workspace's files, such as running a command.
    Command,
    /// Writing a file that can run commands later or instruct an agent.
    ProtectedFile,
    /// Writing any other file of the workspace.
    WriteFile,
}

/// The old and the new text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path, relative to the workspace.
    pub path: String,
    /// The current text; none if the file does not exist, is binary, or is too large to compare.
    pub before: Option<String>,
    /// The new text.
    pub after: String,
}

/// A question to the user.
#[derive(Debug)]
pub struct Question {
    /// The kind of action.
    pub kind: QuestionKind,
    /// The tool that asks.
    pub tool: String,
    /// The action, such as the command to run.
    pub what: String,
    /// The change, if it concerns a file.
    pub change: Option<FileChange>,
    answer: oneshot::Sender<bool>,
}

impl Question {
    /// Answers the question.
    pub fn answer(self, allow: bool) {
        // The turn may have been interrupted meanwhile.
        let _ = self.answer.send(allow);
    }
}

impl Confirm {
    /// A `Confirm` that sends questions to the receiver.
    pub fn channel() -> (Self, mpsc::Receiver<Question>) {
        // A user answers one question at a time.
        let (sender, receiver) = mpsc::channel(1);
        (Self::Ask(sender), receiver)
    }

    /// True if `tool` may do `what`.
    pub async fn allows(&self, kind: QuestionKind, tool: &str, what: &str) -> bool {
        self.ask(kind, (tool, what), None).await
    }

    /// True if `tool` may change a file.
    pub async fn allows_change(
        &self,
        kind: QuestionKind,
        (tool, what): (&str, &str),
        change: FileChange,
    ) -> bool {
        self.ask(kind, (tool, what), Some(change)).await
    }

    async fn ask(
        &self,
        kind: QuestionKind,
        (tool, what): (&str, &str),
        change: Option<FileChange>,
    ) -> bool {
        let sender = match self {
            Self::Always => return true,
            Self::Never => return false,
            Self::Ask(sender) => sender,
        };
        let (answer, answered) = oneshot::channel();
        let question = Question {
            kind,
            tool: tool.to_owned(),
            what: what.to_owned(),
            change,
            answer,
        };
        sender.send(question).await.is_ok() && answered.await.unwrap_or(false)
    }
}
