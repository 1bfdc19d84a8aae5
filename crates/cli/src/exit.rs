//! How a run ends: 0 done, 1 it failed, 2 the input or the arguments are wrong.

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::ui::Terminal;

/// The exit code of a shell for a command that is not there.
const NOT_FOUND: u8 = 127;

/// Why a verb did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The input or the arguments are wrong: exit code 2.
    Input {
        /// What is wrong.
        message: String,
        /// The way out.
        hint: Option<String>,
    },
    /// Every fault was told already, as it was met: exit code 2.
    Told,
    /// A command that should be run for the user is not there: exit code 127, as in a shell.
    NotFound(String),
    /// A command that was run for the user ended like this, and said why itself.
    Child(u8),
    /// Something was found to be wrong, and was told already: exit code 1.
    Found,
    /// Something else failed: exit code 1.
    Failed(io::Error),
    /// Something else failed, and there is a way out: exit code 1.
    Stuck {
        /// What failed.
        message: String,
        /// The way out.
        hint: Option<String>,
    },
}

impl Failure {
    /// Wrong input, with the way out.
    pub fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

/// A message and the way out, which stands behind it on a line of its own.
pub fn with_hint(text: &str) -> (String, Option<String>) {
    match text.split_once("\nhint: ") {
        Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
        None => (text.to_owned(), None),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { message, .. } | Self::Stuck { message, .. } | Self::NotFound(message) => {
                f.write_str(message)
            }
            Self::Child(code) => write!(f, "the command ended with code {code}"),
            Self::Found => f.write_str("something is wrong"),
            Self::Told => f.write_str("the input is wrong"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Tells the user how a run ended and gives its exit code.
pub fn code(done: Result<(), Failure>, terminal: &mut Terminal) -> ExitCode {
    let Err(failure) = done else {
        return ExitCode::SUCCESS;
    };
    match &failure {
        // Whoever reads our output has seen enough.
        Failure::Failed(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Failure::Failed(_) => {
            terminal.error(&failure.to_string(), None);
            ExitCode::from(1)
        }
        Failure::Stuck { message, hint } => {
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
        Failure::Told => ExitCode::from(2),
        Failure::Found => ExitCode::from(1),
        Failure::Child(code) => ExitCode::from(*code),
    }
}
