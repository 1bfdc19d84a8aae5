//! Stores removed messages, so that a ref can retrieve them.
//!
//! Their text ends with the refs of what was removed before. So everything can be found from the
//! newest ref in the window.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_engine::planner::CompactionDraft;
use trimtab_engine::view::placeholder::{called_refs, is_ref_id};
use trimtab_engine::view::tools::ToolNames;
use trimtab_model::{Message, MessageKind, RawJson, Ref, work};
use trimtab_store::{LineRange, OutputForm, Put};

use super::readable::readable;
use super::{Session, SessionError};

/// Media type of messages that a compaction replaced.
const ROUNDS: &str = "application/vnd.trimtab.messages+json";
/// The number of refs per line.
const REFS_PER_LINE: usize = 40;
/// The maximum of refs of one kind at the end of a text, and how many of the newest remain when the
/// older ones are stored as a list of their own. Otherwise the texts would grow with every
/// compaction.
const MOST_REFS: usize = 160;
const NEWEST_REFS: usize = 40;
/// The maximum of lines at the end of stored messages that are searched for refs.
const LISTED_LINES: u64 = 64;
/// The beginning of a line with the refs of outputs that were cut earlier.
const EARLIER_OUTPUTS: &str = "[trimtab: what was left out before is behind ";
/// The beginning of a line with the refs of messages that were removed earlier.
const EARLIER_MESSAGES: &str = "[trimtab: earlier messages are behind ";
/// The beginning of a line with the refs of texts that consist of such lines.
const EARLIER_LISTS: &str = "[trimtab: lists of still earlier messages are behind ";

/// The refs of what was removed before, newest first.
#[derive(Debug, Default, PartialEq, Eq)]
struct EarlierRefs {
    /// Outputs that the removed messages showed in part or not at all.
    outputs: Vec<String>,
    /// Messages that were removed before.
    messages: Vec<String>,
    /// Lists of messages that were removed still earlier.
    lists: Vec<String>,
}

impl EarlierRefs {
    /// The lines that name them, with those of messages at the end; empty if there are none.
    fn lines(&self) -> String {
        let outputs = lines(EARLIER_OUTPUTS, &self.outputs);
        let messages = lines(EARLIER_MESSAGES, &self.messages);
        outputs + &messages + &lines(EARLIER_LISTS, &self.lists)
    }

    /// Adds the refs of messages and lists that a line names; none if it is any other line.
    fn read_line(&mut self, line: &str) {
        let line = line.trim_end().strip_suffix(']').unwrap_or_default();
        let kinds = [
            (EARLIER_MESSAGES, &mut self.messages),
            (EARLIER_LISTS, &mut self.lists),
        ];
        for (beginning, refs) in kinds {
            let named = line.strip_prefix(beginning).into_iter();
            let named = named.flat_map(|named| named.split(", "));
            refs.extend(named.filter(|id| is_ref_id(id)).map(str::to_owned));
        }
    }
}

/// Lines that name `refs`, each after `beginning`.
fn lines(beginning: &str, refs: &[String]) -> String {
    let mut lines = String::new();
    work::step(refs.len());
    for refs in refs.chunks(REFS_PER_LINE) {
        // Writing into a String cannot fail.
        let _ = writeln!(lines, "{beginning}{}]", refs.join(", "));
    }
    lines
}

/// True for a message of ours that represents others.
fn stands_for_messages(message: &Message) -> bool {
    matches!(
        message.meta.kind,
        Some(MessageKind::Summary | MessageKind::Note | MessageKind::ToolSummary)
    )
}

/// The refs in the retrieval calls of a message, the last one first.
fn newest_calls(message: &Message) -> Vec<String> {
    let text = message.text();
    let mut refs: Vec<String> = called_refs(&text).map(str::to_owned).collect();
    refs.reverse();
    refs
}

impl Session {
    /// Stores the messages that a draft replaces.
    pub(super) fn store_replaced(&self, draft: &mut CompactionDraft) -> Result<(), SessionError> {
        let replaced: Vec<_> = draft.replaced().collect();
        if let Some(stored) = self.store_messages(&replaced)? {
            draft.stored_at(stored);
        }
        Ok(())
    }

