//! Decides which units of a file stay or go, and the positions of new ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use trimtab_model::{DisjointSets, Message, Output, Part};

use super::form_writer::{FormWriter, NewMessage};
use crate::splice::SentMessage;
use crate::transcript::thread::ReadConversation;

/// The fate of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UnitFate {
    /// It stays unchanged.
    Kept,
    /// It stays, with other contents of outputs.
    Shown(String),
    /// It goes: nothing of it is sent any more.
    Removed,
    /// It goes, because its content is rewritten.
    Rewritten,
}

/// The layout of a file.
#[derive(Debug, Default)]
pub(super) struct TranscriptLayout {
    /// The fate of each unit with a message of a changed conversation.
    fates: BTreeMap<usize, UnitFate>,
    /// New units, by the unit before which they are inserted; the last may be the end.
    pub(super) new: BTreeMap<usize, Vec<String>>,
    /// The units of unchanged conversations.
    others: BTreeSet<usize>,
}

/// The position after all units.
pub(super) const END: usize = usize::MAX;

impl TranscriptLayout {
    /// The fate of a unit. A unit without messages goes if its neighbours do.
    pub(super) fn fate(&self, unit: usize) -> UnitFate {
        if let Some(fate) = self.fates.get(&unit) {
            return fate.clone();
        }
        if self.others.contains(&unit) {
            return UnitFate::Kept;
        }
        let before = self.fates.range(..unit).next_back();
        let after = self.fates.range(unit..).next();
        let is_gone =
            |found: Option<(&usize, &UnitFate)>| matches!(found, Some((_, UnitFate::Removed)));
        let behind_all = after.is_none();
        // Snapshots and notes between removed messages would refer to something that is gone.
        if is_gone(before) && (is_gone(after) || behind_all) {
            UnitFate::Removed
        } else {
            UnitFate::Kept
        }
    }
}

/// Lays out the new windows of the conversations over the units of their file.
pub(super) fn lay_out<'a>(
    reads: &'a [ReadConversation],
    windows: &'a [Vec<SentMessage>],
    unit: &impl Fn(usize) -> &'a str,
    pen: &mut dyn FormWriter,
) -> TranscriptLayout {
    let mut laid = TranscriptLayout::default();
    for (at, read) in reads.iter().enumerate() {
        // Without a new window the conversation stays, also if others in the same file change.
        let Some(sent) = windows.get(at) else {
            let units = read.origins.iter().map(|origin| origin.unit);
            laid.others.extend(units);
            continue;
        };
        let plan = LayoutPlan::new(read, sent);
        let fates = plan.fates(unit, pen);
        for (before, texts) in plan.written(&fates, unit, pen) {
            laid.new.entry(before).or_default().extend(texts);
        }
        laid.fates.extend(fates);
        // If the line that takes messages back stayed, the client would apply it to others.
        for unit in &read.taken_back {
            laid.fates.entry(*unit).or_insert(UnitFate::Removed);
        }
    }
    laid
}

struct LayoutPlan<'a> {
    messages: &'a [Message],
    sent: &'a [SentMessage],
    /// The units of each message, in order.
    units: Vec<Vec<usize>>,
    /// For each message, its position in the new window, if it keeps its place.
    stays: Vec<Option<usize>>,
    /// For each message, whether it is sent.
    is_sent: Vec<bool>,
    /// For each message, the first one with which it shares a unit.
    group: Vec<usize>,
    /// Groups that must be rewritten because something new is inside them.
    broken: HashSet<usize>,
}

impl<'a> LayoutPlan<'a> {
    fn new(read: &'a ReadConversation, sent: &'a [SentMessage]) -> Self {
        let messages = read.conversation.messages.as_slice();
        let mut units = vec![Vec::new(); messages.len()];
        for origin in &read.origins {
            if let Some(units) = units.get_mut(origin.message) {
                units.push(origin.unit);
            }
        }
        for units in &mut units {
            units.sort_unstable();
            units.dedup();
        }
        let mut plan = Self {
            messages,
            sent,
            stays: stays(messages.len(), sent),
            is_sent: is_sent(messages.len(), sent),
            group: groups(&units),
            broken: HashSet::new(),
            units,
        };
        plan.broken = plan.broken();
        plan
    }

    /// The groups in which something is inserted between two messages of one unit.
    fn broken(&self) -> HashSet<usize> {
        let pairs = self.units.windows(2).enumerate();
        let inside = pairs.filter_map(|(message, pair)| {
            let [one, two] = pair else { return None };
            let (place, next) = self.place(message).zip(self.place(message + 1))?;
            // Both messages come from one unit, but something is between them now.
            let is_broken = one.first() == two.first() && next != place + 1;
            self.group.get(message).copied().filter(|_| is_broken)
        });
        inside.collect()
    }

    fn place(&self, message: usize) -> Option<usize> {
        self.stays.get(message).copied().flatten()
    }

    fn fates(
        &self,
        unit: &impl Fn(usize) -> &'a str,
        pen: &dyn FormWriter,
    ) -> BTreeMap<usize, UnitFate> {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (message, group) in self.group.iter().enumerate() {
            members.entry(*group).or_default().push(message);
        }
        let mut fates = BTreeMap::new();
        for (group, members) in members {
            let units = members.iter().filter_map(|at| self.units.get(*at));
            let mut units: Vec<usize> = units.flatten().copied().collect();
            units.sort_unstable();
            units.dedup();
            // Messages of one unit stay, change or go together, so the fate is decided per group.
            let shown = self.shown(group, &members);
            fates.extend(match shown {
                ShownMessage::Removed => all(&units, &UnitFate::Removed),
                ShownMessage::Same => all(&units, &UnitFate::Kept),
                ShownMessage::Rewritten => all(&units, &UnitFate::Rewritten),
                ShownMessage::Outputs(outputs) => {
                    let show = |number: usize| Some((number, pen.show(unit(number), &outputs)?));
                    // If one unit cannot be patched, all units of the group are rewritten.
                    let shown: Option<Vec<_>> = units.iter().map(|at| show(*at)).collect();
                    let fates = |shown: Vec<(usize, String)>| {
                        let fate = |(at, text)| (at, UnitFate::Shown(text));
                        shown.into_iter().map(fate).collect()
                    };
                    shown.map_or_else(|| all(&units, &UnitFate::Rewritten), fates)
                }
            });
        }
        fates
    }

