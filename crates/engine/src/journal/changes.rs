//! Applies the edits of plans to slots.
//!
//! [`Journal::apply`](super::Journal) uses it for all plans at once, and `window::change` for one
//! more plan. The edits are indexed first, so that a slot costs only its own edits.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use trimtab_model::{Message, MessageKind, Part, Role, work};

use crate::log::Log;
use crate::normalise::{MessageSource, Slot};
use crate::plan::{Edit, Plan};

/// The edits of some plans, indexed by what they change.
#[derive(Default)]
pub(crate) struct EditIndex<'p> {
    /// For each message its edits, in order.
    of_message: HashMap<usize, Vec<&'p Edit>>,
    /// Hidden runs; sorted and disjoint once all plans are added.
    pub(crate) hidden: Vec<(usize, usize)>,
    /// Insertions; sorted by position once all plans are added.
    pub(crate) inserted: Vec<(usize, &'p Arc<Message>)>,
    /// Insertions of earlier plans up to this position are removed.
    withdrawn: Option<usize>,
    /// Runs whose reasoning is removed; sorted and disjoint once all plans are added.
    pub(crate) stripped: Vec<(usize, usize)>,
}

impl<'p> EditIndex<'p> {
    pub(crate) fn of(plans: impl IntoIterator<Item = &'p Plan>) -> Self {
        let mut changes = Self::default();
        for plan in plans {
            changes.add_plan(plan);
        }
        changes.hidden = merged(std::mem::take(&mut changes.hidden));
        changes.stripped = merged(std::mem::take(&mut changes.stripped));
        changes.inserted.sort_by_key(|(before, _)| *before);
        changes
    }

    fn add_plan(&mut self, plan: &'p Plan) {
        work::step(1 + plan.edits.len());
        // A plan withdraws what other plans inserted, never its own insertions. So collect its
        // withdrawals first, whatever their place among its edits.
        let withdrawn = plan.edits.iter().filter_map(|edit| match edit {
            Edit::Withdraw { to } => Some(*to),
            _ => None,
        });
        // Insertions among these plans are dropped here. Those of plans before them are slots
        // already, which `applied` skips.
        if let Some(to) = withdrawn.max() {
            self.inserted.retain(|(before, _)| *before > to);
            self.withdrawn = self.withdrawn.max(Some(to));
        }
        for edit in &plan.edits {
            match edit {
                Edit::Show { message, .. }
                | Edit::ShowAsText { message, .. }
                | Edit::Archive { message } => {
                    self.of_message.entry(*message).or_default().push(edit);
                }
                Edit::Hide { from, to } => self.hidden.push((*from, *to)),
                Edit::Insert { before, message } => self.inserted.push((*before, message)),
                Edit::StripReasoning { from, before } if from < before => {
                    self.stripped.push((*from, *before));
                }
                Edit::StripReasoning { .. } | Edit::Withdraw { .. } => {}
            }
        }
    }

    /// True if it only shows messages differently, in place.
    pub(crate) fn only_shows(&self) -> bool {
        self.hidden.is_empty()
            && self.inserted.is_empty()
            && self.withdrawn.is_none()
            && self.stripped.is_empty()
    }

    /// The positions of messages that are shown differently or archived.
    pub(crate) fn messages(&self) -> impl Iterator<Item = usize> {
        self.of_message.keys().copied()
    }

    /// True if what an earlier plan inserted before `position` is removed.
    pub(crate) fn withdraws(&self, position: usize) -> bool {
        self.withdrawn.is_some_and(|to| position <= to)
    }

    /// True if reasoning at `position` is removed.
    fn strips(&self, position: usize) -> bool {
        let behind = self.stripped.partition_point(|(_, to)| *to <= position);
        let run = self.stripped.get(behind);
        run.is_some_and(|(from, _)| *from <= position)
    }

    /// Applies the edits to `slots`, which must reach to the end of the window.
    pub(crate) fn applied(&self, slots: &[Slot], log: &Log) -> Vec<Slot> {
        let mut applied = Vec::with_capacity(slots.len() + self.inserted.len());
        let mut inserted = self.inserted.iter().peekable();
        let mut hidden = self.hidden.iter().peekable();
        for slot in slots {
            work::step(1);
            let position = slot.source.position();
            let is_from_log = slot.source == MessageSource::Log(position);
            // What is inserted before a message follows what was inserted there earlier.
            let stands_before =
                |before: usize| before < position || (is_from_log && before == position);
            while let Some((before, message)) =
                inserted.next_if(|(before, _)| stands_before(*before))
            {
                applied.push(inserted_slot(*before, message));
            }
            if is_from_log {
                // Runs and slots are in the same order, so each run is examined once.
                while hidden.next_if(|(_, to)| *to <= position).is_some() {}
                let is_hidden = hidden.peek().is_some_and(|(from, _)| *from <= position);
                // Instructions are never hidden with the rounds around them.
                if !is_hidden || slot.message.role == Role::System {
                    applied.push(Slot {
                        message: self.edited(slot, log),
                        source: slot.source,
                    });
                }
            } else if !self.withdraws(position) {
                applied.push(slot.clone());
            }
        }
        // Insertions at the end of the log have no slot behind them.
        applied.extend(inserted.map(|(before, message)| inserted_slot(*before, message)));
        applied
    }

