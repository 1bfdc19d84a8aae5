//! Who writes the summary.

use trimtab::config::Config;
use trimtab::session::Pending;

use crate::exit::Failure;

/// Who writes the summary: a model, or nobody.
pub(super) struct Summariser;

impl Summariser {
    /// The model that was named, by flag or in the settings.
    pub(super) fn new(model: Option<&str>, _: &Config) -> Result<Self, Failure> {
        match model {
            None => Ok(Self),
            Some(model) => Err(Failure::input(
                format!("--model {model}: this build has no model client"),
                "leave it out: the summary is put together from the conversation itself",
            )),
        }
    }

    /// The plan with its answers.
    pub(super) fn answer(&self, pending: Pending) -> Pending {
        pending
    }
}
