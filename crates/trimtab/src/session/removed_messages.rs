//! Stores removed messages, so that a ref can retrieve them.
//!
//! A summary among them names the ref of what it replaced. So everything can be found from the
//! newest ref in the window, one step after the other.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_engine::decide::CompactionDraft;
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::{Message, RawJson, Ref, work};
use trimtab_store::Put;

use super::readable::readable;
use super::{Session, SessionError};

/// Media type of messages that a compaction replaced.
const ROUNDS: &str = "application/vnd.trimtab.messages+json";
/// The number of refs per line.
const REFS_PER_LINE: usize = 40;

/// Lines that name the refs of the outputs which the messages show in part or not at all; empty if
/// there are none. Not every design names them where it cuts.
fn refs_of_cut_outputs(messages: &[&Arc<Message>]) -> String {
    let outputs = messages.iter().flat_map(|message| message.outputs());
    let cut = outputs.filter(|output| output.trimmed);
    let ids = cut.filter_map(|output| Some(output.stored.as_ref()?.id()));
    let mut known = HashSet::new();
    let ids: Vec<&str> = ids.filter(|id| known.insert(*id)).collect();
    work::step(ids.len());
    let mut lines = String::new();
    for ids in ids.chunks(REFS_PER_LINE) {
        let ids = ids.join(", ");
        // Writing into a String cannot fail.
        let _ = writeln!(lines, "[trimtab: what was left out before is behind {ids}]");
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
        let text = readable(&gone) + &refs_of_cut_outputs(&gone);
        let call = format!("compaction-{}", self.projection.log().len());
        let put = Put::new(&call, messages.as_str()).media_type(ROUNDS);
        let stored = self.store.put(&self.id, put.text(&text))?;
        draft.stored = Some(self.as_shown_ref(stored));
        Ok(())
    }

    /// A ref as it is shown to the model.
    pub(super) fn as_shown_ref(&self, stored: Ref) -> Ref {
        match self.setup.retrieval {
            Some(names) if names != ToolNames::default() => stored.read_with(names.read),
            _ => stored,
        }
    }
}
