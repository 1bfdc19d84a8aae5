//! The journal: the plans that were carried out, append-only.

mod changes;
mod pins;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize, Serializer};

use crate::log::Log;
use crate::normalise::Slot;
use crate::plan::{Edit, Plan, PlanReason};
pub(crate) use changes::{EditIndex, has_reasoning};

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum JournalEntry {
    /// A plan was carried out.
    Plan(Plan),
    /// The newest plan that still held was taken back.
    Undo,
    /// What a compaction brought, by the usage of the next call.
    Judged {
        /// True if the compaction freed enough.
        enough: bool,
        /// How long the log was then.
        at: usize,
    },
    /// Somebody wants a message to stay in the window, or no longer does.
    Pin {
        /// Its position in the log.
        message: usize,
        /// False to let go of it.
        pinned: bool,
    },
}

impl JournalEntry {
    /// True if it moves, hides or puts in messages, or takes that back: what was decided before
    /// may not fit any more then.
    pub fn rearranges(&self) -> bool {
        let only_shows = |edit: &Edit| {
            matches!(
                edit,
                Edit::Show { .. } | Edit::ShowAsText { .. } | Edit::StripReasoning { .. }
            )
        };
        match self {
            Self::Plan(plan) => !plan.edits.iter().all(only_shows),
            Self::Undo => true,
            Self::Judged { .. } | Self::Pin { .. } => false,
        }
    }
}

/// The plans that were carried out, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<JournalEntry>")]
pub struct Journal {
    entries: Vec<JournalEntry>,
    /// The entries that are plans which hold: carried out and not taken back.
    holding: Vec<usize>,
    /// How many of those could be taken back.
    undoable: usize,
    /// The plans among them that compact.
    compactions: Vec<usize>,
    /// What [`Self::compactions_in_vain`] gives.
    in_vain: (u32, usize),
    /// What [`Self::reasoning_stripped_before`] gives.
    reasoning_stripped_before: usize,
    /// What [`Self::pins`] gives.
    pins: BTreeSet<usize>,
}

impl From<Vec<JournalEntry>> for Journal {
    fn from(entries: Vec<JournalEntry>) -> Self {
        let mut journal = Self::default();
        for entry in entries {
            journal.append(entry);
        }
        journal
    }
}

impl Serialize for Journal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.entries.serialize(serializer)
    }
}

impl Journal {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line.
    pub fn append(&mut self, entry: JournalEntry) {
        match &entry {
            JournalEntry::Plan(plan) => {
                let at = self.entries.len();
                self.holding.push(at);
                self.undoable += usize::from(plan.can_be_undone());
                if plan.compacts() {
                    self.compactions.push(at);
                }
                if plan.reason == PlanReason::ByHand {
                    self.in_vain = (0, 0);
                }
                let stripped = plan.edits.iter().filter_map(|edit| match edit {
                    Edit::StripReasoning { before } => Some(*before),
                    _ => None,
                });
                let before = self.reasoning_stripped_before;
                self.reasoning_stripped_before = stripped.fold(before, usize::max);
            }
            JournalEntry::Judged { enough: false, at } => {
                self.in_vain = (self.in_vain.0 + 1, *at);
            }
            JournalEntry::Judged { enough: true, .. } => self.in_vain = (0, 0),
            JournalEntry::Pin { message, pinned } => {
                if *pinned {
                    self.pins.insert(*message);
                } else {
                    self.pins.remove(message);
                }
            }
            JournalEntry::Undo => {
                self.in_vain = (0, 0);
                self.take_back();
            }
        }
        self.entries.push(entry);
    }

    /// Takes back the newest plan that can be. What was decided when an output came in is never
    /// taken back.
    fn take_back(&mut self) {
        let can_be_undone = |at: &usize| self.plan(*at).is_some_and(Plan::can_be_undone);
        let Some(newest) = self.holding.iter().rposition(can_be_undone) else {
            return;
        };
        let taken_back = self.holding.remove(newest);
        self.undoable -= 1;
        self.compactions.retain(|at| *at != taken_back);
    }

    fn plan(&self, at: usize) -> Option<&Plan> {
        match self.entries.get(at)? {
            JournalEntry::Plan(plan) => Some(plan),
            JournalEntry::Undo | JournalEntry::Judged { .. } | JournalEntry::Pin { .. } => None,
        }
    }

    /// Every line, oldest first.
    pub fn entries(&self) -> &[JournalEntry] {
        &self.entries
    }

    /// The plans that hold: carried out and not taken back.
    pub fn plans(&self) -> impl DoubleEndedIterator<Item = &Plan> {
        self.holding.iter().filter_map(|at| self.plan(*at))
    }

    /// How many plans hold that could be taken back.
    pub fn undoable(&self) -> usize {
        self.undoable
    }

    /// How many plans hold that compact.
    pub fn compactions(&self) -> usize {
        self.compactions.len()
    }

    /// The newest plan that holds and compacts.
    pub fn newest_compaction(&self) -> Option<&Plan> {
        self.plan(*self.compactions.last()?)
    }

    /// How many compactions in a row did not bring enough, and how long the log was at the last
    /// of them. What somebody did by hand or took back begins a new count.
    pub fn compactions_in_vain(&self) -> (u32, usize) {
        self.in_vain
    }

    /// The position before which plans took reasoning out; 0 if none did. Plans that were taken
    /// back count too: the rounds that followed them came without reasoning.
    pub fn reasoning_stripped_before(&self) -> usize {
        self.reasoning_stripped_before
    }

    /// The positions of messages that somebody wants to stay in the window.
    pub fn pins(&self) -> &BTreeSet<usize> {
        &self.pins
    }

    /// The log with every plan that holds applied, not yet normalised.
    pub(crate) fn apply(&self, log: &Log) -> Vec<Slot> {
        let came = Slot::of_log(log.messages());
        // Parts are always found in messages that are as they came.
        EditIndex::of(self.plans())
            .applied(&came, log)
            .unwrap_or(came)
    }
}
