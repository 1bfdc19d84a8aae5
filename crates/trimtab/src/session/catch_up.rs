//! Reads what other processes have added to a session.

use trimtab_engine::journal::JournalEntry;
use trimtab_engine::plan::{Plan, PlanReason};

use super::admit::edits;
use super::stored::{fill_in, read_from};
use super::{CallState, Session, SessionError};

impl Session {
    /// Adds what other processes have appended to the log and the journal. Then the session decides
    /// as if it had been opened again, but what it has already is not read again.
    ///
    /// Returns the position of the first message that was added. After an error the session must be
    /// opened again.
    pub fn catch_up(&mut self) -> Result<usize, SessionError> {
        let first = self.projection.log().len();
        let (mut entries, plans) = read_from(&*self.store, &self.id, self.positions())?;
        fill_in(&*self.store, &self.id, &mut entries)?;
        self.log_position += entries.len() as u64;
        for entry in entries {
            let at = self.projection.log().len();
            let edits = edits(at, &entry.message, entry.shown, entry.archived);
            self.projection.admit(entry.message);
            self.add_entry(JournalEntry::Plan(Plan::new(PlanReason::Admission, edits)));
        }
        for plan in plans {
            self.add_stored_entry(plan);
        }
        self.forget_calls();
        Ok(first)
    }

    /// Forgets what is known about our own calls: others have made calls since.
    pub(super) fn forget_calls(&mut self) {
        self.sent = self.projection.log().len();
        self.sent_before = self.sent;
        self.calls = CallState::default();
    }

    /// Adds the next entry of the stored journal.
    pub(super) fn add_stored_entry(&mut self, entry: JournalEntry) {
        self.journal_position += 1;
        if entry.rearranges() {
            self.rearranged = self.journal_position;
        }
        self.add_entry(entry);
    }

    pub(super) fn add_entry(&mut self, entry: JournalEntry) {
        if let JournalEntry::Plan(plan) = &entry {
            self.front_changed |= plan.reason == PlanReason::FrontChanged;
            self.first_ref = self.first_ref.filter(|_| !plan.shows_a_ref());
        }
        self.projection.follow(entry);
    }
}
