//! Sessions that begin like another one, for a conversation that forks.
//!
//! The fork shares its messages with the other session in memory, and the store copies the stored
//! entries. It includes the plans that applied to the shared messages, so the bytes that were sent
//! stay the same.

use std::sync::Arc;

use trimtab_engine::journal::{Journal, JournalEntry};
use trimtab_engine::view::policy::CompiledViews;
use trimtab_store::{Error as StoreError, SessionId, Store};

use super::{Session, SessionError, Setup};

/// The part of a conversation that another one begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBeginning {
    /// How many messages of the log.
    pub messages: usize,
    /// True if the other conversation continues with its own messages. Then plans that were made
    /// after all of these messages were sent apply to it as well.
    pub goes_on: bool,
}

impl SharedBeginning {
    /// True if a journal entry existed when a conversation of this length was sent.
    pub fn includes(self, entry: &JournalEntry) -> bool {
        let was_before = |sent: usize| sent < self.messages + usize::from(self.goes_on);
        match entry {
            // A plan counts if it was made from these messages alone, and applied when they were
            // sent.
            JournalEntry::Plan(plan) => plan.at <= self.messages && was_before(plan.since),
            JournalEntry::Judged { at, .. } => was_before(*at),
            JournalEntry::Undo => true,
        }
    }

    /// The entries of a journal that belong to it, in their order.
    fn entries(self, journal: &Journal) -> impl Iterator<Item = &JournalEntry> {
        let mut applies = true;
        let belongs = move |entry: &&JournalEntry| {
            if let Some(message) = entry.admitted_message() {
                return message < self.messages;
            }
            // Journals are applied in order, so nothing counts after an entry that does not.
            applies = applies && self.includes(entry);
            applies
        };
        journal.entries().iter().filter(belongs)
    }
}

impl Session {
    /// A new session that begins like this one, as if its copy in the store had been opened. All
    /// entries of this session must be in `store`.
    pub fn fork(
        &self,
        store: Arc<dyn Store>,
        id: SessionId,
        setup: Setup,
        beginning: SharedBeginning,
    ) -> Result<Self, SessionError> {
        let views = CompiledViews::new(&setup.policy.views)?;
        self.check_journal()?;
        let entries = beginning.entries(self.projection.journal());
        let journal = Journal::from(entries.cloned().collect::<Vec<_>>());
        let end = (beginning.messages as u64, stored_entries(&journal));
        store.fork(&self.id, &id, (0, 0), end)?;
        let messages = beginning.messages;
        let projection = self
            .projection
            .beginning(setup.normalise(), messages, journal);
        Ok(Self::restored(store, id, (setup, views), projection, end))
    }

    /// Extends a session that is only a fork of `origin` to a longer beginning of it, as if its copy
    /// in the store had been opened again. Returns the position of the first message that was added.
    /// After an error the session must be opened again.
    pub fn follow(
        &mut self,
        origin: &Self,
        beginning: SharedBeginning,
    ) -> Result<usize, SessionError> {
        origin.check_journal()?;
        let (first, has) = (self.projection.log().len(), self.positions());
        let entries = beginning.entries(origin.projection.journal());
        let (views, plans): (Vec<_>, Vec<_>) =
            entries.partition(|entry| entry.admitted_message().is_some());
        let length = (beginning.messages as u64, plans.len() as u64);
        let end = (length.0.max(has.0), length.1.max(has.1));
        self.store.fork(&origin.id, &self.id, has, end)?;
        let is_new = |entry: &&&JournalEntry| entry.admitted_message() >= Some(first);
        let mut views = views.iter().filter(is_new).peekable();
        let log = origin.projection.log().messages();
        for message in log.iter().take(beginning.messages).skip(first) {
            let at = self.projection.log().len();
            let measure = origin.projection.measure(at).copied();
            self.projection
                .admit_known(Arc::clone(message), measure.unwrap_or_default());
            while let Some(view) = views.next_if(|view| view.admitted_message() == Some(at)) {
                self.add_entry(JournalEntry::clone(view));
            }
        }
        self.log_position = end.0;
        let has_plans = usize::try_from(has.1).unwrap_or(usize::MAX);
        for plan in plans.into_iter().skip(has_plans) {
            self.add_stored_entry(plan.clone());
        }
        self.forget_calls();
        Ok(first)
    }

    /// Fails if the journal in memory differs from the stored one, whose entries a fork takes by
    /// their number. Opening the session again helps.
    fn check_journal(&self) -> Result<(), SessionError> {
        if stored_entries(self.projection.journal()) == self.journal_position {
            Ok(())
        } else {
            Err(StoreError::Lost.into())
        }
    }
}

/// The number of entries that are in the stored journal.
fn stored_entries(journal: &Journal) -> u64 {
    let entries = journal.entries().iter();
    let stored = entries.filter(|entry| entry.admitted_message().is_none());
    stored.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_engine::plan::{Edit, Plan, PlanReason};
    use trimtab_model::Output;

    #[test]
    fn beginning_has_the_plans_that_applied_to_it() {
        let planned = |(at, since)| {
            JournalEntry::Plan(Plan {
                at,
                since,
                ..Plan::new(PlanReason::ByHand, Vec::new())
            })
        };
        let view = |message| {
            let (part, output) = (0, Output::new("c", "view"));
            let edits = vec![Edit::Show {
                message,
                part,
                output,
            }];
            JournalEntry::Plan(Plan::new(PlanReason::Admission, edits))
        };
        let plans = [(10, 8), (300, 298), (400, 400), (500, 498)].map(planned);
        let entries = [view(5), view(399)].into_iter().chain(plans);
        let journal = Journal::from(entries.collect::<Vec<_>>());
        assert_eq!(stored_entries(&journal), 4);
        let counts = |messages, goes_on| {
            let beginning = SharedBeginning { messages, goes_on };
            let of_part = beginning.entries(&journal).cloned().collect::<Vec<_>>();
            (of_part.len(), stored_entries(&Journal::from(of_part)))
        };
        assert_eq!(counts(399, false), (3, 2));
        // The plan at 400 was made after 400 messages had been sent.
        assert_eq!(counts(400, false), (4, 2));
        assert_eq!(counts(400, true), (5, 3));
    }
}
