//! The optional model that writes the summary.

use std::collections::BTreeSet;

use serde_json::json;
use trimtab::config::Config;
use trimtab::session::Pending;
use trimtab_agent::model::{Client, Model};
use trimtab_agent::tools::Definition;
use trimtab_model::Message;
use trimtab_wire::transcript::Conversation;

use crate::exit::Failure;
use crate::model::Wanted;
use crate::{catalogue, model, settings};

/// The model that writes the summary, if any.
pub(super) struct Summariser(Option<Model>);

impl Summariser {
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
        pending: Pending,
        conversation: &Conversation,
    ) -> std::io::Result<Pending> {
        let Some(model) = &self.0 else {
            return Ok(pending);
        };
        let summariser = trimtab_agent::Summariser {
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
        return Ok(Model::new(Client::new(script.writes_summaries()), name));
    }
    let wanted = Wanted {
        name,
        base_url,
        ..Wanted::default()
    };
    model::find(&wanted, &catalogue::load()?, settings::outgoing(config)?)
}

/// The tools that were called, because some providers reject calls of unlisted tools.
fn tools(conversation: &Conversation) -> Vec<Definition> {
    let calls = conversation.messages.iter().flat_map(Message::calls);
    let names: BTreeSet<&str> = calls.map(|call| call.name.as_str()).collect();
    let definition = |name: &str| Definition::new(name, "", json!({"type": "object"}));
    names.into_iter().map(definition).collect()
}
