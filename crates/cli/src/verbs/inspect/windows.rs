//! Determines the window size of a conversation.

use std::collections::HashMap;

use trimtab_wire::catalogue::Catalogue;
use trimtab_wire::transcript::Conversation;

use super::InspectArgs;
use crate::catalogue;
use crate::exit::Failure;

/// Window sizes: from the flags, else from the transcript, else from the catalogue.
pub(super) struct WindowSizes {
    requested: Option<u64>,
    catalogue: Catalogue,
    known: HashMap<String, Option<u64>>,
}

impl WindowSizes {
    pub(super) fn new(args: &InspectArgs) -> Result<Self, Failure> {
        let catalogue = catalogue::load()?;
        let asked = match (args.window, &args.model) {
            (None, Some(model)) => Some(look_up(&catalogue, model)?),
            (window, _) => window,
        };
        Ok(Self {
            requested: asked,
            catalogue,
            known: HashMap::new(),
        })
    }

    /// The window of a conversation, if known.
    pub(super) fn of(&mut self, conversation: &Conversation) -> Option<u64> {
        if let Some(size) = self.requested.or(conversation.window) {
            return Some(size);
        }
        let model = conversation.model.as_deref()?;
        if let Some(known) = self.known.get(model) {
            return *known;
        }
        let found = look_up(&self.catalogue, model).ok();
        self.known.insert(model.to_owned(), found);
        found
    }
}

fn look_up(catalogue: &Catalogue, model: &str) -> Result<u64, Failure> {
    let hint = "give the size of its window in tokens instead: --window N";
    Ok(catalogue::find(catalogue, model, hint)?.model.call_limit())
}
