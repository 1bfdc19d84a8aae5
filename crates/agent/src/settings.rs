//! The settings of an agent: model, policy, tools and limits.

use std::time::Duration;

use trimtab::request::may_bind_reasoning;
use trimtab::session::{Limits, Setup};
use trimtab_engine::policy::KeepRule;
use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::RawJson;
use trimtab_model::estimate::Measure;
use trimtab_wire::catalogue::{Catalogue, ModelInfo as Known, PriceTier, Prices};

use crate::model::{Model, ModelClient};
use crate::tools::{ToolSet, Workspace};

/// The default maximum of rounds in a turn. A model that needs more is usually in a loop.
const ROUNDS: u32 = 200;

/// The default time limit of a tool call, above the limits of the tools themselves.
const TOOL_TIME: Duration = Duration::from_mins(15);

/// The default reserve for an answer in tokens. Models can give longer answers, but reserving more
/// leaves less room for everything else.
const ANSWER: u64 = 16_384;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The model.
    pub model: Model,
    /// The model that writes summaries. If unset: the agent's client, with `compaction.model` of
    /// the policy if set.
    pub summariser: Option<Model>,
    /// The policy for the window.
    pub policy: Policy,
    /// The limits of the model.
    pub limits: Limits,
    /// The prices of the model, if known.
    pub prices: Option<Prices>,
    /// Prices above certain prompt lengths.
    pub tiers: Vec<PriceTier>,
    /// How long the provider keeps an unused prompt in its cache, if known.
    pub cache_lifetime: Option<Duration>,
    /// The system prompt; may be empty.
    pub system: String,
    /// The tools. The two retrieval tools are added.
    pub tools: ToolSet,
    /// The workspace of the tools.
    pub workspace: Workspace,
    /// The maximum number of rounds in a turn.
    pub max_rounds: u32,
    /// The time limit of a tool call.
    pub tool_time: Duration,
}

impl AgentSettings {
    /// An agent on `model` in `workspace` with the standard tools and our own preset. Limits and
    /// prices come from the catalogue; the window of an unknown model is unknown until the provider
    /// rejects a prompt as too long.
    pub fn new(model: Model, workspace: Workspace) -> Self {
        let settings = Self {
            limits: Limits::default(),
            prices: None,
            cache_lifetime: None,
            tiers: Vec::new(),
            model: model.clone(),
            summariser: None,
            policy: Policy::preset("steady").unwrap_or_default(),
            system: String::new(),
            tools: ToolSet::standard(),
            workspace,
            max_rounds: ROUNDS,
            tool_time: TOOL_TIME,
        };
        settings.with_model(model)
    }

    /// Changes the model, with limits and prices from the catalogue.
    #[must_use]
    pub fn with_model(mut self, model: Model) -> Self {
        let known = known(&model.name);
        self.limits = known.as_ref().map(limits).unwrap_or_default();
        self.prices = known.as_ref().and_then(|known| known.prices);
        self.cache_lifetime = known.as_ref().and_then(|known| known.cache.lifetime);
        self.tiers = known.map(|known| known.tiers).unwrap_or_default();
        self.model = model;
        self
    }

    /// The model that writes summaries.
    pub(crate) fn summariser(&self) -> Model {
        if let Some(summariser) = &self.summariser {
            return summariser.clone();
        }
        let mut model = self.model.clone();
        if !self.policy.compaction.model.is_empty() {
            model.name.clone_from(&self.policy.compaction.model);
        }
        model
    }

    /// The setup of the session. `tools` are all tools, including the retrieval tools with the
    /// names in `retrieval`.
    pub(crate) fn setup(&self, tools: &ToolSet, retrieval: Option<ToolNames>) -> Setup {
        // The session's copy of the policy is changed, and not the user's.
        let mut policy = self.policy.clone();
        let protected = tools.protected();
        // Protected tools are shown in full and survive compactions, whatever the policy says.
        if !protected.is_empty() {
            let tools = protected;
            policy.views.protected.extend_from_slice(&tools);
            policy
                .compaction
                .keep
                .push(KeepRule::ProtectedTools { tools });
        }
        let dialect = self.model.client.dialect();
        let definitions = tools.definitions();
        let written = definitions.iter().map(|tool| tool.in_dialect(dialect));
        let written: Vec<_> = written.collect();
        Setup {
            dialect,
            limits: self.limits,
            prices: self.prices,
            tiers: self.tiers.clone(),
            cache_lifetime: self.cache_lifetime,
            tools: Measure::of_tools(RawJson::of(&written).as_str()),
            retrieval,
            bound_reasoning: may_bind_reasoning(
                known(&self.model.name).map(|known| known.rules.bound_reasoning),
                dialect,
            ),
            ..Setup::new(policy)
        }
    }
}

impl Model {
    /// The model `name` at `client`.
    pub fn new(client: ModelClient, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { client, name }
    }
}

fn known(name: &str) -> Option<Known> {
    let found = Catalogue::embedded().find(name).ok()?;
    Some(found.model)
}

fn limits(model: &Known) -> Limits {
    let window = model.call_limit();
    // A quarter of the window at most, so that small models keep room for the conversation.
    let most = ANSWER.min(window / 4);
    Limits {
        window: Some(window),
        max_output: Some(model.max_output.unwrap_or(most).min(most)),
        ..Limits::default()
    }
}
