//! Where the client's system messages stand in a conversation of Messages.
//!
//! Providers take one behind what the user said or a tool gave back, and before the next
//! answer. They refuse one that comes first. Where the client put it, it stays. Where a plan
//! changed what stands next to it, it waits for the next place at which it is accepted, and
//! those that come together there become one, because two in a row are refused.

use trimtab_model::{Dialect, Message, Part, Role};

use super::emit::Emitter;
use super::{EntryChange, MessageSource, RepairKind, Slot};

/// What the place of a system message depends on, of everything before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrecedingMessages {
    /// How many system messages the window begins with. They are not in the conversation.
    pub(super) leading: usize,
    /// True once another slot came, so that no later system message counts as leading.
    pub(super) leading_ended: bool,
    /// Where the last slot comes from.
    pub(super) slot: Option<MessageSource>,
    /// Who spoke last, the system aside.
    pub(super) speaker: Option<Role>,
}

impl PrecedingMessages {
    /// The same with the system messages counted that the window goes on with in `slots`.
    pub(super) fn with_leading(mut self, slots: &[Slot]) -> Self {
        for slot in slots {
            let is_system = slot.message.role == Role::System;
            match slot.source {
                _ if self.leading_ended => break,
                MessageSource::Inserted(_) if is_system => {}
                MessageSource::Log(at) if is_system && at == self.leading => self.leading += 1,
                _ => self.leading_ended = true,
            }
        }
        self
    }
}

impl<'a> Emitter<'a> {
    /// True for a system message of the client that cannot stand between its neighbours.
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
        let preceded_as_it_came = before.is_some_and(|before| before.position() + 1 == position)
            && matches!(before, Some(MessageSource::Log(_)));
        let is_accepted =
            followed_as_it_came && (preceded_as_it_came || self.user_side_spoke_last());
        !self.has_begun() || !self.waiting.is_empty() || !is_accepted
    }

    /// True if the user or a tool spoke last.
    pub(super) fn user_side_spoke_last(&self) -> bool {
        matches!(self.preceding.speaker, Some(Role::User | Role::Tool))
    }

    /// True for an answer behind which the system messages that wait are written.
    pub(super) fn stands_before_waiting(&self, message: &Message) -> bool {
        let is_answer = message.role == Role::Assistant;
        is_answer && self.has_waiting() && !self.user_side_spoke_last()
    }

    /// Writes the system messages that waited: those with content as one message.
    pub(super) fn place_waiting(&mut self) {
        let slots = self.slots;
        let waiting = std::mem::take(&mut self.waiting);
        let waiting = waiting.iter().filter_map(|at| Some((*at, slots.get(*at)?)));
        // A directive without content is accepted at any place.
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
            _ => spoken.iter().for_each(|(at, slot)| self.plain(*at, slot)),
        }
        for (at, slot) in others {
            self.plain(at, slot);
        }
    }

    /// One message that says what all of them say. Of fields with one name the last one holds.
    fn join(&mut self, first: &Slot, more: &[(usize, &'a Slot)]) -> Message {
        let mut joined = Message::clone(&first.message);
        let stripped = joined.parts.extract_if(.., |part| part.is_blank()).count();
        for _ in 0..stripped {
            self.repair(first.source, RepairKind::PartStripped);
        }
        for (_, slot) in more {
            self.repair(slot.source, RepairKind::SystemJoined);
            let parts = slot.message.parts.iter().filter(|part| !part.is_blank());
            joined.parts.extend(parts.cloned());
            for (name, value) in &slot.message.meta.extra {
                joined.meta.extra.retain(|(known, _)| known != name);
                joined.meta.extra.push((name.clone(), value.clone()));
            }
        }
        joined.meta.content_list = true;
        joined
    }
}

/// True for a message that says something, and nothing that has no place in it.
fn is_plainly_spoken(message: &Message) -> bool {
    let is_odd = |part: &Part| matches!(part, Part::Call(_) | Part::Output(_) | Part::Reasoning(_));
    !message.is_empty() && !message.parts.iter().any(is_odd)
}
