//! The optional model that writes the summary.

use std::collections::BTreeSet;

use serde_json::json;
use trimtab::config::Config;
use trimtab::session::PendingSummary;
use trimtab_agent::model::{Model, ModelClient};
use trimtab_agent::tools::ToolDefinition;
use trimtab_model::Message;
use trimtab_wire::transcript::Conversation;

use crate::exit::Failure;
use crate::model::ModelChoice;
use crate::{catalogue, model, settings};

/// The model that writes the summary, if any.
pub(super) struct CompactSummariser(Option<Model>);

impl CompactSummariser {
    /// The model named by the flag or in the settings, and its server.
    pub(super) fn new(
        named: Option<&str>,
        base_url: Option<&str>,
        config: &Config,
    ) -> Result<Self, Failure> {
        let set = Some(config.policy.compaction.model.as_str()).filter(|name| !name.is_empty());
        let opened = named.or(set).map(|name| open(name, base_url, config));
        opened.transpose().map(Self)
    }

    /// Adds the model's answers to the plan. Without a model the plan uses its fallback.
    pub(super) fn answer(
        &self,
        pending: PendingSummary,
        conversation: &Conversation,
    ) -> std::io::Result<PendingSummary> {
        let Some(model) = &self.0 else {
            return Ok(pending);
        };
        let summariser = trimtab_agent::ModelSummariser {
            model: model.clone(),
            tools: tools(conversation).into(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(runtime.block_on(summariser.answer(pending)))
    }
}

fn open(name: &str, base_url: Option<&str>, config: &Config) -> Result<Model, Failure> {
    if let Some(script) = model::script(name)? {
        return Ok(Model::new(
            ModelClient::new(script.writes_summaries()),
            name,
        ));
    }
    let choice = ModelChoice {
        name,
        base_url,
        ..ModelChoice::default()
    };
    model::find(&choice, &catalogue::load()?, settings::outgoing(config)?)
}

/// The tools that were called, because some providers reject calls of unlisted tools.
fn tools(conversation: &Conversation) -> Vec<ToolDefinition> {
    let calls = conversation.messages.iter().flat_map(Message::calls);
    let names: BTreeSet<&str> = calls.map(|call| call.name.as_str()).collect();
    let definition = |name: &str| ToolDefinition::new(name, "", json!({"type": "object"}));
    names.into_iter().map(definition).collect()
}