    /// Applies the edits to one message of the log. If nothing changes, the same `Arc` is returned:
    /// callers compare pointers to see that the message need not be measured.
    pub(crate) fn edited(&self, slot: &Slot, log: &Log) -> Arc<Message> {
        let position = slot.source.position();
        let edits = self
            .of_message
            .get(&position)
            .map_or(&[][..], Vec::as_slice);
        let strips = self.strips(position) && has_reasoning(&slot.message);
        let Some(came) = log.get(position).filter(|_| strips || !edits.is_empty()) else {
            return Arc::clone(&slot.message);
        };
        let places = places_of(&slot.message, came);
        // An edit of a part that the message never had does nothing.
        let changes = edits.iter().filter_map(|edit| match edit {
            Edit::Show { part, .. } | Edit::ShowAsText { part, .. } => {
                Some((*edit, places.get(*part).copied().flatten()?))
            }
            edit => Some((*edit, 0)),
        });
        let changes: Vec<(&Edit, usize)> = changes.collect();
        if changes.is_empty() && !strips {
            return Arc::clone(&slot.message);
        }
        let mut edited = Message {
            role: slot.message.role,
            meta: slot.message.meta.clone(),
            parts: parts_to_edit(&slot.message.parts, &changes),
        };
        for (edit, part) in changes {
            carry_out(edit, part, &mut edited, came);
        }
        if strips {
            edited.parts.retain(|part| !is_reasoning(part));
        }
        Arc::new(edited)
    }
}

/// For each part of a message as it came, its place in `shown`. Earlier plans may have removed the
/// reasoning, which no edit shows in another way.
fn places_of(shown: &Message, came: &Message) -> Vec<Option<usize>> {
    let is_stripped = shown.parts.len() != came.parts.len();
    let mut next = 0;
    let place = |part: &Part| {
        let (at, is_reasoning) = (next, is_reasoning(part));
        next += usize::from(!(is_reasoning && is_stripped));
        (!is_reasoning).then_some(at)
    };
    came.parts.iter().map(place).collect()
}

/// A copy of `parts`. Outputs that an edit replaces are not copied, because they may be megabytes.
fn parts_to_edit(parts: &[Part], edits: &[(&Edit, usize)]) -> Vec<Part> {
    let shown = edits.iter().filter_map(|(edit, part)| match edit {
        Edit::Show { .. } => Some(*part),
        _ => None,
    });
    let shown: HashSet<usize> = shown.collect();
    let parts = parts.iter().enumerate();
    parts
        .map(|(at, part)| {
            if shown.contains(&at) {
                Part::text("")
            } else {
                part.clone()
            }
        })
        .collect()
}

fn inserted_slot(before: usize, message: &Arc<Message>) -> Slot {
    Slot {
        message: Arc::clone(message),
        source: MessageSource::Inserted(before),
    }
}

/// Executes an edit of one message, which the client sent as `came`.
fn carry_out(edit: &Edit, part: usize, message: &mut Message, came: &Message) {
    match edit {
        Edit::Show { output, .. } => {
            if let Some(shown) = message.parts.get_mut(part) {
                *shown = Part::Output(output.clone());
            }
        }
        Edit::ShowAsText { text, .. } => match message.parts.get_mut(part) {
            // Keep cache markers and other fields of the text part.
            Some(Part::Text(shown)) => text.clone_into(&mut shown.text),
            Some(shown) => *shown = Part::text(text.as_str()),
            None => {}
        },
        Edit::Archive { .. } => {
            message.meta.user_visible = Some(came.user_visible());
            message.meta.agent_visible = Some(false);
            message.meta.kind = Some(MessageKind::ToolResultArchived);
        }
        _ => {}
    }
}

fn is_reasoning(part: &Part) -> bool {
    matches!(part, Part::Reasoning(_))
}

pub(crate) fn has_reasoning(message: &Message) -> bool {
    message.parts.iter().any(is_reasoning)
}

/// Sorts the runs and joins those that touch or overlap.
fn merged(mut runs: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    runs.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (from, to) in runs {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}
