//! Validates and combines all changes.

use std::collections::{BTreeMap, BTreeSet};

use trimtab_model::{Dialect, Message, Output, RawJson, Role, work};

use super::change::{BodyChange, RefusedChange};
use super::positions::PositionSet;
use super::write::sendable;
use crate::scan::{BodyScan, PartKind, PartSpan};

/// A part: the position of its message, and its index in it.
pub(super) type PartIndex = (usize, usize);

/// The intended result.
#[derive(Debug, Default)]
pub(super) struct BodyDraft<'c> {
    /// The new outputs, with the index of the change.
    pub(super) shown: BTreeMap<PartIndex, (usize, &'c Output)>,
    pub(super) removed: PositionSet,
    pub(super) removed_parts: BTreeSet<PartIndex>,
    pub(super) inserted: BTreeMap<usize, Vec<Message>>,
    pub(super) renamed: BTreeMap<PartIndex, &'c str>,
    pub(super) tools: Vec<&'c [RawJson]>,
    pub(super) calls_no_tools: bool,
    pub(super) limit: Option<u64>,
    pub(super) drops_stale_reasoning: bool,
    /// Text to add to the system field of Messages.
    pub(super) system: Vec<String>,
}

impl<'c> BodyDraft<'c> {
    /// Combines `changes`, if all of them are possible.
    pub(super) fn new(
        scan: &BodyScan<'_>,
        changes: &'c [BodyChange],
    ) -> Result<Self, RefusedChange> {
        let mut draft = Self::default();
        for (index, change) in changes.iter().enumerate() {
            work::step(1);
            let taken = draft.take(scan, index, change);
            taken.map_err(|why| RefusedChange { change: index, why })?;
        }
        // Removing the last part of a message removes the message, because providers reject empty
        // ones.
        draft.remove_emptied(scan);
        Ok(draft)
    }

    fn take(
        &mut self,
        scan: &BodyScan<'_>,
        index: usize,
        change: &'c BodyChange,
    ) -> Result<(), &'static str> {
        match change {
            BodyChange::Show {
                message,
                part,
                output,
            } => {
                let found = part_at(scan, (*message, *part))?;
                // Reject impossible changes before anything is edited: a body is changed completely
                // or not at all.
                require(found.kind == PartKind::Output, "the part is no output")?;
                self.shown.insert((*message, *part), (index, output));
            }
            BodyChange::Rename { message, part, id } => {
                let found = part_at(scan, (*message, *part))?;
                require(!found.id.is_empty(), "the part has no id")?;
                self.renamed.insert((*message, *part), id);
            }
            BodyChange::RemovePart { message, part } => {
                part_at(scan, (*message, *part))?;
                self.removed_parts.insert((*message, *part));
            }
            _ => return self.take_whole(scan, change),
        }
        Ok(())
    }

    /// Adds a change that does not concern a single part.
    fn take_whole(
        &mut self,
        scan: &BodyScan<'_>,
        change: &'c BodyChange,
    ) -> Result<(), &'static str> {
        match change {
            BodyChange::Remove { messages } => {
                require(messages.end <= scan.len(), "there is no such message")?;
                self.removed.insert(messages.clone());
            }
            BodyChange::Replace { message, with } => {
                require(*message < scan.len(), "there is no such message")?;
                require(
                    !(scan.has_head() && *message == 0),
                    "the system's field is not written anew",
                )?;
                // A replacement is a removal and an insertion at the same position.
                self.removed.insert(*message..*message + 1);
                self.insert(scan, *message, with);
            }
            BodyChange::Insert { before, message } => {
                require(*before <= scan.len(), "there is no such position")?;
                self.insert(scan, *before, message);
            }
            BodyChange::StripReasoning { before } => self.strip(scan, *before),
            BodyChange::AddTools { tools } => self.tools.push(tools),
            BodyChange::CallNoTools => self.calls_no_tools = true,
            BodyChange::SetLimit { tokens } => self.limit = Some(*tokens),
            BodyChange::DropStaleReasoning => self.drops_stale_reasoning = true,
            _ => {}
        }
        Ok(())
    }

    fn insert(&mut self, scan: &BodyScan<'_>, before: usize, message: &Message) {
        let dialect = scan.dialect();
        // Our own system messages go into the field of the system prompt; those of the client stay
        // in the conversation.
        let is_ours = message.meta.kind.is_some();
        let has_field = match dialect {
            Dialect::Messages => true,
            Dialect::Responses => scan.has_head(),
            Dialect::Chat => false,
        };
        if has_field && message.role == Role::System && is_ours {
            // Separated from the text before it when it is written.
            let text = message.text();
            self.system.push(text.trim_start_matches('\n').to_owned());
        } else if !message.parts.is_empty() {
            let sent = sendable(message, dialect);
            self.inserted.entry(before).or_default().push(sent);
        }
    }

    fn strip(&mut self, scan: &BodyScan<'_>, before: usize) {
        for message in 0..before.min(scan.len()) {
            let parts = scan.parts(message).iter().enumerate();
            let thoughts = parts.filter(|(_, part)| is_thought(part));
            self.removed_parts
                .extend(thoughts.map(|(part, _)| (message, part)));
        }
    }

    /// Removes messages whose parts are all removed.
    fn remove_emptied(&mut self, scan: &BodyScan<'_>) {
        let touched = self.removed_parts.iter().map(|(message, _)| *message);
        let mut last = None;
        let mut emptied = Vec::new();
        for message in touched {
            if last == Some(message) {
                continue;
            }
            last = Some(message);
            let left = self
                .removed_parts
                .range((message, 0)..(message + 1, 0))
                .count();
            if left == scan.parts(message).len() {
                emptied.push(message);
            }
        }
        for message in emptied {
            self.removed.insert(message..message + 1);
        }
    }

    /// True if the part is not removed.
    pub(super) fn stays(&self, at: PartIndex) -> bool {
        !self.removed.contains(at.0) && !self.removed_parts.contains(&at)
    }
}

fn part_at(scan: &BodyScan<'_>, (message, part): PartIndex) -> Result<PartSpan, &'static str> {
    let found = scan.parts(message).get(part).copied();
    found.ok_or("there is no such part")
}

fn require(holds: bool, why: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(why) }
}

pub(super) fn is_thought(part: &PartSpan) -> bool {
    matches!(part.kind, PartKind::Reasoning { .. })
}
