//! Failures of verbs and their exit codes: 0 success, 1 failure, 2 wrong input or arguments.

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::ui::Terminal;

/// The exit code that shells use for a command that does not exist.
const NOT_FOUND: u8 = 127;

/// The reasons why a verb fails.
#[derive(Debug)]
pub enum Failure {
    /// The input or the arguments are wrong: exit code 2.
    Input {
        /// The error message.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The verb has already reported every fault: exit code 2.
    AlreadyReported,
    /// The command to run for the user does not exist: exit code 127, as in a shell.
    NotFound(String),
    /// The command that ran for the user failed with this exit code and reported why itself.
    Child(u8),
    /// A check failed, and the verb has already reported it: exit code 1.
    ProblemsFound,
    /// Any other failure: exit code 1.
    Failed(io::Error),
    /// Any other failure with a known fix: exit code 1.
    WithHint {
        /// The error message.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
}

impl Failure {
    /// Wrong input, with a hint.
    pub fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

/// Splits an error text into its message and its `hint:` line.
pub fn with_hint(text: &str) -> (String, Option<String>) {
    match text.split_once("\nhint: ") {
        Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
        None => (text.to_owned(), None),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { message, .. }
            | Self::WithHint { message, .. }
            | Self::NotFound(message) => f.write_str(message),
            Self::Child(code) => write!(f, "the command ended with code {code}"),
            Self::ProblemsFound => f.write_str("problems were found"),
            Self::AlreadyReported => f.write_str("the input is wrong"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Reports a failure to the user and returns the exit code.
pub fn code(done: Result<(), Failure>, terminal: &mut Terminal) -> ExitCode {
    let Err(failure) = done else {
        return ExitCode::SUCCESS;
    };
    match &failure {
        // The reader closed the pipe, as `head` does. That is not an error.
        Failure::Failed(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Failure::Failed(_) => {
            terminal.error(&failure.to_string(), None);
            ExitCode::from(1)
        }
        Failure::WithHint { message, hint } => {
            terminal.error(message, hint.as_deref());
            ExitCode::from(1)
        }
        Failure::Input { message, hint } => {
            terminal.error(message, hint.as_deref());
            ExitCode::from(2)
        }
        Failure::NotFound(message) => {
            terminal.error(message, None);
            ExitCode::from(NOT_FOUND)
        }
        Failure::AlreadyReported => ExitCode::from(2),
        Failure::ProblemsFound => ExitCode::from(1),
        Failure::Child(code) => ExitCode::from(*code),
    }
}
