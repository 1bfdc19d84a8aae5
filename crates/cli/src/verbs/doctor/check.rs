//! The result of one check.

use serde::Serialize;
use trimtab::redact::redact_urls;

use crate::exit::Failure;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckState {
    /// No problem.
    Ok,
    /// It works, but deserves attention.
    Warning,
    /// It does not work.
    Problem,
}

impl CheckState {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DoctorCheck {
    /// The name of the check.
    pub(super) name: String,
    /// The outcome.
    pub(super) state: CheckState,
    /// The finding.
    pub(super) message: String,
    /// How to fix it.
    pub(super) hint: Option<String>,
}

impl DoctorCheck {
    pub(super) fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state: CheckState::Ok,
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
            state: CheckState::Warning,
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
            state: CheckState::Problem,
            ..Self::warning(name, message, hint)
        }
    }

    /// The check for a failure of the verb.
    pub(super) fn of_failure(name: impl Into<String>, failure: &Failure) -> Self {
        let hint = match failure {
            Failure::Input { hint, .. } | Failure::WithHint { hint, .. } => hint.clone(),
            _ => None,
        };
        Self {
            hint,
            ..Self::problem(name, failure.to_string(), "")
        }
    }
}
