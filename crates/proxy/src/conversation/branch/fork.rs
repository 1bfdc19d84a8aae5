//! Branches that begin like another one.

use std::sync::Arc;

use trimtab::session::{SessionError, Setup, SharedBeginning};
use trimtab_store::{SessionId, StagedStore, Store};

use super::Branch;
use crate::conversation::durability::LEASE;

impl Branch {
    /// A new branch that begins like this one. Only in memory: the store copies the log when the
    /// next writes of the new branch are flushed. If the process dies before that, the client sends
    /// its conversation again, and it forks in the same way.
    pub(crate) fn fork(
        &self,
        store: &Arc<dyn Store>,
        id: SessionId,
        setup: &Setup,
        beginning: SharedBeginning,
    ) -> Result<Self, SessionError> {
        // The copy is made from the store.
        self.flush()?;
        let staged = Arc::new(StagedStore::leasing(Arc::clone(store), LEASE));
        let in_store = Arc::clone(&staged) as Arc<dyn Store>;
        let session = self.session.fork(in_store, id, setup.clone(), beginning)?;
        let message_map = self.message_map.beginning(session.projection().log());
        Ok(Self::restored(session, staged, message_map, Vec::new()))
    }

    /// Extends a branch that is only a copy of the beginning of `origin`, which has this number. It
    /// then decides as if it had been opened again. After an error it must be opened again.
    pub(crate) fn follow(
        &mut self,
        (number, origin): (usize, &Self),
        beginning: SharedBeginning,
    ) -> Result<(), SessionError> {
        origin.flush()?;
        let first = self.session.follow(&origin.session, beginning)?;
        self.read_new_messages(first);
        // They belong to an answer that the client has not continued.
        self.pending_calls.clear();
        self.mark_as_copy(number);
        Ok(())
    }

    /// The setup of its session.
    pub(crate) fn setup(&self) -> &Setup {
        self.session.setup()
    }

    /// Records that it is only a copy of the beginning of another branch.
    pub(crate) fn mark_as_copy(&mut self, branch: usize) {
        self.copy_of = Some((branch, self.session.positions()));
    }

    /// True if it is still only a copy of the beginning of that branch.
    pub(crate) fn is_copy_of(&self, branch: usize) -> bool {
        self.copy_of == Some((branch, self.session.positions()))
    }
}

/// The name of a client session's branch.
pub(crate) fn branch_name(client_session: &str, number: usize) -> String {
    if number == 0 {
        client_session.to_owned()
    } else {
        format!("{client_session}.{number}")
    }
}
