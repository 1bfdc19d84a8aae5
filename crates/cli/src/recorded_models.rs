//! The windows and prices of recorded conversations, for all verbs that read transcripts.

use std::collections::HashMap;

use trimtab::replay::ReplaySettings;
use trimtab::replay::bill::USUAL;
use trimtab_model::estimate::Measure;
use trimtab_wire::catalogue::{Catalogue, ModelInfo};
use trimtab_wire::transcript::Conversation;

use crate::catalogue;
use crate::exit::Failure;

/// The window if neither the flags nor the transcript nor the catalogue name one.
const USUAL_WINDOW: u64 = 128_000;

/// The models of conversations: from the flags, else from the transcript and the catalogue.
pub struct RecordedModels {
    /// The flag `--window`.
    window: Option<u64>,
    /// The model of the flag `--model`.
    model: Option<ModelInfo>,
    catalogue: Catalogue,
    known: HashMap<String, Option<ModelInfo>>,
}

impl RecordedModels {
    /// Takes the values of the flags `--window` and `--model`. Fails if the model is unknown.
    pub fn new(window: Option<u64>, model: Option<&str>) -> Result<Self, Failure> {
        let catalogue = catalogue::load()?;
        let hint = "give the size of its window in tokens instead: --window N";
        let found = model.map(|model| catalogue::find(&catalogue, model, hint));
        Ok(Self {
            window,
            model: found.transpose()?.map(|found| found.model),
            catalogue,
            known: HashMap::new(),
        })
    }

    /// The window that the flags name.
    pub fn flagged_window(&self) -> Option<u64> {
        let by_model = self.model.as_ref().map(ModelInfo::call_limit);
        self.window.or(by_model)
    }

    /// The conditions of a replay by the flags alone, for all conversations.
    pub fn flagged_settings(&self) -> ReplaySettings {
        settings(self.flagged_window(), self.model.clone())
    }

    /// The window of a conversation, if known.
    pub fn window(&mut self, conversation: &Conversation) -> Option<u64> {
        let named = self.flagged_window().or(conversation.window);
        named.or_else(|| Some(self.model(conversation)?.call_limit()))
    }

    /// The conditions of a replay of one conversation.
    pub fn settings(&mut self, conversation: &Conversation) -> ReplaySettings {
        let tools = conversation.tools.iter();
        ReplaySettings {
            tools: tools.map(|tool| Measure::of_tools(tool.as_str())).sum(),
            ..settings(self.window(conversation), self.model(conversation))
        }
    }

    fn model(&mut self, conversation: &Conversation) -> Option<ModelInfo> {
        if self.model.is_some() {
            return self.model.clone();
        }
        let name = conversation.model.as_deref()?;
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let found = self.catalogue.find(name).ok().map(|found| found.model);
        // Unknown names are remembered too: most files name one model in every conversation.
        self.known.insert(name.to_owned(), found.clone());
        found
    }
}

fn settings(window: Option<u64>, model: Option<ModelInfo>) -> ReplaySettings {
    let prices = model.as_ref().and_then(|model| model.prices);
    let bound = model.as_ref().map(|model| model.rules.bound_reasoning);
    ReplaySettings {
        // The reasoning of an unknown model may be bound.
        bound_reasoning: bound.unwrap_or(true),
        prices: prices.unwrap_or(USUAL),
        tiers: model.map_or_else(Vec::new, |model| model.tiers),
        ..ReplaySettings::new(window.unwrap_or(USUAL_WINDOW))
    }
}
