//! Places the client's system messages inside a conversation of Messages.
//!
//! Providers accept one behind a user message or an output and before the next answer. They reject
//! one at the beginning. A system message stays where the client put it. If a plan changed what is
//! next to it, it waits for the next place at which it is accepted. Messages that come together
//! there are joined, because two in a row are rejected.

use std::collections::HashSet;

use trimtab_model::{Dialect, ExtraFields, Message, Part, Role, work};

use super::emit::Emitter;
use super::{EntryChange, MessageSource, RepairKind, Slot};

/// What the place of a message depends on, of everything before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrecedingMessages {
    /// True once the conversation has a first message that the dialect accepts.
    pub(super) has_beginning: bool,
    /// The number of system messages at the beginning of the window. They are not in the
    /// conversation.
    pub(super) leading: usize,
    /// True after the first other slot: later system messages are not leading.
    pub(super) leading_ended: bool,
    /// The origin of the last slot.
    pub(super) slot: Option<MessageSource>,
    /// The role of the last message that is not a system message.
    pub(super) speaker: Option<Role>,
}

impl PrecedingMessages {
    /// The same, with the leading system messages of `slots` counted.
    pub(super) fn with_leading(mut self, slots: &[Slot]) -> Self {
        for slot in slots {
            let is_system = slot.message.role == Role::System;
            match slot.source {
                _ if self.leading_ended => break,
                // A summary that a plan put among the leading messages does not end them.
                MessageSource::Inserted(_) if is_system => {}
                MessageSource::Log(at) if is_system && at == self.leading => self.leading += 1,
                _ => self.leading_ended = true,
            }
        }
        self
    }
}

impl<'a> Emitter<'a> {
    /// True for a system message of the client that is not accepted between its neighbours.
    pub(super) fn must_wait(&self, at: usize, slot: &Slot) -> bool {
        let MessageSource::Log(position) = slot.source else {
            return false;
        };
        let in_conversation = self.options.dialect == Dialect::Messages
            && slot.message.role == Role::System
            && position >= self.preceding.leading;
        if !in_conversation {
            return false;
        }
        let before = match at.checked_sub(1) {
            Some(before) => self.slots.get(before).map(|slot| slot.source),
            None => self.preceding.slot,
        };
        let after = self.slots.get(at + 1).map(|slot| slot.source);
        let followed_as_it_came = match after {
            Some(after) => after == MessageSource::Log(position + 1),
            None => self.reaches_end,
        };
        // A message stays where the client put it, as long as its neighbours are still the same.
        let preceded_as_it_came = before.is_some_and(|before| before.position() + 1 == position)
            && matches!(before, Some(MessageSource::Log(_)));
        let is_accepted =
            followed_as_it_came && (preceded_as_it_came || self.user_side_spoke_last());
        // Messages that wait must keep their order, so one that follows them waits, too.
        !self.preceding.has_beginning || !self.waiting.is_empty() || !is_accepted
    }

    /// True if the last message was of the user or a tool.
    pub(super) fn user_side_spoke_last(&self) -> bool {
        matches!(self.preceding.speaker, Some(Role::User | Role::Tool))
    }

    /// True for an answer behind which the waiting system messages are written.
    pub(super) fn stands_before_waiting(&self, message: &Message) -> bool {
        let is_answer = message.role == Role::Assistant;
        is_answer && !self.waiting.is_empty() && !self.user_side_spoke_last()
    }

    /// Writes the waiting system messages; those with content become one message.
    pub(super) fn place_waiting(&mut self) {
        let slots = self.slots;
        let waiting = std::mem::take(&mut self.waiting);
        let waiting = waiting.iter().filter_map(|at| Some((*at, slots.get(*at)?)));
        // A message without content is accepted at any place.
        let (spoken, others): (Vec<_>, Vec<_>) =
            waiting.partition(|(_, slot)| is_plainly_spoken(&slot.message));
        for (_, slot) in spoken.iter().chain(&others) {
            self.repair(slot.source, RepairKind::SystemMoved);
        }
        match spoken.as_slice() {
            [(_, first), more @ ..] if !more.is_empty() => {
                let joined = self.join(first, more);
                self.push(first.source, joined, EntryChange::Changed);
            }
            _ => spoken
                .iter()
                .for_each(|(at, slot)| self.write_plain(*at, slot)),
        }
        for (at, slot) in others {
            self.write_plain(at, slot);
        }
    }

    /// Joins messages into one. If a field occurs more than once, the last one counts.
    fn join(&mut self, first: &Slot, more: &[(usize, &'a Slot)]) -> Message {
        let mut joined = Message::clone(&first.message);
        let stripped = joined.parts.extract_if(.., |part| part.is_blank()).count();
        for _ in 0..stripped {
            self.repair(first.source, RepairKind::PartStripped);
        }
        let mut fields = std::mem::take(&mut joined.meta.extra);
        for (_, slot) in more {
            self.repair(slot.source, RepairKind::SystemJoined);
            let parts = slot.message.parts.iter().filter(|part| !part.is_blank());
            joined.parts.extend(parts.cloned());
            fields.extend(slot.message.meta.extra.iter().cloned());
        }
        joined.meta.extra = last_of_each_name(fields);
        // Several texts can only be written as a list.
        joined.meta.content_list = true;
        joined
    }
}

/// The last field of each name, in order. Clients choose the number of fields, so this is linear.
fn last_of_each_name(fields: ExtraFields) -> ExtraFields {
    work::step(fields.len());
    let mut names = HashSet::new();
    let newest_first = fields.into_iter().rev();
    let mut last: ExtraFields = newest_first
        .filter(|(name, _)| names.insert(name.clone()))
        .collect();
    last.reverse();
    last
}

/// True for a message with content that has only parts which may stand in it.
fn is_plainly_spoken(message: &Message) -> bool {
    let is_odd = |part: &Part| matches!(part, Part::Call(_) | Part::Output(_) | Part::Reasoning(_));
    !message.is_empty() && !message.parts.iter().any(is_odd)
}
