//! All changes of a list, checked and brought together.

use std::collections::{BTreeMap, BTreeSet};

use trimtab_model::{Dialect, Message, Output, RawJson, Role};

use super::change::{Change, Marker, Place, Refused};
use super::containers::value_of;
use super::write::sendable;
use crate::scan::{PartKind, PartSpan, Scan};

/// A part, by position of its message and index in it.
pub(super) type At = (usize, usize);

/// What the body is to become.
#[derive(Debug, Default)]
pub(super) struct Draft<'c> {
    /// What outputs are shown as, with the index of the change.
    pub(super) shown: BTreeMap<At, (usize, &'c Output)>,
    pub(super) removed: BTreeSet<usize>,
    pub(super) removed_parts: BTreeSet<At>,
    pub(super) inserted: BTreeMap<usize, Vec<Message>>,
    pub(super) renamed: BTreeMap<At, &'c str>,
    pub(super) marked: BTreeMap<At, &'c Marker>,
    pub(super) unmarked: BTreeSet<At>,
    pub(super) tools: Vec<(Place, &'c [RawJson])>,
    pub(super) removed_tools: Vec<&'c str>,
    pub(super) limit: Option<u64>,
    pub(super) stops_thinking: bool,
    pub(super) system: Vec<String>,
}

impl<'c> Draft<'c> {
    /// Brings `changes` together, if all of them fit.
    pub(super) fn new(scan: &Scan<'_>, changes: &'c [Change]) -> Result<Self, Refused> {
        let mut draft = Self::default();
        for (index, change) in changes.iter().enumerate() {
            let taken = draft.take(scan, index, change);
            taken.map_err(|why| Refused { change: index, why })?;
        }
        draft.check_markers(scan, changes.len())?;
        draft.remove_emptied(scan);
        draft.give_system_a_message(scan);
        Ok(draft)
    }

    fn take(
        &mut self,
        scan: &Scan<'_>,
        index: usize,
        change: &'c Change,
    ) -> Result<(), &'static str> {
        match change {
            Change::Show {
                message,
                part,
                output,
            } => {
                let found = part_at(scan, (*message, *part))?;
                require(found.kind == PartKind::Output, "the part is no output")?;
                self.shown.insert((*message, *part), (index, output));
            }
            Change::Rename { message, part, id } => {
                let found = part_at(scan, (*message, *part))?;
                require(!found.id.is_empty(), "the part has no id")?;
                self.renamed.insert((*message, *part), id);
            }
            Change::Mark {
                message,
                part,
                marker,
            } => {
                let found = part_at(scan, (*message, *part))?;
                require(
                    may_be_marked(scan, *message, &found),
                    "the part takes no marker",
                )?;
                self.marked.insert((*message, *part), marker);
            }
            Change::Unmark { message, part } => {
                part_at(scan, (*message, *part))?;
                self.unmarked.insert((*message, *part));
            }
            Change::RemovePart { message, part } => {
                part_at(scan, (*message, *part))?;
                self.removed_parts.insert((*message, *part));
            }
            _ => return self.take_whole(scan, change),
        }
        Ok(())
    }

    /// A change that is not about one part.
    fn take_whole(&mut self, scan: &Scan<'_>, change: &'c Change) -> Result<(), &'static str> {
        match change {
            Change::Remove { message } => {
                require(*message < scan.len(), "there is no such message")?;
                self.removed.insert(*message);
            }
            Change::Replace { message, with } => {
                require(*message < scan.len(), "there is no such message")?;
                require(
                    !(scan.has_head() && *message == 0),
                    "the system's field is not written anew",
                )?;
                self.removed.insert(*message);
                self.insert(scan, *message, with);
            }
            Change::Insert { before, message } => {
                require(*before <= scan.len(), "there is no such position")?;
                self.insert(scan, *before, message);
            }
            Change::StripReasoning { before } => self.strip(scan, *before),
            Change::AddTools { place, tools } => self.tools.push((*place, tools)),
            Change::RemoveTools { names } => {
                self.removed_tools.extend(names.iter().map(String::as_str));
            }
            Change::SetLimit { tokens } => self.limit = Some(*tokens),
            Change::StopThinking => self.stops_thinking = true,
            Change::AppendSystem { text } => self.system.push(text.clone()),
            _ => {}
        }
        Ok(())
    }

    fn insert(&mut self, scan: &Scan<'_>, before: usize, message: &Message) {
        let dialect = scan.dialect();
        // What we tell the system goes into its field; what the client told it in the
        // conversation stays there.
        let is_ours = message.meta.kind.is_some();
        if dialect == Dialect::Messages && message.role == Role::System && is_ours {
            self.system.push(message.text().into_owned());
        } else if !message.parts.is_empty() {
            let sent = sendable(message, dialect);
            self.inserted.entry(before).or_default().push(sent);
        }
    }

    fn strip(&mut self, scan: &Scan<'_>, before: usize) {
        for message in 0..before.min(scan.len()) {
            let parts = scan.parts(message).iter().enumerate();
            let thoughts = parts.filter(|(_, part)| is_thought(part));
            self.removed_parts
                .extend(thoughts.map(|(part, _)| (message, part)));
        }
    }

    /// What the system says in a plain text cannot be marked and added to at once.
    fn check_markers(&self, scan: &Scan<'_>, changes: usize) -> Result<(), Refused> {
        let plain = |part: &PartSpan| scan.json(part.span).starts_with('"');
        let speaks = scan.role(0) == Some(Role::System);
        let is_plain = speaks && scan.parts(0).first().is_some_and(plain);
        if is_plain && !self.system.is_empty() && self.marked.contains_key(&(0, 0)) {
            let why = "the system's text is marked and added to at once";
            let change = changes.saturating_sub(1);
            return Err(Refused { change, why });
        }
        Ok(())
    }

    /// A message whose parts are all left out is left out itself.
    fn remove_emptied(&mut self, scan: &Scan<'_>) {
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
        self.removed.extend(emptied);
    }

    /// In Chat Completions the system speaks in a message; one is put first where there is
    /// none to add to.
    fn give_system_a_message(&mut self, scan: &Scan<'_>) {
        if scan.dialect() != Dialect::Chat || self.system.is_empty() {
            return;
        }
        let entry = scan.entries().first().map(|entry| entry.span);
        let content = entry.and_then(|span| value_of(scan.text(), span, "content"));
        let speaks = scan.role(0) == Some(Role::System) && content.is_some();
        if !speaks || self.removed.contains(&0) {
            let text = std::mem::take(&mut self.system).join("\n\n");
            let first = self.inserted.entry(0).or_default();
            first.insert(0, Message::system(text));
        }
    }

    /// True if the part is still there.
    pub(super) fn stays(&self, at: At) -> bool {
        !self.removed.contains(&at.0) && !self.removed_parts.contains(&at)
    }
}

fn part_at(scan: &Scan<'_>, (message, part): At) -> Result<PartSpan, &'static str> {
    let found = scan.parts(message).get(part).copied();
    found.ok_or("there is no such part")
}

fn require(holds: bool, why: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(why) }
}

pub(super) fn is_thought(part: &PartSpan) -> bool {
    matches!(part.kind, PartKind::Reasoning { .. })
}

/// Thoughts and blank texts take no marker; outputs only where they are parts of their own.
fn may_be_marked(scan: &Scan<'_>, message: usize, part: &PartSpan) -> bool {
    let in_head = scan.has_head() && message == 0;
    let is_field = part.span == scan.request().list || in_head;
    if is_field && scan.dialect() == Dialect::Responses {
        return false;
    }
    match part.kind {
        PartKind::Text => scan
            .string(part.content)
            .is_some_and(|text| !text.trim().is_empty()),
        PartKind::Output | PartKind::Call => scan.dialect() == Dialect::Messages,
        PartKind::Media(_) => true,
        PartKind::Reasoning { .. } | PartKind::Opaque => false,
    }
}
