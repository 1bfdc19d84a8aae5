//! What an agent is made of.

use std::time::Duration;

use trimtab::session::{Limits, Setup};
use trimtab_engine::compaction::keep::Keep;
use trimtab_engine::policy::Policy;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::RawJson;
use trimtab_model::estimate::Measure;
use trimtab_wire::catalogue::{Catalogue, Model as Known, Prices, Tier};

use crate::model::{Client, Model};
use crate::tools::{Tools, Workspace};

/// The most rounds of one turn unless set: more is a model that runs in circles.
const ROUNDS: u32 = 200;

/// How long one call of a tool may take unless set: longer than any limit of the tools here.
const TOOL_TIME: Duration = Duration::from_mins(15);

/// The longest answer that room is kept for unless set, in tokens. Models can give longer
/// ones, but an agent that keeps room for them has less for everything else.
const ANSWER: u64 = 16_384;

/// The window of a model of which nothing is known, in tokens: most models have at least this. An
/// error that names a smaller one corrects it.
pub const ASSUMED_WINDOW: u64 = 32_000;

/// What an agent is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model.
    pub model: Model,
    /// The model that writes summaries; the agent's own client and `compaction.model` of the
    /// policy where unset.
    pub summariser: Option<Model>,
    /// What decides about the window.
    pub policy: Policy,
    /// What the model allows.
    pub limits: Limits,
    /// What it costs, where that is known.
    pub prices: Option<Prices>,
    /// What it costs above certain lengths of the prompt.
    pub tiers: Vec<Tier>,
    /// How long its provider keeps an unused prompt in its cache, where that is known.
    pub cache_lifetime: Option<Duration>,
    /// What it is told before all else; nothing if empty.
    pub system: String,
    /// What it can do. The two retrieval tools are added.
    pub tools: Tools,
    /// Where it works.
    pub workspace: Workspace,
    /// The most rounds of one turn.
    pub max_rounds: u32,
    /// How long one call of a tool may take.
    pub tool_time: Duration,
}

impl Settings {
    /// An agent on `model` in `workspace` with the standard tools and our own policy. What the
    /// catalogue knows of the model's limits and prices is taken from there; a model that it does
    /// not know has [`ASSUMED_WINDOW`].
    pub fn new(model: Model, workspace: Workspace) -> Self {
        let known = known(&model.name);
        Self {
            limits: known.as_ref().map_or_else(assumed, limits),
            prices: known.as_ref().and_then(|known| known.prices),
            cache_lifetime: known.as_ref().and_then(|known| known.cache.lifetime),
            tiers: known.map(|known| known.tiers).unwrap_or_default(),
            model,
            summariser: None,
            policy: Policy::preset("steady").unwrap_or_default(),
            system: String::new(),
            tools: Tools::standard(),
            workspace,
            max_rounds: ROUNDS,
            tool_time: TOOL_TIME,
        }
    }

    /// The same on another model, with what the catalogue knows of it.
    #[must_use]
    pub fn with_model(mut self, model: Model) -> Self {
        let known = known(&model.name);
        self.limits = known.as_ref().map_or_else(assumed, limits);
        self.prices = known.as_ref().and_then(|known| known.prices);
        self.cache_lifetime = known.as_ref().and_then(|known| known.cache.lifetime);
        self.tiers = known.map(|known| known.tiers).unwrap_or_default();
        self.model = model;
        self
    }

    /// Who writes summaries.
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

    /// What the session is opened with. `tools` are all tools, those for retrieval included, which
    /// have these names.
    pub(crate) fn setup(&self, tools: &Tools, retrieval: Option<ToolNames>) -> Setup {
        let mut policy = self.policy.clone();
        let protected = tools.protected();
        if !protected.is_empty() {
            let tools = protected;
            policy.views.protected.extend_from_slice(&tools);
            policy.compaction.keep.push(Keep::ProtectedTools { tools });
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
            tools: Measure::of_text(RawJson::of(&written).as_str()),
            retrieval,
            ..Setup::new(policy)
        }
    }
}

impl Model {
    /// The model that `client` knows by `name`.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { client, name }
    }
}

fn known(name: &str) -> Option<Known> {
    let found = Catalogue::embedded().find(name).ok()?;
    Some(found.model)
}

fn assumed() -> Limits {
    Limits {
        window: Some(ASSUMED_WINDOW),
        ..Limits::default()
    }
}

fn limits(model: &Known) -> Limits {
    let window = model.call_limit();
    let most = ANSWER.min(window / 4);
    Limits {
        window: Some(window),
        max_output: Some(model.max_output.unwrap_or(most).min(most)),
        ..Limits::default()
    }
}
