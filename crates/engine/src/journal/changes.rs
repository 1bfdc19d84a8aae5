//! The edits of plans, carried out on slots.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use trimtab_model::{Message, MessageKind, Part, Role, work};

use crate::log::Log;
use crate::normalise::{MessageSource, Slot};
use crate::plan::{Edit, Plan};

/// The edits of some plans, ordered by what they change.
#[derive(Default)]
pub(crate) struct EditIndex<'p> {
    /// For each message the edits of it, in order.
    of_message: HashMap<usize, Vec<&'p Edit>>,
    /// The runs that are hidden; in order and apart from each other once all plans are taken in.
    hidden: Vec<(usize, usize)>,
    /// What is inserted; by position once all plans are taken in.
    inserted: Vec<(usize, &'p Arc<Message>)>,
    /// What plans before these inserted is taken out up to here.
    withdrawn: Option<usize>,
    /// Reasoning before this position is left out.
    reasoning_from: usize,
}

impl<'p> EditIndex<'p> {
    pub(crate) fn of(plans: impl IntoIterator<Item = &'p Plan>) -> Self {
        let mut changes = Self::default();
        for plan in plans {
            changes.add_plan(plan);
        }
        changes.hidden = merged(std::mem::take(&mut changes.hidden));
        changes.inserted.sort_by_key(|(before, _)| *before);
        changes
    }

    fn add_plan(&mut self, plan: &'p Plan) {
        work::step(1 + plan.edits.len());
        // A plan takes back what others inserted, never what it inserts itself.
        let withdrawn = plan.edits.iter().filter_map(|edit| match edit {
            Edit::Withdraw { to } => Some(*to),
            _ => None,
        });
        // Within these plans the insertion never becomes visible; before them the slots are taken
        // out.
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
                Edit::StripReasoning { before } => {
                    self.reasoning_from = self.reasoning_from.max(*before);
                }
                Edit::Withdraw { .. } => {}
            }
        }
    }

    /// True if it does nothing but show messages otherwise, where they stand.
    pub(crate) fn only_shows(&self) -> bool {
        self.hidden.is_empty()
            && self.inserted.is_empty()
            && self.withdrawn.is_none()
            && self.reasoning_from == 0
    }

    /// The positions of messages that are shown otherwise or archived.
    pub(crate) fn messages(&self) -> impl Iterator<Item = usize> {
        self.of_message.keys().copied()
    }

    /// The first position that something is hidden from.
    pub(crate) fn first_hidden(&self) -> Option<usize> {
        self.hidden.first().map(|(from, _)| *from)
    }

    /// The first position that something is inserted before.
    pub(crate) fn first_inserted(&self) -> Option<usize> {
        self.inserted.first().map(|(before, _)| *before)
    }

    /// True if what an earlier plan inserted before `position` is taken out.
    pub(crate) fn withdraws(&self, position: usize) -> bool {
        self.withdrawn.is_some_and(|to| position <= to)
    }

    /// True if reasoning at `position` is left out.
    pub(crate) fn strips(&self, position: usize) -> bool {
        position < self.reasoning_from
    }

    /// What becomes of `slots`, behind which no slot of the window stands. None if that cannot
    /// be told from the slots alone.
    pub(crate) fn applied(&self, slots: &[Slot], log: &Log) -> Option<Vec<Slot>> {
        let mut applied = Vec::with_capacity(slots.len() + self.inserted.len());
        let mut inserted = self.inserted.iter().peekable();
        let mut hidden = self.hidden.iter().peekable();
        for slot in slots {
            work::step(1);
            let position = slot.source.position();
            let is_said = slot.source == MessageSource::Log(position);
            // What is inserted before a message follows what was inserted there earlier.
            let stands_before =
                |before: usize| before < position || (is_said && before == position);
            while let Some((before, message)) =
                inserted.next_if(|(before, _)| stands_before(*before))
            {
                applied.push(inserted_slot(*before, message));
            }
            if is_said {
                while hidden.next_if(|(_, to)| *to <= position).is_some() {}
                let is_hidden = hidden.peek().is_some_and(|(from, _)| *from <= position);
                // Instructions are never hidden with the rounds around them.
                if !is_hidden || slot.message.role == Role::System {
                    applied.push(Slot {
                        message: self.edited(slot, log)?,
                        source: slot.source,
                    });
                }
            } else if !self.withdraws(position) {
                applied.push(slot.clone());
            }
        }
        applied.extend(inserted.map(|(before, message)| inserted_slot(*before, message)));
        Some(applied)
    }

    /// What becomes of a message of the log. None if the parts that it names cannot be
    /// found any more, because reasoning among them was left out before.
    pub(crate) fn edited(&self, slot: &Slot, log: &Log) -> Option<Arc<Message>> {
        let position = slot.source.position();
        let strips = self.strips(position) && has_reasoning(&slot.message);
        let parts = slot.message.parts.len();
        let is_felt = |edit: &&Edit| match edit {
            Edit::Show { part, .. } | Edit::ShowAsText { part, .. } => *part < parts,
            _ => true,
        };
        let edits = self.of_message.get(&position);
        let edits = edits.filter(|edits| edits.iter().any(is_felt) || is_shorter(slot, log));
        if edits.is_none() && !strips {
            return Some(Arc::clone(&slot.message));
        }
        // Edits name parts by their number in the log, and these numbers have moved.
        if edits.is_some() && is_shorter(slot, log) {
            return None;
        }
        let came = log.get(position)?;
        let edits = edits.map_or(&[][..], Vec::as_slice);
        let mut edited = Message {
            role: slot.message.role,
            meta: slot.message.meta.clone(),
            parts: parts_to_edit(&slot.message.parts, edits),
        };
        for edit in edits {
            carry_out(edit, &mut edited, came);
        }
        if strips {
            let is_thought = |part: &Part| matches!(part, Part::Reasoning(_));
            edited.parts.retain(|part| !is_thought(part));
        }
        Some(Arc::new(edited))
    }
}