    /// Stores removed messages; none if there are none.
    fn store_messages(&self, gone: &[&Arc<Message>]) -> Result<Option<Ref>, SessionError> {
        if gone.is_empty() {
            return Ok(None);
        }
        let mut earlier = self.refs_of_earlier(gone)?;
        self.store_oldest_refs(&mut earlier)?;
        let messages = RawJson::of(&gone);
        let text = readable(gone) + &earlier.lines();
        let call = format!("compaction-{}", self.projection.log().len());
        let put = Put::new(&call, messages.as_str()).media_type(ROUNDS);
        let stored = self.store.put(&self.id, put.text(&text))?;
        Ok(Some(self.as_shown_ref(stored)))
    }

    /// The refs of what was removed before `gone`, each once: those in its outputs and in our own
    /// messages, and the messages listed behind these. Outputs listed there are not repeated, or
    /// the lists would grow with every output of the session.
    fn refs_of_earlier(&self, gone: &[&Arc<Message>]) -> Result<EarlierRefs, SessionError> {
        let (mut earlier, mut known) = (EarlierRefs::default(), HashSet::new());
        for message in gone {
            // Only cut outputs: the others are in the stored messages in full.
            let trimmed = message.outputs().filter(|output| output.trimmed);
            let stored = trimmed.filter_map(|output| output.stored.as_ref());
            earlier
                .outputs
                .extend(stored.map(|stored| stored.id().to_owned()));
        }
        // The newest first: its list contains those of all before it, which need not be read.
        let ours = gone.iter().rev().filter(|gone| stands_for_messages(gone));
        for id in ours.flat_map(|message| newest_calls(message)) {
            if !known.insert(id.clone()) {
                continue;
            }
            let Some(behind) = self.listed_behind(&id)? else {
                earlier.outputs.push(id);
                continue;
            };
            earlier.messages.push(id);
            let mut is_new = |id: &String| known.insert(id.clone());
            let messages = behind.messages.into_iter();
            earlier.messages.extend(messages.filter(&mut is_new));
            earlier
                .lists
                .extend(behind.lists.into_iter().filter(is_new));
        }
        let mut listed = HashSet::new();
        earlier.outputs.retain(|id| listed.insert(id.clone()));
        Ok(earlier)
    }

    /// The refs at the end of stored messages; none if something else is stored under `id`.
    fn listed_behind(&self, id: &str) -> Result<Option<EarlierRefs>, SessionError> {
        let metadata = match self.store.metadata(&self.id, id) {
            // The id comes from a text, so it can be one that the store never had.
            Err(error) if error.is_not_found() => return Ok(None),
            metadata => metadata?,
        };
        if metadata.labels.media_type != ROUNDS {
            return Ok(None);
        }
        let stored = self.store.open(&self.id, id, OutputForm::Text)?;
        // The list is at the end, and the messages before it can be long.
        let offset = stored.line_count().saturating_sub(LISTED_LINES);
        let read = stored.lines(LineRange::new(offset, LISTED_LINES))?;
        let mut listed = EarlierRefs::default();
        for line in &read.lines {
            listed.read_line(&String::from_utf8_lossy(&line.bytes));
        }
        Ok(Some(listed))
    }

    /// Stores the oldest refs as a list of their own if there are too many.
    fn store_oldest_refs(&self, earlier: &mut EarlierRefs) -> Result<(), SessionError> {
        if earlier.messages.len() > MOST_REFS {
            let oldest = earlier.messages.split_off(NEWEST_REFS);
            let list = self.store_list(EARLIER_MESSAGES, &oldest)?;
            earlier.lists.insert(0, list);
        }
        if earlier.lists.len() > MOST_REFS {
            let oldest = earlier.lists.split_off(NEWEST_REFS);
            earlier.lists.push(self.store_list(EARLIER_LISTS, &oldest)?);
        }
        Ok(())
    }

    fn store_list(&self, beginning: &str, refs: &[String]) -> Result<String, SessionError> {
        let text = lines(beginning, refs);
        let call = format!("earlier-refs-{}", self.projection.log().len());
        let stored = self.store.put(&self.id, Put::new(&call, &text))?;
        Ok(stored.id().to_owned())
    }

    /// A ref as it is shown to the model.
    pub(super) fn as_shown_ref(&self, stored: Ref) -> Ref {
        match self.setup.retrieval {
            Some(names) if names != ToolNames::default() => stored.read_with(names.read),
            _ => stored,
        }
    }
}
