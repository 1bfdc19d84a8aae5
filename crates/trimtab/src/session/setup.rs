//! The setup of a session.

use std::sync::Arc;
use std::time::Duration;

use trimtab_engine::normalise::NormaliseOptions;
use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::Dialect;
use trimtab_model::estimate::{Calibration, Measure};
use trimtab_wire::catalogue::{PriceTier, Prices};

/// The limits of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Its window in tokens, if known.
    pub window: Option<u64>,
    /// The maximum length of an answer in tokens, if known.
    pub max_output: Option<u64>,
    /// The maximum size of a request in bytes, if there is one.
    pub bytes: Option<u64>,
}

impl Limits {
    /// The reserve for an answer of unknown length: a small share of a small window, and at most
    /// what answers usually take.
    pub fn usual_answer(window: u64) -> u64 {
        (window / 32).min(8_192)
    }
}

/// The setup of a session: everything that decisions depend on besides the messages.
///
/// ```
/// use trimtab::engine::policy::Policy;
/// use trimtab::session::{Limits, Setup};
///
/// let setup = Setup {
///     limits: Limits { window: Some(200_000), ..Limits::default() },
///     ..Setup::new(Policy::preset("steady").unwrap())
/// };
/// assert_eq!(setup.policy.preset, "steady");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The settings.
    pub policy: Arc<Policy>,
    /// The dialect whose rules the window must follow.
    pub dialect: Dialect,
    /// The limits of the model.
    pub limits: Limits,
    /// The prices of the model, if known.
    pub prices: Option<Prices>,
    /// The prices above certain prompt lengths, by rising length.
    pub tiers: Vec<PriceTier>,
    /// How long the provider keeps an unused prompt in its cache, if known.
    pub cache_lifetime: Option<Duration>,
    /// The measure of the tool definitions: `Measure::of_tools` of their JSON.
    pub tools: Measure,
    /// What was learned about how this model counts. Keep one per model and pass it on: see
    /// [`Session::calibration`](super::Session::calibration).
    pub calibration: Calibration,
    /// The names of the model's retrieval tools. None if it has none: then only the presets' own
    /// texts name refs.
    pub retrieval: Option<ToolNames>,
    /// True if the model rejects signed reasoning once something before it has changed. Every edit
    /// then also removes the reasoning behind it.
    pub bound_reasoning: bool,
    /// True if the model is known to count as we do: then nothing is learned from its usage.
    pub counts_as_we_do: bool,
}

impl Setup {
    /// The defaults with this policy, for a model that has the retrieval tools and may bind its
    /// reasoning.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Self {
            policy: policy.into(),
            retrieval: Some(ToolNames::default()),
            bound_reasoning: true,
            ..Self::default()
        }
    }

    /// How windows are normalised.
    pub(crate) fn normalise(&self) -> NormaliseOptions {
        NormaliseOptions {
            dialect: self.dialect,
            habit: self.policy.repair,
        }
    }
}
