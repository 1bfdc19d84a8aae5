//! One thing that was looked at.

use serde::Serialize;
use trimtab::redact::redact_urls;

use crate::exit::Failure;

/// How it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// It works, and deserves a look.
    Warning,
    /// It does not work.
    Problem,
}

impl State {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    /// What it is.
    pub(super) name: String,
    /// How it was found.
    pub(super) state: State,
    /// What was found.
    pub(super) message: String,
    /// What to do.
    pub(super) hint: Option<String>,
}

impl Check {
    pub(super) fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state: State::Ok,
            message: redact_urls(&message.into()).into_owned(),
            hint: None,
        }
    }

    pub(super) fn warning(
        name: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Warning,
            hint: Some(hint.into()),
            ..Self::ok(name, message)
        }
    }

    pub(super) fn problem(
        name: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Problem,
            ..Self::warning(name, message, hint)
        }
    }

    /// What a failure of ours says.
    pub(super) fn of_failure(name: impl Into<String>, failure: &Failure) -> Self {
        let hint = match failure {
            Failure::Input { hint, .. } | Failure::Stuck { hint, .. } => hint.clone(),
            _ => None,
        };
        Self {
            hint,
            ..Self::problem(name, failure.to_string(), "")
        }
    }
}
