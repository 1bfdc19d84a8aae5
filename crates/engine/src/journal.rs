//! The journal: the executed plans, append-only.
//!
//! A window is its log with these plans applied. Figures about the plans are kept up to date by
//! [`Journal::append`], so that no call reads the journal from its start.

mod changes;

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
    /// The newest undoable plan was undone.
    Undo,
    /// Whether a compaction freed enough, judged by the usage of the next call.
    Judged {
        /// True if the compaction freed enough.
        enough: bool,
        /// The length of the log then.
        at: usize,
    },
}

impl JournalEntry {
    /// The message whose view this entry chose at its admission. Such an entry is stored with its
    /// message and not in the journal.
    pub fn admitted_message(&self) -> Option<usize> {
        match self {
            Self::Plan(plan) if plan.reason == PlanReason::Admission => {
                plan.edits.iter().find_map(Edit::shown_message)
            }
            _ => None,
        }
    }

    /// True if it moves, hides or inserts messages, or undoes that. Decisions from before may then
    /// no longer apply.
    pub fn rearranges(&self) -> bool {
        // None of these moves a message, so the positions in a plan that waits for its summary stay
        // valid.
        let only_shows = |edit: &Edit| {
            matches!(
                edit,
                Edit::Show { .. } | Edit::ShowAsText { .. } | Edit::StripReasoning { .. }
            )
        };
        match self {
            Self::Plan(plan) => !plan.edits.iter().all(only_shows),
            Self::Undo => true,
            Self::Judged { .. } => false,
        }
    }
}

/// The executed plans, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<JournalEntry>")]
pub struct Journal {
    entries: Vec<JournalEntry>,
    /// Indexes of the plans in force: executed and not undone.
    holding: Vec<usize>,
    /// The number of those that can be undone.
    undoable: usize,
    /// Indexes of those that compact.
    compactions: Vec<usize>,
    /// See [`Self::compactions_in_vain`].
    in_vain: (u32, usize),
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

    /// Appends an entry.
    pub fn append(&mut self, entry: JournalEntry) {
        match &entry {
            JournalEntry::Plan(plan) => {
                let at = self.entries.len();
                self.holding.push(at);
                self.undoable += usize::from(plan.can_be_undone());
                if plan.compacts() {
                    self.compactions.push(at);
                }
                // This lets automatic compaction run again after it was stopped.
                if plan.reason == PlanReason::ByHand {
                    self.in_vain = (0, 0);
                }
            }
            JournalEntry::Judged { enough: false, at } => {
                self.in_vain = (self.in_vain.0 + 1, *at);
            }
            JournalEntry::Judged { enough: true, .. } => self.in_vain = (0, 0),
            JournalEntry::Undo => {
                self.in_vain = (0, 0);
                self.take_back();
            }
        }
        self.entries.push(entry);
    }

    /// Takes back the newest undoable plan. Views chosen at admission are never undone.
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
            JournalEntry::Undo | JournalEntry::Judged { .. } => None,
        }
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> &[JournalEntry] {
        &self.entries
    }

    /// The plans in force: executed and not undone.
    pub fn plans(&self) -> impl DoubleEndedIterator<Item = &Plan> {
        self.holding.iter().filter_map(|at| self.plan(*at))
    }

    /// The number of plans in force that can be undone.
    pub fn undoable(&self) -> usize {
        self.undoable
    }

    /// The number of plans in force that compact.
    pub fn compactions(&self) -> usize {
        self.compactions.len()
    }

    /// The newest plan in force that compacts.
    pub fn newest_compaction(&self) -> Option<&Plan> {
        self.newest_compactions().next()
    }

    /// The plans in force that compact, the newest first.
    pub fn newest_compactions(&self) -> impl Iterator<Item = &Plan> {
        let newest_first = self.compactions.iter().rev();
        newest_first.filter_map(|at| self.plan(*at))
    }

    /// The number of compactions in a row that freed too little, and the length of the log at the
    /// last of them. A plan by hand or an undo resets it.
    pub fn compactions_in_vain(&self) -> (u32, usize) {
        self.in_vain
    }

    /// The log with every plan in force applied, not yet normalised.
    pub(crate) fn apply(&self, log: &Log) -> Vec<Slot> {
        EditIndex::of(self.plans()).applied(&Slot::of_log(log.messages()), log)
    }
}