    /// The new form of the messages of a group.
    fn shown(&self, group: usize, members: &[usize]) -> ShownMessage<'a> {
        let places: Vec<_> = members.iter().map(|at| self.place(*at)).collect();
        let is_sent = |at: &usize| self.is_sent.get(*at) == Some(&true);
        if !members.iter().any(is_sent) {
            return ShownMessage::Removed;
        }
        if self.broken.contains(&group) {
            return ShownMessage::Rewritten;
        }
        let mut outputs = Vec::new();
        for (at, place) in members.iter().zip(places) {
            let now = place.and_then(|place| self.sent.get(place));
            let (Some(was), Some(now)) = (self.messages.get(*at), now) else {
                return ShownMessage::Rewritten;
            };
            match changed_outputs(was, &now.message) {
                Some(changed) => outputs.extend(changed),
                None => return ShownMessage::Rewritten,
            }
        }
        if outputs.is_empty() {
            ShownMessage::Same
        } else {
            ShownMessage::Outputs(outputs)
        }
    }

    /// The messages to write, by the unit before which they are inserted.
    fn written(
        &self,
        fates: &BTreeMap<usize, UnitFate>,
        unit: &impl Fn(usize) -> &'a str,
        pen: &mut dyn FormWriter,
    ) -> BTreeMap<usize, Vec<String>> {
        let mut runs: BTreeMap<usize, Vec<NewMessage<'a>>> = BTreeMap::new();
        // The window is walked from its end, so that the unit before which a new message goes is
        // known.
        let mut before = END;
        let mut last = fates.last_key_value().map(|(at, _)| *at);
        for (number, entry) in self.sent.iter().enumerate().rev() {
            let stays = entry
                .log_position
                .filter(|from| self.place(*from) == Some(number));
            let units = entry.log_position.and_then(|from| self.units.get(from));
            let first = units.and_then(|units| units.first()).copied();
            if let (Some(_), Some(first)) = (stays, first) {
                before = first;
                last = Some(first);
                if !matches!(fates.get(&first), Some(UnitFate::Rewritten)) {
                    continue;
                }
            }
            let units = units.into_iter().flatten();
            let new = NewMessage {
                message: &entry.message,
                units: units.map(|at| unit(*at)).collect(),
                near: last.map(unit),
                number,
                behind: self.sent.len().saturating_sub(number + 1),
            };
            runs.entry(before).or_default().push(new);
        }
        let mut write = |run: Vec<NewMessage<'_>>| {
            // Runs were collected in reverse.
            let run = run.iter().rev();
            run.flat_map(|new| pen.write(new)).collect()
        };
        runs.into_iter().map(|(at, run)| (at, write(run))).collect()
    }
}

enum ShownMessage<'a> {
    Removed,
    Same,
    Outputs(Vec<&'a Output>),
    Rewritten,
}

fn all(units: &[usize], fate: &UnitFate) -> Vec<(usize, UnitFate)> {
    units.iter().map(|unit| (*unit, fate.clone())).collect()
}

/// For each of `count` messages, its position in the new window, if it keeps its place.
fn stays(count: usize, sent: &[SentMessage]) -> Vec<Option<usize>> {
    let mut stays = vec![None; count];
    // From the end, like the splicer: a message keeps its place if it comes before all that keep
    // theirs.
    let mut before = count;
    for (place, entry) in sent.iter().enumerate().rev() {
        let Some(from) = entry.log_position.filter(|from| *from < before) else {
            continue;
        };
        before = from;
        if let Some(stays) = stays.get_mut(from) {
            *stays = Some(place);
        }
    }
    stays
}

/// For each of `count` messages, whether it is sent.
fn is_sent(count: usize, sent: &[SentMessage]) -> Vec<bool> {
    let mut is_sent = vec![false; count];
    for from in sent.iter().filter_map(|entry| entry.log_position) {
        if let Some(is_sent) = is_sent.get_mut(from) {
            *is_sent = true;
        }
    }
    is_sent
}

/// For each message, the first one with which it shares a unit, directly or through others.
fn groups(units: &[Vec<usize>]) -> Vec<usize> {
    let mut sets = DisjointSets::new(units.len());
    let mut of_unit: HashMap<usize, usize> = HashMap::new();
    for (message, units) in units.iter().enumerate() {
        for unit in units {
            sets.join(*of_unit.entry(*unit).or_insert(message), message);
        }
    }
    let messages = 0..units.len();
    messages.map(|message| sets.first_of(message)).collect()
}

/// The outputs with another view; none if more than that changed.
fn changed_outputs<'a>(was: &Message, now: &'a Message) -> Option<Vec<&'a Output>> {
    if was.role != now.role || was.parts.len() != now.parts.len() {
        return None;
    }
    let mut changed = Vec::new();
    for pair in was.parts.iter().zip(&now.parts) {
        match pair {
            (Part::Output(was), Part::Output(now)) => {
                if was.call_id != now.call_id || was.is_error != now.is_error {
                    return None;
                }
                if was.content != now.content {
                    changed.push(now);
                }
            }
            (was, now) if was != now => return None,
            _ => {}
        }
    }
    Some(changed)
}
