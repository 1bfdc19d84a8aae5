//! Asking the user before something is done.

use tokio::sync::{mpsc, oneshot};

/// Who decides whether the model may do something that reaches beyond the workspace's files.
#[derive(Clone, Debug)]
pub enum Confirm {
    /// Nobody: it may.
    Always,
    /// Nobody: it may not.
    Never,
    /// Whoever receives these questions. One that is dropped without an answer means no.
    Ask(mpsc::Sender<Question>),
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// Something that reaches beyond the workspace's files, such as running a command.
    Command,
    /// Writing a file that can run commands later or steer an agent.
    ProtectedFile,
    /// Writing any other file of the workspace.
    WriteFile,
}

/// A file as it is and as it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Where it is, relative to the workspace.
    pub path: String,
    /// What is in it; none if it is not there, not text, or too large to compare.
    pub before: Option<String>,
    /// What would be in it.
    pub after: String,
}

/// A question to the user.
#[derive(Debug)]
pub struct Question {
    /// What it is about.
    pub kind: QuestionKind,
    /// The tool that asks.
    pub tool: String,
    /// What it is about to do, such as the command that it would run.
    pub what: String,
    /// The change of a file, if it is about one.
    pub change: Option<FileChange>,
    answer: oneshot::Sender<bool>,
}

impl Question {
    /// Answers the question.
    pub fn answer(self, allow: bool) {
        // A turn that was interrupted meanwhile does not care.
        let _ = self.answer.send(allow);
    }
}

impl Confirm {
    /// Questions for whoever reads the receiver.
    pub fn channel() -> (Self, mpsc::Receiver<Question>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self::Ask(sender), receiver)
    }

    /// Whether `tool` may do `what`.
    pub async fn allows(&self, kind: QuestionKind, tool: &str, what: &str) -> bool {
        self.ask(kind, (tool, what), None).await
    }

    /// Whether `tool` may change a file.
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