/// A copy of `parts`. Outputs that an edit replaces are not copied: they may be long.
fn parts_to_edit(parts: &[Part], edits: &[&Edit]) -> Vec<Part> {
    let shown = edits.iter().filter_map(|edit| match edit {
        Edit::Show { part, .. } => Some(*part),
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

/// True if parts of the message were left out.
fn is_shorter(slot: &Slot, log: &Log) -> bool {
    let came = log.get(slot.source.position());
    came.is_none_or(|came| came.parts.len() != slot.message.parts.len())
}

fn inserted_slot(before: usize, message: &Arc<Message>) -> Slot {
    Slot {
        message: Arc::clone(message),
        source: MessageSource::Inserted(before),
    }
}

/// Carries out an edit of one message, which came as `came`.
fn carry_out(edit: &Edit, message: &mut Message, came: &Message) {
    match edit {
        Edit::Show { part, output, .. } => {
            if let Some(shown) = message.parts.get_mut(*part) {
                *shown = Part::Output(output.clone());
            }
        }
        Edit::ShowAsText { part, text, .. } => match message.parts.get_mut(*part) {
            // Cache markers and the like stay.
            Some(Part::Text(shown)) => text.clone_into(&mut shown.text),
            Some(shown) => *shown = Part::text(text.as_str()),
            None => {}
        },
        Edit::Archive { .. } => {
            message.meta.user_visible = Some(came.user_visible());
            message.meta.agent_visible = Some(false);
            message.meta.kind = Some(MessageKind::ToolResultArchived);
        }
        Edit::Hide { .. }
        | Edit::Withdraw { .. }
        | Edit::Insert { .. }
        | Edit::StripReasoning { .. } => {}
    }
}

pub(crate) fn has_reasoning(message: &Message) -> bool {
    let mut parts = message.parts.iter();
    parts.any(|part| matches!(part, Part::Reasoning(_)))
}

/// The runs in order, those that touch made one.
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
