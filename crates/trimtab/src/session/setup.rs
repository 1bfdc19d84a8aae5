//! What a session is opened with.

use std::sync::Arc;
use std::time::Duration;

use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::Dialect;
use trimtab_model::estimate::{Calibration, Measure};
use trimtab_wire::catalogue::{PriceTier, Prices};

/// What a model allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Its window in tokens, where it is known.
    pub window: Option<u64>,
    /// How long an answer may be, in tokens, where it is known.
    pub max_output: Option<u64>,
    /// The most bytes that a request may have, where there is a limit.
    pub bytes: Option<u64>,
}

impl Limits {
    /// What is kept free for an answer where nobody says how long it may be: a small share of a
    /// small window, and never more than answers usually take.
    pub fn usual_answer(window: u64) -> u64 {
        (window / 32).min(8_192)
    }
}

/// What a session is opened with: everything that a decision depends on beside the messages.
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
    /// What decides.
    pub policy: Arc<Policy>,
    /// Whose rules the window must meet.
    pub dialect: Dialect,
    /// What the model allows.
    pub limits: Limits,
    /// What the model costs, where it is known.
    pub prices: Option<Prices>,
    /// What it costs above certain lengths of the prompt, by rising length.
    pub tiers: Vec<PriceTier>,
    /// How long the provider keeps an unused prompt in its cache, where it is known.
    pub cache_lifetime: Option<Duration>,
    /// The tool definitions, measured: `Measure::of_text` of their JSON.
    pub tools: Measure,
    /// What was learned of this model's counts. Keep one per model and hand it on: see
    /// [`Session::calibration`](super::Session::calibration).
    pub calibration: Calibration,
    /// What the retrieval tools are called that the model has. None if it has none: then nothing
    /// but the presets' own texts names a ref.
    pub retrieval: Option<ToolNames>,
    /// True if the model is known to count as we do: then nothing is learned from its reports.
    pub counts_as_we_do: bool,
}

impl Setup {
    /// The defaults with this policy, for a model that has the retrieval tools.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Self {
            policy: policy.into(),
            retrieval: Some(ToolNames::default()),
            ..Self::default()
        }
    }
}
