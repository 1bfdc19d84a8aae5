//! How a branch in memory relates to its session in the store, to which other processes may write.

use trimtab::session::SessionError;
use trimtab_model::estimate::Measure;
use trimtab_store::Store;

use super::Branch;
use crate::conversation::hidden_rounds;
use crate::models::silent_truncation::TruncationWatch;

/// How a branch in memory relates to its session in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BranchStanding {
    /// It has everything.
    Current,
    /// Another process has added something.
    Behind,
    /// It has something that the store does not have.
    Contradicted,
}

impl Branch {
    /// Reads what other processes have added to its session. It then decides as if it had been
    /// opened again. After an error it must be opened again.
    pub(crate) fn catch_up(&mut self, store: &dyn Store) -> Result<(), SessionError> {
        let first = self.session.catch_up()?;
        self.read_new_messages(first);
        let logged = self.session.projection().log().len();
        self.pending_calls = hidden_rounds::find(store, self.session.id(), logged)?;
        Ok(())
    }

    /// Reads the messages that were added to the log from position `first` on, by others. It then
    /// decides as if it had been opened again.
    pub(super) fn read_new_messages(&mut self, first: usize) {
        let known = self.message_map.log_positions().len();
        let projection = self.session.projection();
        let log = projection.log();
        self.message_map.read_from(log, first);
        let added = self.message_map.log_positions().iter().skip(known);
        for place in added {
            if let Some((message, measure)) = log.get(*place).zip(projection.measure(*place)) {
                self.received.add(message, *measure);
            }
        }
        for message in log.messages().iter().skip(first) {
            self.received.count_reasoning(message);
        }
        self.composed = projection.journal().entries().len();
        // Others know which tools came last, and when.
        self.tools = (0, Measure::default());
        self.last_request = None;
        self.chosen = false;
        self.truncation = TruncationWatch::default();
        self.sent = (0, 0);
        self.copy_of = None;
    }

    /// How it relates to the `stored` lengths of its log and its journal. `was_durable` is true if
    /// it had no staged writes then.
    pub(crate) fn standing(&self, stored: (u64, u64), was_durable: bool) -> BranchStanding {
        let (log, journal) = self.session.positions();
        let is_longer = stored.0 > log || stored.1 > journal;
        let is_shorter = stored.0 < log || stored.1 < journal;
        match (is_longer, is_shorter) {
            (false, false) => BranchStanding::Current,
            (true, false) if was_durable => BranchStanding::Behind,
            // While our last writes are staged, less in the store means nothing.
            (false, true) if !was_durable => BranchStanding::Current,
            // Our staged writes conflict with those of another process, or the store has lost
            // something: a database can fail over to a server that misses the last commits.
            _ => BranchStanding::Contradicted,
        }
    }
}
