//! Stores removed messages, so that a ref can retrieve them.
//!
//! Their text ends with the refs of what was removed before. So everything can be found from the
//! newest ref in the window.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_engine::decide::CompactionDraft;
use trimtab_engine::plan::Plan;
use trimtab_engine::view::placeholder::called_refs;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::{Message, RawJson, Ref, work};
use trimtab_store::Put;

use super::readable::readable;
use super::{Session, SessionError};

/// Media type of messages that a compaction replaced.
const ROUNDS: &str = "application/vnd.trimtab.messages+json";
/// The number of refs per line.
const REFS_PER_LINE: usize = 40;
/// The maximum of earlier compactions that are named. The oldest of them names those before it, so
/// that texts do not grow with every compaction.
const MOST_EARLIER: usize = 160;

/// The refs of the outputs which the messages show in part or not at all. Not every design names
/// them where it cuts.
fn refs_of_cut_outputs(messages: &[&Arc<Message>]) -> Vec<String> {
    let outputs = messages.iter().flat_map(|message| message.outputs());
    let cut = outputs.filter(|output| output.trimmed);
    let ids = cut.filter_map(|output| Some(output.stored.as_ref()?.id().to_owned()));
    ids.collect()
}

/// Lines that name these refs, each once; empty if there are none.
fn lines(beginning: &str, mut ids: Vec<String>) -> String {
    let mut known = HashSet::new();
    ids.retain(|id| known.insert(id.clone()));
    work::step(ids.len());
    let mut lines = String::new();
    for ids in ids.chunks(REFS_PER_LINE) {
        // Writing into a String cannot fail.
        let _ = writeln!(lines, "[trimtab: {beginning} {}]", ids.join(", "));
    }
    lines
}

impl Session {
    /// Stores the messages that a draft replaces, if there are any.
    pub(super) fn store_replaced(&self, draft: &mut CompactionDraft) -> Result<(), SessionError> {
        let gone: Vec<_> = draft.replaced().collect();
        if gone.is_empty() {
            return Ok(());
        }
        let messages = RawJson::of(&gone);
        let outputs = lines(
            "what was left out before is behind",
            refs_of_cut_outputs(&gone),
        );
        let earlier = lines("earlier messages are behind", self.refs_of_earlier());
        let text = readable(&gone) + &outputs + &earlier;
        let call = format!("compaction-{}", self.projection.log().len());
        let put = Put::new(&call, messages.as_str()).media_type(ROUNDS);
        let stored = self.store.put(&self.id, put.text(&text))?;
        draft.stored = Some(self.as_shown_ref(stored));
        Ok(())
    }

    /// The refs of the messages that earlier compactions removed, the newest first.
    fn refs_of_earlier(&self) -> Vec<String> {
        let plans = self.projection.journal().newest_compactions();
        let inserted = plans.take(MOST_EARLIER).flat_map(Plan::inserted);
        let refs = inserted.flat_map(|message| {
            let text = message.text();
            let refs = called_refs(&text).map(str::to_owned);
            refs.collect::<Vec<String>>()
        });
        refs.collect()
    }

    /// A ref as it is shown to the model.
    pub(super) fn as_shown_ref(&self, stored: Ref) -> Ref {
        match self.setup.retrieval {
            Some(names) if names != ToolNames::default() => stored.read_with(names.read),
            _ => stored,
        }
    }
}
